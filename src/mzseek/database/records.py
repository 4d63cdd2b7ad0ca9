"""Molecule records, and the rows of a database."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rdkit.Chem import Mol

from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import describe_molecules, parse_mol_block, parse_structure, standardise
from mzseek.core.errors import MoleculeError
from mzseek.io.skipped import Report
from mzseek.io.text_tables import cell_texts


class MoleculeRecord(NamedTuple):
    """A molecule of a source, not parsed yet.

    Attributes
    ----------
    where : str
        The file and the line or record, for messages.
    text : str
        SMILES, or InChI (with or without its prefix), or a MOL block where ``is_block``.
    identifier, name : str
        As in the source; empty where it states none.
    source : str
        The collection it comes from.
    is_block : bool
        The text is a MOL block.
    is_listed : bool
        Identifier, name and source are lists in one cell each, as in an export, and identifiers
        include their sources.
    feature : str or None
        The feature that it is a candidate for; None where its file names none.
    """

    where: str
    text: str
    identifier: str = ""
    name: str = ""
    source: str = ""
    is_block: bool = False
    is_listed: bool = False
    feature: str | None = None


# Yields the records of a file; gets a report for skipped records and the collection's name.
Reader = Callable[[Report, str], Iterator[MoleculeRecord]]


@dataclass(frozen=True)
class Sources:
    """Molecules to build from.

    Attributes
    ----------
    read : callable of a report
        Yields the records, in the same order every time.
    files : tuple of Path
        The files that they come from; their content is part of what makes a store.
    options : dict
        How they are read, as plain data.
    """

    read: Callable[[Report], Iterable[MoleculeRecord]]
    files: tuple[Path, ...]
    options: dict[str, Any]


def part_schema(kind: str) -> pa.Schema:
    """Return the columns of described molecules, before equal ones are merged."""
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
    """Return the bytes of a packed fingerprint: whole words of 64 bits."""
    return -(-fingerprint_kind(kind).bits // 64) * 8


class DescribedBatch(NamedTuple):
    """Described records of a batch in their order, and skipped ones with their reasons."""

    table: pa.Table
    skipped: list[tuple[str, str]]


class RecordsAt(NamedTuple):
    """A batch of records, and the index of its first among all."""

    records: Sequence[MoleculeRecord]
    first: int


def describe_records(batch: RecordsAt, kind: str, keep_stereo: bool = False) -> DescribedBatch:
    """Standardise molecules and compute the columns of the store.

    ``kind`` is that of the fingerprints; ``keep_stereo`` is of the SMILES.
    """
    molecules: list[Mol] = []
    usable: list[int] = []
    skipped: list[tuple[str, str]] = []
    for index, record in enumerate(batch.records):
        try:
            parse = parse_mol_block if record.is_block else parse_structure
            molecules.append(standardise(parse(record.text), keep_stereo=keep_stereo))
            usable.append(index)
        except MoleculeError as error:
            skipped.append((record.where, error.reason))
    bits = molecule_rows(molecules, kind, threads=1)
    records = [batch.records[index] for index in usable]
    described = describe_molecules(molecules)
    table = pa.table(
        {
            "key": [molecule.key for molecule in described],
            "smiles": [molecule.smiles for molecule in described],
            "formula": [molecule.formula for molecule in described],
            "mass": [molecule.rounded_mass for molecule in described],
            "bits": pa.array([len(row) for row in bits], pa.uint16()),
            "fingerprint": packed(bits, kind),
            "sources": [_listed(record, record.source) for record in records],
            "identifiers": [_listed(record, _identified(record)) for record in records],
            "names": [_listed(record, record.name) for record in records],
            "place": pa.array([batch.first + index for index in usable], pa.int64()),
        },
        schema=part_schema(kind),
    )
    return DescribedBatch(table, skipped)


def packed(rows: Sequence[npt.NDArray[np.uint16]], kind: str) -> pa.Array:
    """Pack lists of set bits into fingerprints, the first bit of each byte highest."""
    width = fingerprint_bytes(kind)
    dense = np.zeros((len(rows), 8 * width), bool)
    if len(rows):
        dense[np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)] = (
            True
        )
    data = np.packbits(dense, axis=1).tobytes()
    buffers = [None, pa.py_buffer(data)]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(rows), buffers)


def _listed(record: MoleculeRecord, text: str) -> list[str]:
    if record.is_listed:
        return cell_texts(text)
    return [text] if text else []


def _identified(record: MoleculeRecord) -> str:
    """Return an identifier with its source, since 42 is an identifier in many."""
    if not record.identifier or record.is_listed:
        return record.identifier
    return f"{record.source}:{record.identifier}" if record.source else record.identifier
