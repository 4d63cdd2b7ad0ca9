"""Finished features are found again; what was written after them is cut off."""

from contextlib import closing
from pathlib import Path

import pytest

from mzseek.core.errors import RunError
from mzseek.export.output import JOURNAL, Journal
from mzseek.export.writer import Spool


@pytest.fixture
def begun(tmp_path: Path, make_feature) -> Path:
    """Two features noted, and half of a third in the file."""
    with closing(Journal(tmp_path, {"run": "1"})) as journal:
        assert not journal.was_done(make_feature("1"))
        (tmp_path / "a.tsv").write_bytes(b"1111222233")
        journal.add(make_feature("1"), {"a.tsv": 4}, True)
        journal.add(make_feature("2"), {"a.tsv": 8}, True)
    return tmp_path


def test_each_note_counts_for_one_feature(begun: Path, make_feature) -> None:
    with closing(Journal(begun, {"run": "1"})) as journal:
        assert [journal.was_done(make_feature("1")) for _ in range(2)] == [True, False]
        assert journal.was_done(make_feature("2"))
        assert not journal.was_done(make_feature("3"))
        assert not journal.was_done(make_feature("2", where="another.mgf"))


@pytest.mark.parametrize(
    ("cut", "content", "left", "features"),
    [(0, b"1111222233", b"11112222", 2), (3, b"1111222233", b"1111", 1),
     (0, b"11112", b"1111", 1), (0, b"1", b"", 0)],
    ids=["half a feature", "half a note", "a file shorter than noted", "no note that holds"],
)  # fmt: skip
def test_files_are_cut_to_the_last_note_that_holds(
    begun: Path, cut: int, content: bytes, left: bytes, features: int
) -> None:
    path = begun / JOURNAL
    path.write_bytes(path.read_bytes()[: -cut or None])
    (begun / "a.tsv").write_bytes(content)
    with closing(Journal(begun, {"run": "1"})) as journal:
        assert (journal.features, journal.spectra) == (features, features)
    assert (begun / "a.tsv").read_bytes() == left
    assert path.read_bytes().count(b"\n") == features + 1
    assert path.read_bytes().endswith(b"\n")


def test_another_run_is_refused(begun: Path) -> None:
    with pytest.raises(RunError, match="was begun with other values or contents of run; give"):
        Journal(begun, {"run": "2"})


def test_a_spool_goes_on_where_it_ended(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    assert spool.is_empty
    spool.write("one\n")
    assert (spool.flush(), spool.is_empty) == (4, False)
    spool.close()
    again = Spool(tmp_path / "a")
    assert not again.is_empty
    again.write("zwölf\u2028\n")
    assert list(again.lines()) == ["one\n", "zwölf\u2028\n"]
    again.close()
    again.close()
