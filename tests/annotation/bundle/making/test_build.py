"""The whole recipe."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.bundle.build import Recipe, build_bundle
from mzseek.core.errors import BundleError
from mzseek.evidence.registry import channels_from


@pytest.fixture
def tables(licensed: Callable[..., Path]) -> list[Path]:
    one = licensed("one", lambda row: "CC BY-NC" if row["identifier"].endswith("-2") else "CC BY")
    return [one, licensed("two", lambda row: "CC0", adduct="[M-H]-", precursor_mz="150.5")]


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
        tables, tmp_path / "train", channels, Recipe(folds="train"), work=work, jobs=1,
        say=said.append,
    )  # fmt: skip
    assert any("is fitted already, and taken as it is" in line for line in said)
    assert len(train.library) < len(whole.library)
    assert train.card["learned_from"] == ["train"]
    assert train.card["measured"] == whole.card["measured"]

    with pytest.raises(BundleError, match="is a run of other data or options; name another --work"):
        build_bundle(tables, tmp_path / "x", channels_from("substructures"), work=work, jobs=1)


def test_what_cannot_be_built_is_told_at_once(tables: list[Path], tmp_path: Path) -> None:
    channels = channels_from("analogs")
    with pytest.raises(BundleError, match="folds are 'val', expected all or train"):
        build_bundle(tables, tmp_path / "x", channels, Recipe(folds="val"))
    with pytest.raises(BundleError, match="no tables of spectra"):
        build_bundle([], tmp_path / "x", channels)
