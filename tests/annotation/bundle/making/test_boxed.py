"""Molecules for the database in the box."""

from pathlib import Path

import pytest

from mzseek.annotation.bundle.making.boxed import boxed_molecules
from mzseek.chem.describe import describe_structure
from mzseek.errors import BundleError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "molecules.tsv"
    path.write_text("smiles\tsource\tname\tid\nCCO\tchemicals\tethanol\t702\nCCN\tother\t\t\n"
                    "CO\tchemicals\t\t\nC1C\tchemicals\t\t\n")  # fmt: skip
    return path


def test_molecules_of_the_sources_are_taken(table: Path) -> None:
    library = [describe_structure("OCC"), describe_structure("CCCC")]
    rejects: list[tuple[str, str]] = []
    methanol = describe_structure("CO").key
    box = boxed_molecules(
        library, [table], ["chemicals"], {methanol: "methanol"},
        jobs=1, report=lambda where, why: rejects.append((where, why)),
    )  # fmt: skip
    assert box.smiles == ["CO", "CCO", "CCCC"]
    ethanol = box.by_key(library[0].key).table.to_pylist()[0]
    assert ethanol["sources"] == ["library", "chemicals"]
    assert (ethanol["identifiers"], ethanol["names"]) == (["chemicals:702"], ["ethanol"])
    assert box.by_key(methanol).table["names"].to_pylist() == [["methanol"]]
    assert [why for _, why in rejects] == ["SMILES 'C1C': not valid SMILES"]


def test_all_sources_by_default(table: Path) -> None:
    box = boxed_molecules([], [table], jobs=1, report=lambda where, why: None)
    assert box.collections() == ["chemicals", "other"]
    assert len(boxed_molecules([], jobs=1, report=print)) == 0


def test_a_source_that_no_molecule_comes_from_is_told(table: Path) -> None:
    with pytest.raises(BundleError, match="comes from the source 'chemical'"):
        boxed_molecules([], [table], ["chemical"], jobs=1, report=print)
