"""Finished features are found again; what was written after them is cut off."""

from pathlib import Path

import pytest

from mzseek.core.errors import RunError
from mzseek.export.writer import JOURNAL, Journal, Spool


@pytest.fixture
def begun(tmp_path: Path, make_feature) -> Path:
    """Two features noted, and half of a third in the file."""
    journal = Journal(tmp_path, {"run": "1"})
    (tmp_path / "a.tsv").write_bytes(b"1111222233")
    journal.add(make_feature("1"), {"a.tsv": 4}, True)
    journal.add(make_feature("2"), {"a.tsv": 8}, True)
    journal.close()
    return tmp_path


def test_a_new_journal_knows_nothing(tmp_path: Path, make_feature) -> None:
    journal = Journal(tmp_path, {"run": "1"})
    assert (journal.features, journal.spectra) == (0, 0)
    assert not journal.was_done(make_feature("1"))
    journal.close()


def test_files_are_cut_to_the_last_note(begun: Path, make_feature) -> None:
    journal = Journal(begun, {"run": "1"})
    assert (begun / "a.tsv").read_bytes() == b"11112222"
    assert (journal.features, journal.spectra) == (2, 2)
    assert journal.was_done(make_feature("2"))
    assert not journal.was_done(make_feature("3"))
    assert not journal.was_done(make_feature("1", where="another.mgf"))
    journal.close()


def test_each_note_counts_for_one_feature(begun: Path, make_feature) -> None:
    journal = Journal(begun, {"run": "1"})
    assert [journal.was_done(make_feature("1")) for _ in range(2)] == [True, False]
    journal.close()


def test_a_note_that_was_cut_short_does_not_count(begun: Path) -> None:
    path = begun / JOURNAL
    path.write_bytes(path.read_bytes()[:-3])
    journal = Journal(begun, {"run": "1"})
    assert journal.features == 1
    journal.close()
    assert (begun / "a.tsv").read_bytes() == b"1111"
    assert path.read_bytes().count(b"\n") == 2
    assert path.read_bytes().endswith(b"\n")


def test_a_file_that_is_shorter_than_noted_goes_back_further(begun: Path) -> None:
    (begun / "a.tsv").write_bytes(b"11112")
    journal = Journal(begun, {"run": "1"})
    assert journal.features == 1
    assert (begun / "a.tsv").read_bytes() == b"1111"
    journal.close()


def test_without_any_note_that_holds_files_are_empty(begun: Path) -> None:
    (begun / "a.tsv").write_bytes(b"1")
    journal = Journal(begun, {"run": "1"})
    assert journal.features == 0
    assert (begun / "a.tsv").read_bytes() == b""
    journal.close()


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
