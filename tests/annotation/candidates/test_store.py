"""Candidates from a database on disk."""

import pytest

from mzseek.annotation.sources import StoreSource
from mzseek.core.errors import DatabaseError
from mzseek.database import build_database, file_sources


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    (folder / "mine.csv").write_text("id,name,smiles\n1,ethanol,CCO\n2,ether,COC\n3,propane,CCC\n")
    build_database(file_sources([folder / "mine.csv"]), folder / "db")
    return StoreSource.open(folder / "db")


def test_by_mass_with_all_that_the_store_knows(source):
    found = source.within(46.041865, 0.0005)
    assert {each.name for each in found} == {"ethanol", "ether"}
    one = next(each for each in found if each.name == "ethanol")
    assert (one.key, one.formula, one.sources) == ("LFQSCWFLJHTTHZ", "C2H6O", ("mine",))
    assert one.identifiers == ("mine:1",)


def test_facts(source):
    facts = source.facts()
    assert (facts["kind"], facts["molecules"], source.label) == ("database", 3, "db")
    assert all(len(digest) == 64 for digest in facts["sha256"].values())


def test_no_store(tmp_path):
    with pytest.raises(DatabaseError):
        StoreSource.open(tmp_path)
