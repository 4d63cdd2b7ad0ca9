"""Writers are found by name and by suffix, and the docs list them."""

from pathlib import Path

import pytest

from mzseek.annotation.writing import FILES, SUFFIXES, Writer
from mzseek.annotation.writing.registry import suffix_of
from mzseek.errors import InputError


def test_every_writer_loads() -> None:
    assert all(issubclass(kind, Writer) for kind in [*FILES.values(), *SUFFIXES.values()])


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV", "b.c.Json", "x.mzTab", "y.graphml"])
def test_suffixes_in_any_case(name: str) -> None:
    assert suffix_of(name) == Path(name).suffix.lower()


def test_an_unknown_suffix_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match=r"a\.xlsx: .*\.tsv, \.json, \.mztab"):
        suffix_of("a.xlsx")
    assert suffix_of("a.html", (".html",)) == ".html"
