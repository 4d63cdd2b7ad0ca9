"""The learned prior of a bundle, packed and opened."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.arrays import Arrays, write_arrays
from mzseek.bundle.bundle import MANIFEST, PRIOR, BundledPrior, open_prior, pack_prior
from mzseek.core.errors import BundleError
from mzseek.evidence.queries import Molecules


@pytest.fixture
def prior(bundle: Bundle) -> BundledPrior:
    assert bundle.prior is not None
    return bundle.prior


@pytest.fixture
def table() -> Molecules:
    return Molecules(["CCO", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "c1ccccc1O"], "maccs", jobs=1)


def without_prior(folder: Path, out: Path) -> Path:
    """A copy of a bundle as they were before there was a prior."""
    shutil.copytree(folder, out)
    (out / PRIOR).unlink()
    facts = json.loads((out / MANIFEST.name).read_text())
    MANIFEST.write(out, {name: facts[name] for name in facts if name not in ("files", "kind")})
    return out


def test_nats_are_weighted_log_odds_against_the_mean(prior: BundledPrior, table: Molecules) -> None:
    rows = np.array([2, 0, 1, 0])
    odds = prior.channel.log_odds(prior.state, table, np.arange(3))[rows]
    made = BundledPrior(prior.channel, prior.state, {"positive": 2.0, "negative": 0.5})
    assert np.allclose(made.log_odds(table, rows, 1), 2 * (odds - odds.mean()))
    assert np.allclose(made.log_odds(table, rows, -1), 0.5 * (odds - odds.mean()))
    assert np.ptp(odds) > 0


def test_it_comes_back_as_it_was(prior: BundledPrior, table: Molecules, tmp_path: Path) -> None:
    facts, arrays = pack_prior(prior)
    write_arrays(tmp_path / "a.bin", arrays)
    again = open_prior(json.loads(json.dumps(facts)), Arrays(tmp_path / "a.bin"), "here")
    rows = np.arange(3)
    assert again.log_odds(table, rows, 1).tolist() == prior.log_odds(table, rows, 1).tolist()
    assert again.states.inchikey14.tolist() == prior.state.inchikey14.tolist()
    assert again.weights == prior.weights


def test_what_does_not_fit_is_refused(prior: BundledPrior, tmp_path: Path) -> None:
    facts, arrays = pack_prior(prior)
    write_arrays(tmp_path / "a.bin", arrays)
    whole = Arrays(tmp_path / "a.bin")
    with pytest.raises(BundleError, match="here: lacks 'options'"):
        open_prior({}, whole, "here")
    for weight in (-1.0, float("nan")):
        bad = facts | {"weights": {"positive": weight, "negative": 1.0}}
        with pytest.raises(BundleError, match="the weight of positive mode is"):
            open_prior(bad, whole, "here")
    with pytest.raises(BundleError, match=r"here: .*luck"):
        open_prior(facts | {"options": {"luck": 1}}, whole, "here")
    write_arrays(tmp_path / "b.bin", {})
    with pytest.raises(BundleError, match="what the prior has learned is missing"):
        open_prior(facts, Arrays(tmp_path / "b.bin"), "here")


def test_a_bundle_without_one_still_opens(bundle_folder: Path, tmp_path: Path) -> None:
    old = Bundle.open(without_prior(bundle_folder, tmp_path / "old"))
    old.verify()
    assert old.prior is None
