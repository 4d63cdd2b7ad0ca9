"""Files that grow, and the order of candidates."""

from pathlib import Path

from mzseek.export.writer import Spool, ranked


def test_a_spool_goes_on_where_it_ended(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    assert spool.is_empty
    spool.write("one\n")
    assert (spool.place(), spool.is_empty) == (4, False)
    spool.close()
    again = Spool(tmp_path / "a")
    assert not again.is_empty
    again.write("zwölf\u2028\n")
    assert list(again.lines()) == ["one\n", "zwölf\u2028\n"]
    again.close()
    again.close()


def test_what_is_decided_for_comes_first(make_annotation) -> None:
    annotation = make_annotation(objective="f1", choices={"f1": 1})
    assert ranked(annotation) == [annotation.candidates[1], annotation.candidates[0]]
    assert ranked(make_annotation(candidates=())) == []
