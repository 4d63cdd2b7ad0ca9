"""Molecules of a source turned into rows of the store."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek.chem.fingerprinting import fingerprint_kind, molecule_rows
from mzseek.chem.molecule import block_of, inchi_text, parse_inchi, parse_molecule
from mzseek.chem.standard import standardise, usual_tautomer
from mzseek.database.record import Record
from mzseek.errors import MoleculeError
from mzseek.files.cells import list_texts

MASS_DIGITS = 6


def part_schema(kind: str) -> pa.Schema:
    """Columns of described molecules, before equal ones are merged."""
    return pa.schema(
        [
            ("key", pa.string()),
            ("smiles", pa.string()),
            ("formula", pa.string()),
            ("mass", pa.float64()),
            ("bits", pa.uint16()),
            ("fingerprint", pa.binary(fingerprint_bytes(kind))),
            ("sources", pa.list_(pa.string())),
            ("identifiers", pa.list_(pa.string())),
            ("names", pa.list_(pa.string())),
            ("place", pa.int64()),
        ]
    )


def fingerprint_bytes(kind: str) -> int:
    """Bytes of a packed fingerprint: whole words of 64 bits, so that they can be read as such."""
    return -(-fingerprint_kind(kind).bits // 64) * 8


@dataclass(frozen=True)
class Described:
    """What became of a batch of records.

    Attributes
    ----------
    table : pyarrow.Table
        The good ones, in their order.
    rejects : list of (str, str)
        Where the others stood, and why they were refused.
    """

    table: pa.Table
    rejects: list[tuple[str, str]]


@dataclass(frozen=True)
class Work:
    """A batch of records, and the place of its first among all.

    Attributes
    ----------
    records : sequence of Record
    first : int
    """

    records: Sequence[Record]
    first: int


def describe(work: Work, kind: str) -> Described:
    """Standardise molecules and compute all that the store keeps of them.

    Parameters
    ----------
    work : Work
    kind : str
        Fingerprint.

    Returns
    -------
    Described
    """
    molecules: list[Mol] = []
    kept: list[int] = []
    rejects: list[tuple[str, str]] = []
    for place, record in enumerate(work.records):
        try:
            molecules.append(standardise(_parse(record)))
            kept.append(place)
        except MoleculeError as error:
            rejects.append((record.where, str(error)))
    rows = molecule_rows(molecules, kind, threads=1)
    records = [work.records[place] for place in kept]
    smiles = [Chem.MolToSmiles(molecule) for molecule in molecules]
    blocks = [block_of(molecule) for molecule in molecules]
    # What InChI cannot name is told apart by its SMILES, which is no key of anything else.
    keys = [block or f"SMILES={text}" for block, text in zip(blocks, smiles, strict=True)]
    table = pa.table(
        {
            "key": keys,
            "smiles": smiles,
            "formula": [rdMolDescriptors.CalcMolFormula(molecule) for molecule in molecules],
            # Rounded, since tautomers sum the same masses in another order.
            "mass": [round(rdMolDescriptors.CalcExactMolWt(m), MASS_DIGITS) for m in molecules],
            "bits": pa.array([len(row) for row in rows], pa.uint16()),
            "fingerprint": packed(rows, kind),
            "sources": [_listed(record, record.source) for record in records],
            "identifiers": [_listed(record, _identified(record)) for record in records],
            "names": [_listed(record, record.name) for record in records],
            "place": pa.array([work.first + place for place in kept], pa.int64()),
        },
        schema=part_schema(kind),
    )
    return Described(table, rejects)


def packed(rows: Sequence[npt.NDArray[np.uint16]], kind: str) -> pa.Array:
    """Lists of set bits as packed fingerprints, the first bit of each byte highest."""
    width = fingerprint_bytes(kind)
    dense = np.zeros((len(rows), 8 * width), bool)
    if len(rows):
        dense[np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)] = (
            True
        )
    data = np.packbits(dense, axis=1).tobytes()
    buffers = [None, pa.py_buffer(data)]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), buffers)


def _listed(record: Record, text: str) -> list[str]:
    if record.is_listed:
        return list_texts(text)
    return [text] if text else []


def _identified(record: Record) -> str:
    """A source's own number, with the source, since 42 is an identifier in many."""
    if not record.identifier or record.is_listed:
        return record.identifier
    return f"{record.source}:{record.identifier}" if record.source else record.identifier


def _parse(record: Record) -> Mol:
    if inchi_text(record.text):
        return usual_tautomer(parse_inchi(record.text))
    if not record.is_block:
        return parse_molecule(record.text)
    with rdBase.BlockLogs():
        molecule = Chem.MolFromMolBlock(record.text)
    if molecule is None or molecule.GetNumAtoms() == 0:
        raise MoleculeError("the MOL block cannot be read as a molecule")
    return molecule
