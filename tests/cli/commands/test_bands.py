import json
from pathlib import Path

import numpy as np
import pytest

from mzseek.chem.fingerprinting import PAPER_FINGERPRINTS
from mzseek.cli.commands.bands import _with_twins
from mzseek.datasets.bands import set_bands
from mzseek.datasets.prepared import Prepared
from mzseek.decision import BAND_SIMILARITIES, Bands


def test_medians_are_shown(mzseek, small: Prepared) -> None:
    said = "tanimoto of the truth against its candidates: medians over "
    for flags, fold, lists in (
        ([], None, "40 mass lists"), (["--fold", "test"], "test", "8 mass lists of the test fold"),
    ):  # fmt: skip
        text = mzseek.ok("bands", small.folder, *flags)
        lines_shown = text.splitlines()
        assert lines_shown[0] == said + lists
        left_out = "2 lists have nothing to compare and are left out"
        if fold == "test":
            left_out = "1 list has nothing to compare and is left out"
        assert lines_shown[1] == left_out
        found = set_bands(small, fold=fold)
        medians, twins = found.medians(), 100 * (found.high == 1).sum() / found.usable.sum()
        wanted = [f"{medians[name]:.3f}" for name in ("low", "high", "width")]
        assert lines_shown[-1].split() == ["maccs", *wanted, f"{twins:.1f}", "%"]


def test_json_is_the_last_line(mzseek, small: Prepared) -> None:
    arguments = ["--candidates", "formula", "--fold", "all", "--against", "pairs"]
    arguments += ["--fingerprint", "maccs", "--fingerprint", "rdkit", "--similarity", "cosine"]
    facts = mzseek.json("bands", small.folder, *arguments, "--jobs", 1)
    asked = {"similarity": "cosine", "candidates": "formula", "fold": "all", "against": "pairs"}
    assert asked.items() <= facts.items()
    for kind in ("maccs", "rdkit"):
        found = set_bands(
            small, "formula", fold=None, fingerprint=kind, similarity="cosine", against="pairs"
        )
        assert facts["medians"][kind] == pytest.approx(found.medians())
        assert facts["lists"][kind] == found.usable.sum()


@pytest.mark.parametrize("similarity", BAND_SIMILARITIES)
def test_twins_are_found_by_every_similarity(similarity: str, mzseek, small: Prepared) -> None:
    text = mzseek.ok("bands", small.folder, "--fold", "test", "--similarity", similarity, "--json")
    assert json.loads(text)["twins"] == {"maccs": 1 / 8}


def test_a_cosine_beside_one_by_rounding_is_that_of_twins() -> None:
    high = np.array([1.0, 3 / (np.sqrt(3) * np.sqrt(3)), 1 - 1e-16, 0.9999, np.nan])
    assert high[1] != 1
    low = np.where(np.isnan(high), np.nan, 0.0)
    assert _with_twins(Bands(low, high)) == 3 / 4


def test_the_six_of_the_paper_are_asked_for_at_once(mzseek, small: Prepared) -> None:
    arguments = ("--fingerprint", "paper", "--fingerprint", "maccs", "--lists", 2, "--jobs", 1)
    text = mzseek.ok("bands", small.folder, *arguments, "--json")
    assert list(json.loads(text)["medians"]) == [*PAPER_FINGERPRINTS, "maccs"]


@pytest.mark.slow
def test_the_picture_is_written(mzseek, small: Prepared, tmp_path: Path) -> None:
    figure = tmp_path / "[a] bands.svg"
    text = mzseek.ok("bands", small.folder, "--fold", "train", "--lists", 5, "--figure", figure)
    assert figure.read_text().startswith("<svg")
    assert f"Distributions: {figure}" in text
    median = set_bands(small, fold="train", max_lists=5).medians()["low"]
    assert f" {median:.3f} " in text
