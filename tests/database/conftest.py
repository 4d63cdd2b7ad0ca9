"""Small stores of molecules."""

import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest
from rdkit import DataStructs

from mzseek.database import Database, MoleculeRecord, Sources, build_database
from mzseek.database.sources import file_sources, read_molecules
from mzseek.parallel import LocalEngine

from ..molecules import MOLECULES

# More neighbours than InChI allows: a molecule without an InChIKey.
NAMELESS = "[U]" + "(F)" * 21
# One skeleton, three masses.
METHANES = ["C", "[2H]C", "[2H]C[2H]"]

Rejects = list[tuple[str, str]]


def read(*paths: Path, **options) -> tuple[list[MoleculeRecord], Rejects]:
    rejects: Rejects = []
    records = list(read_molecules(paths, lambda w, r: rejects.append((w, r)), **options))
    return records, [(where.removeprefix(f"{paths[0]}: "), reason) for where, reason in rejects]


def read_as(path: Path, data: str | bytes, **options) -> tuple[list[MoleculeRecord], Rejects]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read(path, **options)


def shown(records: list[MoleculeRecord]) -> list[tuple[str, str, str]]:
    return [(record.text, record.identifier, record.name) for record in records]


def read_twice(sources) -> list[tuple[str, str, str]]:
    found = [(r.text, r.identifier, r.source) for r in sources.read(lambda *_: None)]
    again = [(r.text, r.identifier, r.source) for r in sources.read(lambda *_: None)]
    assert found == again  # a source can be read as often as is wanted
    return found


def write_table(path: Path, rows: Iterable[tuple[str, ...]]) -> Path:
    """Molecules with identifier, name and source, as a table."""
    lines = ["\t".join((*row, "", "", "")[:4]) for row in rows]
    path.write_text("smiles\tid\tname\tsource\n" + "".join(f"{line}\n" for line in lines))
    return path


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[object]]]) -> Path:
    """A workbook as Excel writes it, the few parts that it needs."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    docs = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def cell(value: object) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return "<c/>" if value is None else f"<c><v>{value}</v></c>"

    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
        f'Type="{docs}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{docs}"><sheets>'
        + "".join(
            f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="{docs}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        + "</Relationships>",
    }
    for number, rows in enumerate(sheets.values(), 1):
        data = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{data}</sheetData></worksheet>'
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def build(sources: Sources | Path, out: Path, **options) -> Database:
    """A store made in this process."""
    if isinstance(sources, Path):
        sources = file_sources([sources])
    return build_database(sources, out, **{"engine": LocalEngine(1), **options})


def all_rows(database: Database) -> list[dict]:
    columns = ["key", "smiles", "formula", "mass", "bits", "fingerprint"]
    table = database.query(
        f"SELECT {', '.join(columns)}, sources, identifiers, names FROM molecules "
        "ORDER BY file_row_number"
    )
    return table.to_pylist()


def vector(fingerprint: bytes) -> DataStructs.ExplicitBitVect:
    """A packed fingerprint as RDKit's."""
    made = DataStructs.ExplicitBitVect(8 * len(fingerprint))
    bits = np.unpackbits(np.frombuffer(fingerprint, np.uint8))
    made.SetBitsFromList(np.flatnonzero(bits).tolist())
    return made


@pytest.fixture(scope="session")
def pool() -> list[str]:
    """Many isomers, isotopologues, a molecule without a key, and one without fingerprint bits."""
    known = MOLECULES[:300]
    return [*known, *METHANES, NAMELESS]


@pytest.fixture(scope="session")
def store(pool: list[str], tmp_path_factory: pytest.TempPathFactory) -> Database:
    """A store of the pool; tests must leave it as it is."""
    folder = tmp_path_factory.mktemp("store")
    sources = ("one", "two", "three")
    rows = [(s, f"{n}", f"molecule {n}", sources[n % 3]) for n, s in enumerate(pool)]
    return build(write_table(folder / "pool.tsv", rows), folder / "store")


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[..., Database]:
    """A new store of some molecules."""

    def make(rows: Iterable[tuple[str, ...]], name: str = "store", **options) -> Database:
        return build(write_table(tmp_path / f"{name}.tsv", rows), tmp_path / name, **options)

    return make
