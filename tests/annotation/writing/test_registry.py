"""Writers are found by name and by suffix, and the docs list them."""

import re
from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.export import tables as candidates
from mzseek.export import tables as peaks
from mzseek.export import tables as summary
from mzseek.export.output import FILES, SUFFIXES, suffix_of
from mzseek.export.writer import Writer

DOCS = Path(__file__).resolve().parents[3] / "docs" / "annotate-output.md"


def documented(title: str) -> list[str]:
    """Names in the first column of the table below a title."""
    section = DOCS.read_text("utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in rows for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize(
    ("title", "columns"),
    [
        ("summary.tsv", list(summary.SUMMARY_COLUMNS)),
        ("candidates.tsv", [*candidates.FIRST, f"{candidates.CHANNEL}…", *candidates.LAST]),
        ("peaks.tsv", list(peaks.PEAK_COLUMNS)),
    ],
)
def test_every_column_is_documented(title: str, columns: list[str]) -> None:
    assert sorted(documented(title)) == sorted(columns)


def test_every_file_and_suffix_is_documented() -> None:
    text = DOCS.read_text("utf-8").partition("\n## ")[0]
    assert [name for name in [*FILES, *SUFFIXES] if f"`{name}`" not in text] == []


def test_every_writer_loads() -> None:
    assert all(issubclass(kind, Writer) for kind in [*FILES.values(), *SUFFIXES.values()])


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV", "b.c.Json", "x.mzTab", "y.graphml"])
def test_suffixes_in_any_case(name: str) -> None:
    assert suffix_of(name) == Path(name).suffix.lower()


def test_an_unknown_suffix_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match=r"a\.xlsx: .*\.tsv, \.json, \.mztab"):
        suffix_of("a.xlsx")
    assert suffix_of("a.html", (".html",)) == ".html"
