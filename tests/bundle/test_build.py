"""Data sets joined, and bundles built from them."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.bundle.build import BuildOptions, build_bundle, join_sets, read_details
from mzseek.core.errors import BundleError, DatasetError
from mzseek.datasets.files import read_table
from mzseek.evidence import channels_from


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "joined"
    folder.mkdir()
    return folder


def test_spectra_are_kept_by_licence_and_counted(licensed: Callable[..., Path], out: Path) -> None:
    one = licensed("one", lambda row: "CC BY-NC" if row["fold"] == "val" else "CC BY 4.0")
    two = licensed("two", lambda row: "CC0", adduct="[M-H]-")
    joined = join_sets([one, two], "mass", out)
    assert joined.left_out == {"CC BY-NC": 16}
    assert joined.included["CC0"] == joined.included["CC BY"] + 16
    rejected: list[str] = []
    spectra = list(read_table(joined.files.spectra, lambda where, why: rejected.append(why)))
    assert not rejected
    assert {spectrum.identifier for spectrum in spectra} == set(joined.details)
    assert joined.details["two-S0-1"] == {
        "collision_energy": "", "instrument_type": "", "contributor": "Anna", "license": "CC0",
        "source": "two.tsv",
    }  # fmt: skip
    assert {spectrum.adduct for spectrum in spectra} == {"[M+H]+", "[M-H]-"}


def test_peaks_are_those_of_the_tables(licensed: Callable[..., Path], out: Path) -> None:
    path = licensed("one", lambda row: "CC0")
    joined = join_sets([path], "mass", out)
    before = {s.identifier: s for s in read_table(path, print)}
    for spectrum in read_table(joined.files.spectra, print):
        own = before[spectrum.identifier]
        assert spectrum.mz.tolist() == own.mz.tolist()
        assert spectrum.intensities.tolist() == own.intensities.tolist()
        assert spectrum.precursor_mz == own.precursor_mz
        assert spectrum.metadata["fold"] == own.metadata["fold"]


def test_a_molecule_that_is_in_both_has_one_list(
    licensed: Callable[..., Path], out: Path, small_set
) -> None:
    tables = [licensed(name, lambda row: "CC0") for name in ("one", "two")]
    joined = join_sets(tables, "mass", out)
    with gzip.open(joined.files.candidates["mass"], "rt") as file:
        assert json.load(file) == small_set.lists["mass"]
    assert joined.skipped == []


def test_a_second_record_of_an_identifier_is_skipped(
    licensed: Callable[..., Path], out: Path
) -> None:
    path = licensed("one", lambda row: "CC0")
    joined = join_sets([path, path], "mass", out)
    assert len(joined.skipped) == len(joined.details) == 88
    assert joined.skipped[0][1] == "is there a second time"


def test_what_is_missing_is_told(licensed: Callable[..., Path], out: Path) -> None:
    path = licensed("one", lambda row: "")
    with pytest.raises(BundleError, match="has no formula candidates beside it: mass"):
        join_sets([path], "formula", out)
    with pytest.raises(BundleError, match=r"allows it \(left out: 88 without\); --licence"):
        join_sets([path], "mass", out)
    assert len(join_sets([path], "mass", out, ["any"]).details) == 88
    with pytest.raises(DatasetError, match="no such file"):
        join_sets([path.with_name("gone.tsv")], "mass", out)


def test_details_are_read_of_tables(licensed: Callable[..., Path]) -> None:
    path = licensed("one", lambda row: "dl-de/by-2-0")
    found = read_details([path], print)
    assert found["one-S3-2"]["license"] == "dl-de/by-2-0"
    assert len(found) == 88


@pytest.fixture
def tables(licensed: Callable[..., Path]) -> list[Path]:
    one = licensed("one", lambda row: "CC BY-NC" if row["identifier"].endswith("-2") else "CC BY")
    return [one, licensed("two", lambda row: "CC0", adduct="[M-H]-", precursor_mz="150.5")]


@pytest.mark.slow
def test_data_sets_in_a_bundle_out(tables: list[Path], tmp_path: Path) -> None:
    said: list[str] = []
    channels = channels_from("analogs")
    work = tmp_path / "work"
    whole = build_bundle(tables, tmp_path / "all", channels, work=work, jobs=1, say=said.append)
    assert "132 spectra are kept: 44 CC BY, 88 CC0" in said
    assert "44 spectra are left out for their licence: 44 CC BY-NC" in said
    assert len(whole.library) == 132
    assert whole.card["learned_from"] == ["train", "val", "test"]
    assert whole.card["made_of"]["left_out"] == {"CC BY-NC": 44}
    assert set(whole.library.records["license"].to_pylist()) == {"CC BY", "CC0"}
    assert set(whole.card["library"]["modes"]) == {"positive", "negative"}
    assert set(whole.card["measured"]) == {"positive", "negative"}
    assert whole.fitted.states[0].arrays["mz"] is whole.library.peaks.values

    train = build_bundle(
        tables, tmp_path / "train", channels, BuildOptions(folds="train"), work=work, jobs=1,
        say=said.append,
    )  # fmt: skip
    assert any("is fitted already, and taken as it is" in line for line in said)
    assert len(train.library) < len(whole.library)
    assert train.card["learned_from"] == ["train"]
    assert train.card["measured"] == whole.card["measured"]

    with pytest.raises(BundleError, match="is a run of other data or options; name another --work"):
        build_bundle(tables, tmp_path / "x", channels_from("fragments"), work=work, jobs=1)
    with pytest.raises(BundleError, match="is a run of other data or options; name another --work"):
        build_bundle(tables, tmp_path / "x", channels, BuildOptions(augment=0), work=work, jobs=1)


def test_what_cannot_be_built_is_told_at_once(tables: list[Path], tmp_path: Path) -> None:
    channels = channels_from("analogs")
    with pytest.raises(BundleError, match="folds are 'val', expected all or train"):
        build_bundle(tables, tmp_path / "x", channels, BuildOptions(folds="val"))
    with pytest.raises(BundleError, match="no tables of spectra"):
        build_bundle([], tmp_path / "x", channels)
