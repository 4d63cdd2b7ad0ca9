"""Described candidates as files: what comes back is what was written."""

import pytest

from mzseek.annotation.candidates import Molecule
from mzseek.annotation.sources import ListedSource, file_source, open_described, save_described


@pytest.mark.parametrize(
    "text",
    [
        "smiles,name,id\nCCO,ethanol,7\nCOC,,\nOCC,spirit,8\n",
        "feature,smiles\n1,CCO\n,COC\n1,CCC\nß,CCO\n",
    ],
)
def test_a_file_comes_back_as_it_was_described(tmp_path, text):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    source = file_source(path, [])
    save_described(tmp_path, source)
    again = open_described(tmp_path)
    path.unlink()
    assert (again.label, again.facts(), again.by_feature) == (
        source.label, source.facts(), source.by_feature)  # fmt: skip
    assert again.molecules == source.molecules
    assert again.lists == source.lists
    assert again.within(46.041865, 0.001) == source.within(46.041865, 0.001)


def test_sources_and_identifiers_are_kept(tmp_path):
    one = Molecule("CCO", "LFQSCWFLJHTTHZ", "C2H6O", 46.041865, "x", ("a", "b"), ("1",))
    save_described(tmp_path, ListedSource("mine", [one], {"kind": "file"}))
    assert open_described(tmp_path).molecules == [one]
