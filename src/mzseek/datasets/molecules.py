"""Collect the spectra and lists of a data set, and describe each molecule once."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol
from scipy.sparse import csr_array

from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import DescribedMolecule, describe_molecules, parse_molecule, standardise
from mzseek.core.errors import DatasetError, MoleculeError, Reason
from mzseek.core.ragged import pointers
from mzseek.core.registry import FOLDS
from mzseek.datasets.files import read_candidates, read_table
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches
from mzseek.spectra.binning import HIGH, LOW
from mzseek.spectra.records import leading_number

_BATCH = 1_000


class FingerprintedMolecule(NamedTuple):
    """A described molecule with the set bits of its fingerprint, rising."""

    described: DescribedMolecule
    bits: npt.NDArray[np.uint16]


def describe_batch(
    smiles: Sequence[str], kind: str, *, standard: bool = False, keep_stereo: bool = False
) -> list[FingerprintedMolecule | str]:
    """Describe molecules as they are written, or standardised; the reason where one is refused.

    RDKit holds Python's lock while it parses and while InChI works, so batches go to processes,
    and each of them uses one thread.
    """
    parsed: list[Mol | str] = []
    for text in smiles:
        try:
            molecule = parse_molecule(text)
            parsed.append(standardise(molecule, keep_stereo=keep_stereo) if standard else molecule)
        except MoleculeError as error:
            parsed.append(error.reason)
    molecules = [molecule for molecule in parsed if not isinstance(molecule, str)]
    rows = molecule_rows(molecules, kind, threads=1)
    described = map(FingerprintedMolecule, describe_molecules(molecules), rows)
    return [molecule if isinstance(molecule, str) else next(described) for molecule in parsed]


@dataclass
class MoleculeTable:
    """Distinct structures, and which of them each given SMILES stands for.

    Two SMILES stand for one structure when their canonical SMILES are equal: fingerprints are of
    structures as they are written. Tautomers and stereo isomers are rows of their own, and one
    molecule by the identity rule of `mzseek.chem.molecules`.

    Attributes
    ----------
    inchikey14 : S14 array
        First InChIKey blocks; empty where InChI has no name.
    fingerprint_indptr : int64 array, shape (molecules + 1,)
    fingerprint_bits : uint16 array
        Set bits, rising, one molecule after the other.
    index : int32 array, shape (given SMILES,)
        Row in the table, or -1 where the SMILES was refused.
    faults : dict of int to str
        Reason for each refused SMILES.
    """

    kind: str
    smiles: list[str]
    formulas: list[str]
    inchikey14: npt.NDArray[np.bytes_]
    masses: npt.NDArray[np.float64]
    fingerprint_indptr: npt.NDArray[np.int64]
    fingerprint_bits: npt.NDArray[np.uint16]
    index: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    faults: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.smiles)

    def fingerprints(self) -> csr_array:
        """0/1 rows of all molecules."""
        bits = self.fingerprint_bits.astype(np.int32)
        shape = (len(self), fingerprint_kind(self.kind).bits)
        return csr_array((np.ones(len(bits), np.int32), bits, self.fingerprint_indptr), shape=shape)

    @cached_property
    def fingerprint_classes(self) -> npt.NDArray[np.int64]:
        """A number for each molecule; equal numbers mean equal fingerprints."""
        return row_classes(self.fingerprint_bits, self.fingerprint_indptr)

    @cached_property
    def inchikey_classes(self) -> npt.NDArray[np.int64]:
        """A number for each molecule; equal numbers mean equal first InChIKey blocks.

        Molecules that InChI cannot name are each alone in their class.
        """
        classes = np.unique(self.inchikey14, return_inverse=True)[1].astype(np.int64)
        nameless = self.inchikey14 == b""
        classes[nameless] = -1 - np.arange(int(nameless.sum()))
        return classes


def build_molecule_table(
    smiles: Sequence[str],
    kind: str = "morgan2",
    jobs: int | None = None,
    progress: Progress = silent,
) -> MoleculeTable:
    """Describe molecules in ``jobs`` processes (all cores by default); merge equal ones."""
    row_of: dict[str, int] = {}
    unique: list[DescribedMolecule] = []
    bits, counts = [np.empty(0, np.uint16)], []
    index = np.full(len(smiles), -1, dtype=np.int32)
    faults: dict[int, str] = {}
    done = 0
    for batch, described in in_batches(partial(describe_batch, kind=kind), smiles, _BATCH, jobs):
        new = [bits[0][:0]]
        for number, molecule in enumerate(described, done):
            if isinstance(molecule, str):
                faults[number] = molecule
                continue
            row = index[number] = row_of.setdefault(molecule.described.smiles, len(unique))
            if row == len(unique):
                unique.append(molecule.described)
                new.append(molecule.bits)
                counts.append(len(molecule.bits))
        bits.append(np.concatenate(new))
        done += len(batch)
        progress("molecules", done, len(smiles))
    return MoleculeTable(
        kind=kind,
        smiles=list(row_of),
        formulas=[molecule.formula for molecule in unique],
        inchikey14=np.array([molecule.inchikey14 for molecule in unique], dtype="S14"),
        masses=np.array([molecule.mass for molecule in unique], dtype=np.float64),
        fingerprint_indptr=pointers(counts),
        fingerprint_bits=np.concatenate(bits),
        index=index,
        faults=faults,
    )


def row_classes(
    values: npt.NDArray[np.uint16], indptr: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """A number for each ragged row; equal numbers mean equal rows.

    Rows are compared by a 128-bit digest: exact for every purpose, at 16 bytes a row.
    """
    data = np.ascontiguousarray(values).tobytes()
    size = values.itemsize
    bounds = (indptr * size).tolist()
    digests = b"".join(
        blake2b(data[start:end], digest_size=16).digest()
        for start, end in itertools.pairwise(bounds)
    )
    return np.unique(np.frombuffer(digests, dtype="V16"), return_inverse=True)[1].astype(np.int64)


@dataclass
class RawLists:
    """Lists of one setting: SMILES numbers of the keys, list lengths, SMILES numbers in them."""

    source: str
    keys: array[int] = field(default_factory=lambda: array("i"))
    counts: array[int] = field(default_factory=lambda: array("i"))
    members: array[int] = field(default_factory=lambda: array("i"))


@dataclass
class Collected:
    """What was read, before any molecule was parsed; one entry for each spectrum where not said.

    Attributes
    ----------
    smiles : dict of str to int
        Each distinct SMILES of the data set, and its number.
    spectrum_smiles : int32
        Number of each spectrum's SMILES.
    stated_formulas, stated_masses, stated_inchikey14
        Values of the table itself (empty or NaN where it has none).
    lists : dict of str to RawLists
        Candidate lists of each retrieval setting.
    skipped : list of (where, reason)
    """

    smiles: dict[str, int] = field(default_factory=dict)
    identifiers: list[str] = field(default_factory=list)
    spectrum_smiles: array[int] = field(default_factory=lambda: array("i"))
    folds: array[int] = field(default_factory=lambda: array("b"))
    precursors: array[float] = field(default_factory=lambda: array("d"))
    energies: array[float] = field(default_factory=lambda: array("f"))
    adducts: list[str] = field(default_factory=list)
    adduct_codes: array[int] = field(default_factory=lambda: array("h"))
    peak_counts: array[int] = field(default_factory=lambda: array("i"))
    mz: array[float] = field(default_factory=lambda: array("d"))
    intensities: array[float] = field(default_factory=lambda: array("f"))
    stated_formulas: list[str] = field(default_factory=list)
    stated_masses: array[float] = field(default_factory=lambda: array("d"))
    stated_inchikey14: list[str] = field(default_factory=list)
    lists: dict[str, RawLists] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def number(self, smiles: str) -> int:
        """Number of a SMILES, new or known."""
        return self.smiles.setdefault(smiles, len(self.smiles))

    def skip(self, where: str, reason: str) -> None:
        """Note a record that cannot be used."""
        self.skipped.append((where, reason))


def collect(
    spectra: Path,
    candidates: Mapping[str, Path],
    *,
    low: float = LOW,
    high: float = HIGH,
    intensity_floor: float = 0.0,
    progress: Progress = silent,
) -> Collected:
    """Read a data set's files; records that cannot be used are skipped.

    A spectrum needs a peak between ``low`` and ``high``.
    """
    collected = Collected()
    adduct_code: dict[str, int] = {}
    for spectrum in read_table(spectra, collected.skip, intensity_floor):
        if not ((spectrum.mz >= low) & (spectrum.mz <= high)).any():
            reason = f"has no peak between m/z {low:g} and {high:g}"
            collected.skip(f"{spectra}: {spectrum.identifier}", Reason(reason, "no-peaks"))
            continue
        stated = spectrum.metadata
        fold = stated.get("fold")
        adduct = spectrum.adduct
        collected.identifiers.append(spectrum.identifier)
        collected.spectrum_smiles.append(collected.number(stated["smiles"]))
        collected.folds.append(FOLDS.index(fold) if fold in FOLDS else -1)
        collected.precursors.append(spectrum.precursor_mz)
        collected.energies.append(_number(stated.get("collision_energy", "")))
        collected.adduct_codes.append(
            -1 if adduct is None else adduct_code.setdefault(adduct, len(adduct_code))
        )
        collected.stated_formulas.append(stated.get("formula", ""))
        collected.stated_masses.append(_number(stated.get("parent_mass", "")))
        collected.stated_inchikey14.append(stated.get("inchikey", "")[:14])
        collected.peak_counts.append(len(spectrum))
        collected.mz.frombytes(spectrum.mz.tobytes())
        collected.intensities.frombytes(spectrum.intensities.astype(np.float32).tobytes())
        if len(collected.identifiers) % 1000 == 0:
            progress("spectra", len(collected.identifiers))
    collected.adducts = list(adduct_code)
    progress("spectra", len(collected.identifiers))
    if not collected.identifiers:
        first = f" (the first: {collected.skipped[0][1]})" if collected.skipped else ""
        raise DatasetError(f"{spectra}: no spectrum could be used{first}")
    for name, path in candidates.items():
        lists = collected.lists[name] = RawLists(str(path))
        for key, members in read_candidates(path, collected.skip):
            lists.keys.append(collected.number(key))
            lists.counts.append(len(members))
            lists.members.extend([collected.number(member) for member in members])
            if len(lists.keys) % 500 == 0:
                progress(f"{name} candidates", len(lists.keys))
        progress(f"{name} candidates", len(lists.keys))
    return collected


def _number(text: str) -> float:
    """Number that a field begins with (``30 eV``, ``35 % (nominal)``), else NaN."""
    value = leading_number(text)
    return float("nan") if value is None or math.isinf(value) else value


@dataclass(frozen=True)
class ResolvedLists:
    """Candidates whose SMILES, and whose list's key, could be parsed; in the file's order.

    Attributes
    ----------
    truth : int64, one a list
        The molecule that the key stands for, or -1.
    list_index, member, target : int64, one a candidate
        Its list, its molecule, and its list's truth.
    same_fingerprint, same_inchikey : bool, one a candidate
        Whether it is, in that sense, the truth.
    """

    truth: npt.NDArray[np.int64]
    list_index: npt.NDArray[np.int64]
    member: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    same_fingerprint: npt.NDArray[np.bool_]
    same_inchikey: npt.NDArray[np.bool_]

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """Whether each list holds its truth, in one sense or the other."""
        has = np.zeros(len(self.truth), dtype=bool)
        has[self.list_index[self.same_fingerprint | self.same_inchikey]] = True
        return has

    def is_first(self, molecules: int) -> npt.NDArray[np.bool_]:
        """Whether each candidate stands in its list for the first time."""
        first = np.zeros(len(self.member), dtype=bool)
        first[np.unique(self.list_index * molecules + self.member, return_index=True)[1]] = True
        return first


def resolve(lists: RawLists, table: MoleculeTable) -> ResolvedLists:
    """Look the lists' SMILES up in the table."""
    truth = table.index[np.frombuffer(lists.keys, dtype=np.int32)].astype(np.int64)
    counts = np.frombuffer(lists.counts, dtype=np.int32)
    list_index = np.repeat(np.arange(len(counts)), counts)
    member = table.index[np.frombuffer(lists.members, dtype=np.int32)].astype(np.int64)
    valid = (member >= 0) & (truth[list_index] >= 0)
    list_index, member = list_index[valid], member[valid]
    target = truth[list_index]
    prints, keys = table.fingerprint_classes, table.inchikey_classes
    return ResolvedLists(
        truth, list_index, member, target,
        prints[member] == prints[target],
        keys[member] == keys[target],
    )  # fmt: skip
