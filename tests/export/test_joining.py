"""Annotations are found again by name."""

import json
from pathlib import Path

import pytest

from mzseek.export.joining import Lookup, join_record, same_feature
from mzseek.export.writer import Spool


def test_annotations_are_found_by_name(tmp_path: Path, make_annotation) -> None:
    spool = Spool(tmp_path / "a")
    for name in ("17", "b", "017", "c"):
        spool.write(json.dumps(join_record(make_annotation(name))) + "\n")
    spool.close()
    lookup = Lookup(tmp_path / "a")
    assert list(lookup.by_name) == ["17", "b", "c"]
    assert [lookup.read(offset).name for offset in lookup.twins] == ["017"]
    kept = lookup.read(lookup.by_name["c"])
    assert (kept.name, kept.mz, kept.ion) == ("c", 195.0877, "[M+H]+")
    assert kept.cells["mzseek_name"] == "Caffeine"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("17", "17.0", True), ("17", " 017", True), ("17", "1.7", False), ("a", "A", False),
     ("9" * 30, "9" * 30, True), ("²", "2", False)],
)  # fmt: skip
def test_names_are_compared_as_people_would(one: str, other: str, same: bool) -> None:
    assert (same_feature(one) == same_feature(other)) == same
