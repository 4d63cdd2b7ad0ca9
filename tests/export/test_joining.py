"""Annotations are found again by name."""

import pytest

from mzseek.annotation.feature_tables import same_feature
from mzseek.export.joining import JoiningWriter


class Found(JoiningWriter):
    """Lists what was found, by name."""

    def assemble(self, file) -> list[str]:
        assert [self.read(offset).name for offset in self.twins] == ["017"]
        kept = self.read(self.by_name["c"])
        assert (kept.name, kept.mz, kept.ion) == ("c", 195.0877, "[M+H]+")
        assert kept.cells["mzseek_name"] == "Caffeine"
        return list(self.by_name)


def test_annotations_are_found_by_name(write_file, make_annotation) -> None:
    annotations = map(make_annotation, ("17", "b", "017", "c"))
    assert write_file(Found, "a", *annotations)[1] == ["17", "b", "c"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("17", "17.0", True), ("17", " 017", True), ("17", "1.7", False), ("a", "A", False),
     ("9" * 30, "9" * 30, True), ("²", "2", False)],
)  # fmt: skip
def test_names_are_compared_as_people_would(one: str, other: str, same: bool) -> None:
    assert (same_feature(one) == same_feature(other)) == same
