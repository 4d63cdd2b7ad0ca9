"""Collect the spectra and lists of a data set, and describe each molecule once."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol
from scipy.sparse import csr_array

from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import DescribedMolecule, describe_molecules, parse_molecule
from mzseek.core.errors import DatasetError, MoleculeError
from mzseek.core.ragged import Ragged, pointers
from mzseek.core.registry import FOLDS
from mzseek.datasets.files import read_candidates, read_table
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches
from mzseek.spectra.binning import HIGH, LOW
from mzseek.spectra.parsing import leading_number

_BATCH = 1_000


@dataclass
class MoleculeBatch:
    """A batch of molecules; entry i belongs to the batch's i-th SMILES.

    Attributes
    ----------
    molecules : list of DescribedMolecule or str
        As they are written, not standardised; the reason where one was refused.
    bits : uint16 array
        Set bits of all molecules, concatenated.
    counts : int32 array
        Set bits of each.
    """

    molecules: list[DescribedMolecule | str]
    bits: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.int32]


def describe_batch(smiles: Sequence[str], kind: str) -> MoleculeBatch:
    """Everything that the table holds of these molecules.

    RDKit holds Python's lock while it parses and while InChI works, so batches go to processes,
    and each of them uses one thread.
    """
    parsed: list[Mol | None] = []
    faults: dict[int, str] = {}
    for place, text in enumerate(smiles):
        try:
            parsed.append(parse_molecule(text))
        except MoleculeError as error:
            parsed.append(None)
            faults[place] = str(error)
    rows = molecule_rows(parsed, kind, threads=1)
    described = iter(describe_molecules([molecule for molecule in parsed if molecule is not None]))
    molecules = [faults[p] if p in faults else next(described) for p in range(len(smiles))]
    return MoleculeBatch(
        molecules,
        np.concatenate([np.empty(0, np.uint16), *rows]),
        np.array([len(row) for row in rows], dtype=np.int32),
    )


def describe_all(
    smiles: Sequence[str],
    kind: str,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Iterator[MoleculeBatch]:
    """Batches in order, computed by ``jobs`` processes (all cores by default)."""
    done = 0
    for batch, result in in_batches(partial(describe_batch, kind=kind), smiles, _BATCH, jobs):
        done += len(batch)
        progress("molecules", done, len(smiles))
        yield result


@dataclass
class MoleculeTable:
    """Distinct structures, and which of them each given SMILES stands for.

    Two SMILES stand for one structure when their canonical SMILES are equal: fingerprints are of
    structures as they are written. Tautomers and stereo isomers are rows of their own, and one
    molecule by the identity rule of `mzseek.chem.molecules`.

    Attributes
    ----------
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
    index: npt.NDArray[np.int32]
    faults: dict[int, str]

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
    """Describe molecules and merge those that are the same."""
    place_of: dict[str, int] = {}
    unique: list[DescribedMolecule] = []
    kept_bits: list[npt.NDArray[np.uint16]] = []
    kept_counts: list[npt.NDArray[np.int32]] = []
    index = np.full(len(smiles), -1, dtype=np.int32)
    faults: dict[int, str] = {}
    given = 0
    for batch in describe_all(smiles, kind, jobs, progress):
        new = np.zeros(len(batch.molecules), dtype=bool)
        for i, molecule in enumerate(batch.molecules):
            if isinstance(molecule, str):
                faults[given + i] = molecule
                continue
            place = place_of.setdefault(molecule.smiles, len(unique))
            if place == len(unique):
                unique.append(molecule)
                new[i] = True
            index[given + i] = place
        kept_bits.append(batch.bits[np.repeat(new, batch.counts)])
        kept_counts.append(batch.counts[new])
        given += len(batch.molecules)
    counts = np.concatenate([np.empty(0, np.int32), *kept_counts])
    return MoleculeTable(
        kind=kind,
        smiles=list(place_of),
        formulas=[molecule.formula for molecule in unique],
        inchikey14=np.array([molecule.inchikey14 for molecule in unique], dtype="S14"),
        masses=np.array([molecule.mass for molecule in unique], dtype=np.float64),
        fingerprint_indptr=pointers(counts),
        fingerprint_bits=np.concatenate([np.empty(0, np.uint16), *kept_bits]),
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
        What the table itself says of the molecule (empty or NaN where it says nothing).
    lists : dict of str to RawLists
        Candidate lists of each retrieval setting.
    rejects : list of (where, reason)
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
    rejects: list[tuple[str, str]] = field(default_factory=list)

    def number(self, smiles: str) -> int:
        """Number of a SMILES, new or known."""
        return self.smiles.setdefault(smiles, len(self.smiles))

    def set_aside(self, where: str, reason: str) -> None:
        """Note something that cannot be used."""
        self.rejects.append((where, reason))


def collect(
    spectra: Path,
    candidates: Mapping[str, Path],
    *,
    low: float = LOW,
    high: float = HIGH,
    intensity_floor: float = 0.0,
    progress: Progress = silent,
) -> Collected:
    """Read a data set's files; whatever cannot be used is set aside.

    A spectrum needs a peak between ``low`` and ``high``.
    """
    collected = Collected()
    _collect_spectra(collected, spectra, low, high, intensity_floor, progress)
    if not collected.identifiers:
        first = f" (the first: {collected.rejects[0][1]})" if collected.rejects else ""
        raise DatasetError(f"{spectra}: no spectrum could be used{first}")
    for name, path in candidates.items():
        lists = collected.lists[name] = RawLists(str(path))
        for key, members in read_candidates(path, collected.set_aside):
            lists.keys.append(collected.number(key))
            lists.counts.append(len(members))
            lists.members.extend([collected.number(member) for member in members])
            if len(lists.keys) % 500 == 0:
                progress(f"{name} candidates", len(lists.keys))
        progress(f"{name} candidates", len(lists.keys))
    return collected


def _collect_spectra(
    collected: Collected,
    path: Path,
    low: float,
    high: float,
    intensity_floor: float,
    progress: Progress,
) -> None:
    adduct_code: dict[str, int] = {}
    for spectrum in read_table(path, collected.set_aside, intensity_floor):
        if not ((spectrum.mz >= low) & (spectrum.mz <= high)).any():
            reason = f"has no peak between m/z {low:g} and {high:g}"
            collected.set_aside(f"{path}: {spectrum.identifier}", reason)
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
    owner, member, target : int64, one a candidate
        Its list, its molecule, and its list's truth.
    same_fingerprint, same_inchikey : bool, one a candidate
        Whether it is, in that sense, the truth.
    """

    truth: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    member: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    same_fingerprint: npt.NDArray[np.bool_]
    same_inchikey: npt.NDArray[np.bool_]

    @property
    def has_truth(self) -> npt.NDArray[np.bool_]:
        """Whether each list holds its truth, in one sense or the other."""
        has = np.zeros(len(self.truth), dtype=bool)
        has[self.owner[self.same_fingerprint | self.same_inchikey]] = True
        return has

    def is_first(self, molecules: int) -> npt.NDArray[np.bool_]:
        """Whether each candidate stands in its list for the first time."""
        first = np.zeros(len(self.member), dtype=bool)
        first[np.unique(self.owner * molecules + self.member, return_index=True)[1]] = True
        return first


def resolve(lists: RawLists, table: MoleculeTable) -> ResolvedLists:
    """Look the lists' SMILES up in the table."""
    truth = table.index[np.frombuffer(lists.keys, dtype=np.int32)].astype(np.int64)
    counts = np.frombuffer(lists.counts, dtype=np.int32)
    owner = Ragged(counts.astype(np.int64)).list_index
    member = table.index[np.frombuffer(lists.members, dtype=np.int32)].astype(np.int64)
    valid = (member >= 0) & (truth[owner] >= 0)
    owner, member = owner[valid], member[valid]
    target = truth[owner]
    prints, keys = table.fingerprint_classes, table.inchikey_classes
    return ResolvedLists(
        truth, owner, member, target,
        prints[member] == prints[target],
        keys[member] == keys[target],
    )  # fmt: skip
