import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mzseek.core.errors import MzseekError
from mzseek.database.sources import hmdb_sources, hmdb_table, read_hmdb

from ..conftest import Rejects, read_twice


@pytest.mark.skipif(find_spec("pyopenms") is None, reason="pyopenms is not installed")
def test_hmdb() -> None:
    rejects: Rejects = []
    records = list(read_hmdb(lambda w, r: rejects.append((w, r))))
    assert rejects == []
    assert len(records) > 100_000
    first = records[0]
    assert first[1:5] == (
        "CN1C=NC(C[C@H](N)C(O)=O)=C1", "HMDB0000001", "1-Methylhistidine", "hmdb",
    )  # fmt: skip
    assert first.where.endswith("HMDB2StructMapping.tsv: line 1")
    assert len({r.identifier for r in records}) == len(records)
    assert 'ADP-ribose 1"-2" cyclic phosphate' in {r.name for r in records}
    assert "pyopenms" not in sys.modules


def test_hmdb_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mzseek.database.sources.importlib.util.find_spec", lambda _: None)
    with pytest.raises(MzseekError, match=r"is not installed: pip install 'mzseek\[hmdb\]'"):
        read_hmdb(print)


def test_hmdb_is_the_table_of_the_package(monkeypatch, tmp_path: Path) -> None:
    table = tmp_path / "HMDB2StructMapping.tsv"
    table.write_text("HMDB:HMDB0000001\t1-Methylhistidine\tCn1cnc(CC(N)C(=O)O)c1\tInChI=x\n")
    monkeypatch.setattr("mzseek.database.sources.hmdb_table", lambda: table)
    sources = hmdb_sources()
    assert sources.files == (table,)
    assert read_twice(sources) == [("Cn1cnc(CC(N)C(=O)O)c1", "HMDB0000001", "hmdb")]


def test_the_installed_package_has_the_table() -> None:
    if find_spec("pyopenms") is None:  # found, not loaded
        pytest.skip("pyopenms is not installed")
    assert hmdb_sources().files == (hmdb_table(),)


def test_hmdb_without_the_package_says_so(monkeypatch) -> None:
    monkeypatch.setattr("mzseek.database.sources.importlib.util.find_spec", lambda name: None)
    with pytest.raises(MzseekError, match="pip install 'mzseek"):
        hmdb_sources()
