"""A bundle, opened: files, states, prior, compact spectra."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from mzseek.bundle import Bundle
from mzseek.bundle import bundle as module
from mzseek.bundle.arrays import Arrays, write_arrays
from mzseek.bundle.bundle import (
    PRIOR,
    BundledPrior,
    compact_ions,
    compact_peaks,
    compact_spectrum,
    open_prior,
    open_states,
    pack_prior,
    pack_states,
    shipped,
)
from mzseek.core.errors import BundleError
from mzseek.core.ragged import pointers
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.model import ChannelState, EvidenceModel
from mzseek.evidence.queries import Molecules, Queries
from mzseek.library import Library
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum

from .conftest import sign


@pytest.fixture
def copied(bundle_folder: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(bundle_folder, tmp_path / "copy"))


@pytest.fixture
def asked(small: Prepared) -> Queries:
    mz, heights = small.peaks(3)
    spectrum = Spectrum(
        np.array(mz), np.array(heights, np.float64), float(small.precursor_mz[3]), "[M+H]+", 1, "x"
    )
    candidates = [str(small.smiles[place]) for place in range(12)]
    return Queries.of([spectrum], [candidates], fingerprint="maccs", jobs=1)


def test_it_scores_as_the_run_does(bundle: Bundle, fitted_run: Run, asked: Queries) -> None:
    """Its data have few decimals; the run has one spectrum of more peaks than are kept."""
    own = EvidenceModel.open(fitted_run)
    assert np.allclose(
        bundle.fitted.contributions(asked), own.contributions(asked), rtol=0.02, atol=0.02
    )
    assert bundle.fingerprint == "maccs"
    assert bundle.fitted.describe() == own.describe()


def test_its_library_can_be_searched(bundle: Bundle, small: Prepared, asked: Queries) -> None:
    library = bundle.library
    assert isinstance(library, Library)
    assert len(library) == len(small.in_fold("train")) == len(library.records)
    first = int(small.in_fold("train")[3])
    mz, heights = small.peaks(first)
    query = Spectrum(
        np.array(mz),
        np.array(heights, np.float64),
        float(small.precursor_mz[first]),
        "[M+H]+",
        1,
        "q",
    )
    for kind in ("cosine", "analog"):
        found = library.search(query, kind, top=1)
        assert found.scores[0] == pytest.approx(1, abs=1e-4)
        assert found.to_table().columns["identifier"] == [small.identifiers[first]]
    assert library.records["license"].to_pylist()[:2] == ["CC BY", ""]
    assert library.check() is None


def test_the_analogs_read_the_very_arrays_of_the_library(bundle: Bundle) -> None:
    place = [channel.name for channel in bundle.fitted.channels].index("analogs")
    arrays = bundle.fitted.states[place].arrays
    assert arrays["mz"] is bundle.library.peaks.values
    assert arrays["heights"] is bundle.library.peaks.weights


def test_molecules_of_the_library_are_bundled(bundle: Bundle, small: Prepared) -> None:
    train = np.unique(small.molecule[small.in_fold("train")])
    assert {small.inchikey14[each].decode() for each in train} == set(bundle.molecules.rows_by_key)
    assert bundle.library.molecules["inchikey"].to_pylist()[0] in bundle.molecules.rows_by_key
    assert np.allclose(bundle.molecules.masses, np.sort(small.masses[train]), atol=1e-6)
    assert bundle.names == {}
    assert bundle.licence.startswith("# Licence")
    assert bundle.size == sum(p.stat().st_size for p in bundle.folder.iterdir()) - (
        (bundle.folder / "manifest.json").stat().st_size
    )
    assert repr(bundle).endswith(f"{len(bundle.molecules)} molecules)")


def test_verify_reads_all(bundle: Bundle) -> None:
    assert not {"fitted", "library", "molecules"} & set(vars(bundle))
    bundle.verify()
    assert {"card", "confidence", "fitted", "library", "molecules"} <= set(vars(bundle))


@pytest.mark.parametrize("name", ["arrays.bin", "model.json", "records.parquet", "LICENCE.md"])
def test_a_damaged_byte_is_found(copied: Path, name: str) -> None:
    data = bytearray((copied / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied / name).write_bytes(data)
    with pytest.raises(BundleError, match=f"{name} has changed; make it again with"):
        Bundle.open(copied)


def test_a_file_that_was_cut_short_or_is_gone_is_found(copied: Path) -> None:
    path = copied / "molecules.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BundleError, match=r"molecules.parquet has [\d,]+ bytes, expected"):
        Bundle.open(copied)
    path.unlink()
    with pytest.raises(BundleError, match=r"molecules.parquet is missing"):
        Bundle.open(copied)


def test_another_kind_of_folder_is_refused(small_set, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is a prepared folder, expected a model bundle"):
        Bundle.open(small_set.folder)
    with pytest.raises(BundleError, match=r"is no model bundle \(manifest.json is missing\)"):
        Bundle.open(tmp_path)
    with pytest.raises(BundleError, match="there is no such folder"):
        Bundle.open(tmp_path / "gone")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: fields.update(format_version=99), "written in format 99, expected 1"),
        (lambda fields: fields["files"].pop("arrays.bin"), "manifest does not list arrays.bin"),
    ],
)
def test_other_manifests_are_refused(copied: Path, change, message: str) -> None:
    fields = json.loads((copied / "manifest.json").read_text())
    change(fields)
    (copied / "manifest.json").write_text(json.dumps(fields))
    with pytest.raises(BundleError, match=message):
        Bundle.open(copied)


def test_parts_that_do_not_fit_together_are_refused(copied: Path) -> None:
    table = pq.read_table(copied / "records.parquet")
    molecules = pq.read_table(copied / "molecules.parquet")
    for name, changed, message in (
        ("records.parquet", table.slice(1), "has other columns or rows than expected"),
        ("records.parquet", table.drop_columns(["license"]), r"records.parquet: cannot be read"),
        ("molecules.parquet", molecules.slice(1), r"molecules.parquet is damaged"),
    ):
        pq.write_table(changed, copied / name)
        with pytest.raises(BundleError, match=message):
            Bundle.open(sign(copied)).verify()


def test_without_a_shipped_one_the_message_names_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bundle_folder: Path
) -> None:
    assert not Bundle.open(bundle_folder).is_shipped
    assert Bundle.open().is_shipped
    assert Bundle.open(shipped()).is_shipped
    monkeypatch.setattr(module, "files", lambda name: tmp_path)
    with pytest.raises(BundleError, match="this copy of mzseek comes without a model bundle"):
        Bundle.open()
    shutil.copytree(bundle_folder, tmp_path / "data" / "bundle")
    assert Bundle.open().folder == tmp_path / "data" / "bundle"


@pytest.mark.parametrize("name", ["arrays.bin", "manifest.json"])
def test_a_link_in_the_place_of_a_file_is_refused(copied: Path, tmp_path: Path, name: str) -> None:
    (copied / name).rename(tmp_path / "elsewhere")
    (copied / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match=f"{name} is a link, expected a file; copy what it"):
        Bundle.open(copied)


def confidence(field: str, value: object):
    return "confidence.json", lambda fields: fields["positive"].update({field: value}), "confidence"


def scale(value: float):
    def change(fields) -> None:
        channel = next(iter(fields["ranker"]["spread"].values()))
        channel[next(iter(channel))] = value

    return "model.json", change, "fitted"


def kind(value: object):
    return "model.json", lambda fields: fields.update(fingerprint=value), "fingerprint"


def peaks(value: object):
    return "card.json", lambda fields: fields["library"].update(most_peaks=value), "max_peaks"


@pytest.mark.parametrize(
    ("case", "message"),
    [
        *((confidence("dependence", float(v)), r"confidence\.json: holds .*, expected finite")
          for v in ("nan", "inf", "-inf")),
        *((confidence("floor", v), "positive mode: floor is .*, expected a number")
          for v in (10**400, -(10**400))),
        *((scale(v), r"model\.json: has a spread that is not above 0") for v in (0, -1.0)),
        *((kind(v), r"model\.json: fingerprint is .*, expected one of") for v in ("unknown", 3)),
        *((peaks(v), r"library\.most_peaks is .*, expected 1 or more")
          for v in (0, -5, "many", None)),
    ],
)  # fmt: skip
def test_impossible_values_are_refused(copied: Path, case, message: str) -> None:
    name, change, attribute = case
    fields = json.loads((copied / name).read_text())
    change(fields)
    (copied / name).write_text(json.dumps(fields))
    opened = Bundle.open(sign(copied))
    with pytest.raises(BundleError, match=message):
        getattr(opened, attribute)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("channels/0/positive.first", None, "positive.first is missing"),
        ("channels/0/positive.worth", lambda own: own[:-1], r"shape \(5, 2, 9\), expected \(6,"),
        ("channels/0/negative.totals", lambda own: own[:-1], r"shape \(2,\), expected \(3,\)"),
        ("channels/1/mz", None, "mz is missing"),
        ("channels/1/heights", lambda own: own[:-1], "has an array of shape"),
        ("channels/1/pointers", lambda own: own[::-1], "row pointers that do not rise"),
        ("channels/1/molecule_of", lambda own: own + 2**20, "is damaged"),
        ("channels/1/bits.morgan2", lambda own: own + 2**20, "is damaged"),
        ("channels/1/bits.morgan2", None, "bits.morgan2 is missing"),
        ("channels/0/positive.last", lambda own: own * np.nan, "holds what is no number"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(copied: Path, name: str, change, reason: str) -> None:
    arrays = {key: np.array(own) for key, own in Bundle.open(copied).arrays.items()}
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    write_arrays(copied / "arrays.bin", arrays)
    with pytest.raises(BundleError, match=reason):
        _ = Bundle.open(sign(copied)).fitted


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["library/mz", "molecules/masses"])
def test_infinite_numbers_in_arrays_are_refused(copied: Path, name: str, value: float) -> None:
    arrays = {key: np.array(own) for key, own in Bundle.open(copied).arrays.items()}
    arrays[name][-1] = value
    write_arrays(copied / "arrays.bin", arrays)
    with pytest.raises(BundleError, match=r"is damaged|numbers without end"):
        Bundle.open(sign(copied)).verify()


@pytest.fixture
def fitted(fitted_run: Run) -> EvidenceModel:
    return EvidenceModel.open(fitted_run)


def test_all_but_peaks_comes_back_as_it_was(fitted: EvidenceModel, tmp_path: Path) -> None:
    facts, arrays = pack_states(fitted, max_peaks=10_000)
    write_arrays(tmp_path / "a.bin", arrays)
    again = open_states(json.loads(json.dumps(facts)), Arrays(tmp_path / "a.bin"), "here")
    for old, new in zip(fitted.states, again.states, strict=True):
        assert set(new.arrays) - {"learned_from"} == set(old.arrays)
        assert new.inchikey14.tolist() == old.inchikey14.tolist()
        assert dict(new.metadata) == dict(old.metadata)
        for name in set(old.arrays) - {"mz", "heights", "precursors"}:
            assert new.arrays[name].dtype == old.arrays[name].dtype
            assert np.array_equal(new.arrays[name], old.arrays[name])


def test_the_place_of_a_run_is_not_told(fitted: EvidenceModel) -> None:
    from mzseek.evidence.network_scores import Network, NetworkOptions

    channel = Network(NetworkOptions(path="/home/me/runs/emb-cos"))
    learned = ChannelState({}, {}, np.array([b"A" * 14]))
    facts, _ = pack_states(EvidenceModel([channel], [learned], fitted.ranker))
    assert facts["channels"][0]["options"]["path"] == "emb-cos"
    assert facts["channels"][0]["label"] == channel.label == "run:emb-cos"


def test_states_that_do_not_fit_are_refused(fitted: EvidenceModel, tmp_path: Path) -> None:
    facts, arrays = pack_states(fitted)
    write_arrays(tmp_path / "a.bin", arrays)
    whole = Arrays(tmp_path / "a.bin")
    with pytest.raises(BundleError, match="here: lacks 'ranker'"):
        open_states({}, whole, "here")
    unknown = [facts["channels"][0] | {"name": "dowsing"}, *facts["channels"][1:]]
    with pytest.raises(BundleError, match="here: channel 'dowsing' is unknown"):
        open_states(facts | {"channels": unknown}, whole, "here")
    with pytest.raises(BundleError, match="its ranker is of other channels than it names"):
        open_states(facts | {"channels": facts["channels"][::-1]}, whole, "here")
    write_arrays(tmp_path / "b.bin", {})
    with pytest.raises(BundleError, match="the state of fragments is missing"):
        open_states(facts, Arrays(tmp_path / "b.bin"), "here")
    other = json.loads(json.dumps(facts))
    for table in (other["ranker"]["spread"], *other["ranker"]["weights"].values()):
        table["fragments"]["luck"] = table["fragments"].pop("pairs")
    with pytest.raises(BundleError, match="weighs other features of fragments than this version"):
        open_states(other, whole, "here")


@pytest.fixture
def prior(bundle: Bundle) -> BundledPrior:
    assert bundle.prior is not None
    return bundle.prior


@pytest.fixture
def table() -> Molecules:
    return Molecules(["CCO", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "c1ccccc1O"], "maccs", jobs=1)


def test_log_odds_are_weighted_and_of_mean_0(prior: BundledPrior, table: Molecules) -> None:
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
    assert again.state.inchikey14.tolist() == prior.state.inchikey14.tolist()
    assert again.weights == prior.weights


def test_priors_that_do_not_fit_are_refused(prior: BundledPrior, tmp_path: Path) -> None:
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
    with pytest.raises(BundleError, match="the state of the prior is missing"):
        open_prior(facts, Arrays(tmp_path / "b.bin"), "here")


def test_a_bundle_without_one_still_opens(bundle_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle_folder, tmp_path / "old")
    (tmp_path / "old" / PRIOR).unlink()
    old = Bundle.open(sign(tmp_path / "old"))
    old.verify()
    assert old.prior is None


@pytest.fixture
def lists() -> PeakLists:
    rng = np.random.default_rng(0)
    counts = np.array([5, 0, 200, 1])
    mz = np.concatenate([np.sort(rng.uniform(50, 900, count)) for count in counts])
    return PeakLists(pointers(counts), mz, rng.uniform(1e-6, 3.0, counts.sum()))


def test_the_highest_peaks_stay_in_rising_order(lists: PeakLists) -> None:
    kept = compact_peaks(lists, 60)
    assert np.diff(kept.pointers).tolist() == [5, 0, 60, 1]
    inside = slice(*lists.pointers[2:4])
    highest = np.sort(np.argsort(-lists.weights[inside])[:60])
    assert np.allclose(kept.values[5:65], lists.values[inside][highest], atol=5.1e-6)


def test_the_loss_is_bounded(lists: PeakLists) -> None:
    kept = compact_peaks(lists, 1000)
    assert np.abs(kept.values - lists.values).max() <= 5.1e-6
    for start, end in zip(lists.pointers[:-1], lists.pointers[1:], strict=True):
        if end > start:
            relative = lists.weights[start:end] / lists.weights[start:end].max()
            assert np.abs(kept.weights[start:end] - relative).max() <= 1e-4
            assert kept.weights[start:end].max() == 1
            assert kept.weights[start:end].min() >= 1e-4


def test_doing_it_twice_changes_nothing(lists: PeakLists) -> None:
    once = compact_peaks(lists, 60)
    assert all(np.array_equal(a, b) for a, b in zip(once, compact_peaks(once, 60), strict=True))
    ions = compact_ions(PrecursorIons(np.array([123.45678912]), np.ones(1, np.int8)))
    assert ions.precursors.tolist() == compact_ions(ions).precursors.tolist() == [123.456789]


def test_of_equal_heights_the_lower_mz_stays() -> None:
    even = PeakLists(np.array([0, 3]), np.array([50.0, 60.0, 70.0]), np.ones(3))
    assert compact_peaks(even, 2).values.tolist() == [50.0, 60.0]


def test_a_spectrum_is_made_compact_as_lists_are(make_spectrum) -> None:
    spectrum = make_spectrum([50.1234567, 60.0, 70.0], [1.0, 8.0, 4.0], 200.12345678, energy="20")
    kept = compact_spectrum(spectrum, 2)
    assert kept.mz.tolist() == [60.0, 70.0]
    assert kept.intensities.tolist() == [1.0, 0.5]
    assert kept.precursor_mz == 200.123457
    assert (kept.adduct, kept.metadata) == (spectrum.adduct, spectrum.metadata)
