import gzip
from pathlib import Path

import pytest

from mzseek.core.errors import InputError
from mzseek.database.records import MoleculeRecord
from mzseek.database.sources import pubchem_sources, read_pubchem

from ..conftest import Rejects, read_twice, shown


def test_pubchem_with_and_without_titles(tmp_path: Path) -> None:
    smiles = b"1\tCC(=O)O\n2\tCCO\nx\tC\n4\t\n7\tCCN\n"
    (tmp_path / "CID-SMILES.gz").write_bytes(gzip.compress(smiles))
    rejects: Rejects = []

    def records() -> list[MoleculeRecord]:
        rejects.clear()
        return list(read_pubchem(tmp_path, lambda w, r: rejects.append((Path(w).name, r))))

    assert shown(records()) == [("CC(=O)O", "CID1", ""), ("CCO", "CID2", ""), ("CCN", "CID7", "")]
    assert rejects == [
        ("CID-SMILES.gz: line 3", "has no CID and tab: 'x\\tC'"),
        ("CID-SMILES.gz: line 4", "has no molecule"),
    ]
    titles = "2\tethanol\n3\tmethane\n7\tethyl amine, naïve\n8\tx\n".encode("latin-1")
    (tmp_path / "CID-Title.gz").write_bytes(gzip.compress(titles))
    assert [r.name for r in records()] == ["", "ethanol", "ethyl amine, naïve"]
    assert {r.source for r in records()} == {"pubchem"}
    (tmp_path / "CID-SMILES").write_text("1" * 5000 + "\tC\n7\tCCN\n")
    (tmp_path / "CID-SMILES.gz").rename(tmp_path / "kept")
    assert [r.identifier for r in records()] == ["CID7"]
    assert rejects == [("CID-SMILES: line 1", f"has no CID and tab: {'1' * 40!r}")]
    (tmp_path / "kept").rename(tmp_path / "CID-SMILES.gz")
    (tmp_path / "CID-Title.gz").write_bytes(b"2\tethanol\n1\tacetic acid\n9\tx\n")
    with pytest.raises(InputError, match=r"CID-Title\.gz: line 2: CID 1 comes behind 2"):
        records()


def test_pubchem_that_is_not_there(tmp_path: Path) -> None:
    message = r"has no CID-SMILES\.gz, expected that file of PubChem's https.*/Compound/Extras/"
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match=message):
            read_pubchem(folder, print)


def test_pubchem_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no CID-SMILES\.gz"):
        pubchem_sources(tmp_path)
    (tmp_path / "CID-SMILES").write_text("702\tCCO\n")
    assert pubchem_sources(tmp_path).files == (tmp_path / "CID-SMILES",)
    (tmp_path / "CID-Title").write_text("702\tEthanol\n")
    sources = pubchem_sources(tmp_path)
    assert sources.files == (tmp_path / "CID-SMILES", tmp_path / "CID-Title")
    assert read_twice(sources) == [("CCO", "CID702", "pubchem")]
