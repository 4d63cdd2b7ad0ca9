"""Formulas that users know, as tables."""

import pytest

from mzseek.annotation.candidates import read_formulas
from mzseek.core.errors import InputError


def written(tmp_path, text):
    path = tmp_path / "formulas.csv"
    path.write_text(text)
    return path


def test_read_in_any_order_of_elements(tmp_path):
    path = written(tmp_path, "Feature ID,molecularFormula\n7,OC2H6\n8,C8H10N4O2\n9,\n")
    assert read_formulas(path) == {"7": "C2H6O", "8": "C8H10N4O2"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("feature,mass\n7,1\n", "expected a table with columns feature and formula"),
        ("feature,formula\n7,Xx\n", "line 2: formula 'Xx'"),
        ("feature,formula\n7,CH4\n7,C2H6\n", "line 3: feature '7' has two formulas"),
        ("feature,formula\n7,\n", "names no formula"),
    ],
)
def test_refused(tmp_path, text, reason):
    with pytest.raises(InputError, match=reason):
        read_formulas(written(tmp_path, text))
