"""What is set aside: where, and why, always from the beginning."""

from pathlib import Path

from mzseek.export.tables import SkippedTable, read_set_aside


def test_rows_are_written_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "set-aside.tsv"
    path.write_text("of an earlier run\n")
    aside = SkippedTable(path)
    aside("a.mgf: record 3", "has no peaks")
    aside("=cmd", "two\nlines\tand \x1b[31mred")
    aside.close()
    assert aside.count == 2
    assert path.read_text("utf-8") == (
        "where\treason\na.mgf: record 3\thas no peaks\n'=cmd\ttwo lines and \ufffd[31mred\n"
    )


def test_rows_are_read_again(tmp_path: Path) -> None:
    aside = SkippedTable(tmp_path / "a")
    rows = [("a.mgf", "has no peaks"), ('"b" c.mgf', 'says "x"')]
    for where, reason in rows:
        aside(where, reason)
    aside.flush()
    assert list(read_set_aside(tmp_path / "a")) == rows
    aside.close()
