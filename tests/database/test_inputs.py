from importlib.util import find_spec
from pathlib import Path

import pytest

from mzseek.database.inputs import file_sources, hmdb_sources, pubchem_sources
from mzseek.database.sources import hmdb_table
from mzseek.errors import InputError, MzseekError


def texts(sources) -> list[tuple[str, str, str]]:
    found = [(r.text, r.identifier, r.source) for r in sources.read(lambda *_: None)]
    again = [(r.text, r.identifier, r.source) for r in sources.read(lambda *_: None)]
    assert found == again  # a source can be read as often as is wanted
    return found


def test_files_with_their_options(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("structure,nr\nCCO,1\n")
    (tmp_path / "b.smi").write_text("CCN 2\n")
    paths = [tmp_path / "a.csv", tmp_path / "b.smi"]
    sources = file_sources(paths, source="mine", columns={"smiles": "structure", "id": "nr"})
    assert sources.files == tuple(paths)
    assert sources.options == {"source": "mine", "columns": {"smiles": "structure", "id": "nr"}}
    assert texts(file_sources(paths[:1], columns={"id": "nr"})) == [("CCO", "1", "a")]
    assert texts(file_sources(paths[1:], source="mine"))[0][2] == "mine"


def test_hmdb_is_the_table_of_the_package(monkeypatch, tmp_path: Path) -> None:
    table = tmp_path / "HMDB2StructMapping.tsv"
    table.write_text("HMDB:HMDB0000001\t1-Methylhistidine\tCn1cnc(CC(N)C(=O)O)c1\tInChI=x\n")
    for name in ("inputs", "sources"):
        monkeypatch.setattr(f"mzseek.database.{name}.hmdb_table", lambda: table)
    sources = hmdb_sources()
    assert sources.files == (table,)
    assert texts(sources) == [("Cn1cnc(CC(N)C(=O)O)c1", "HMDB0000001", "hmdb")]


def test_the_installed_package_has_the_table() -> None:
    if find_spec("pyopenms") is None:  # found, not loaded
        pytest.skip("pyopenms is not installed")
    assert hmdb_sources().files == (hmdb_table(),)


def test_hmdb_without_the_package_says_so(monkeypatch) -> None:
    monkeypatch.setattr("mzseek.database.sources.importlib.util.find_spec", lambda name: None)
    with pytest.raises(MzseekError, match="pip install 'mzseek"):
        hmdb_sources()


def test_pubchem_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no CID-SMILES\.gz"):
        pubchem_sources(tmp_path)
    (tmp_path / "CID-SMILES").write_text("702\tCCO\n")
    assert pubchem_sources(tmp_path).files == (tmp_path / "CID-SMILES",)
    (tmp_path / "CID-Title").write_text("702\tEthanol\n")
    sources = pubchem_sources(tmp_path)
    assert sources.files == (tmp_path / "CID-SMILES", tmp_path / "CID-Title")
    assert texts(sources) == [("CCO", "CID702", "pubchem")]
