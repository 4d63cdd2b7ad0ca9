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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol
from scipy.sparse import csr_array

from mzseek.chem.fingerprint_kinds import molecule_rows
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import DescribedMolecule, describe_molecules, parse_molecule, standardise
from mzseek.core.errors import DatasetError, MoleculeError, Reason
from mzseek.core.ragged import Ragged, pointers
from mzseek.core.registry import FOLDS
from mzseek.datasets.files import read_candidates, read_table
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.io.skipped import reporter
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches
from mzseek.spectra.binning import HIGH, LOW
from mzseek.spectra.records import INSTRUMENTS, instrument_kind, leading_number

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
        """Return the 0/1 rows of all molecules."""
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
    """Number ragged rows; equal numbers mean equal rows, as compared by 128-bit digests."""
    data = np.ascontiguousarray(values).tobytes()
    size = values.itemsize
    bounds = (indptr * size).tolist()
    digests = b"".join(
        blake2b(data[start:end], digest_size=16).digest()
        for start, end in itertools.pairwise(bounds)
    )
    return np.unique(np.frombuffer(digests, dtype="V16"), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class SmilesLists:
    """Candidate lists as in their file, with the numbers of SMILES in `Collected`.

    Attributes
    ----------
    source : str
    keys, counts : int32 arrays, one entry a list
        SMILES of the molecule that the list is for, and length of the list.
    members : int32 array
        SMILES in the lists.
    """

    source: str
    keys: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]

    def resolve(
        self, table: MoleculeTable
    ) -> tuple[npt.NDArray[np.int64], Ragged, npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Look the SMILES up in the table; candidates and lists that it refused are left out.

        Returns
        -------
        truths : int64 array, one entry a list
            The molecule that the key stands for, or -1, of a list that is then empty.
        lists : Ragged
        molecules : int64 array, one entry a candidate
        identity : uint8 array, one entry a candidate
            As in `mzseek.datasets.prepared.CandidateLists`.
        """
        truths = table.index[self.keys].astype(np.int64)
        list_index = np.repeat(np.arange(len(truths)), self.counts)
        molecules = table.index[self.members].astype(np.int64)
        valid = (molecules >= 0) & (truths[list_index] >= 0)
        list_index, molecules = list_index[valid], molecules[valid]
        truth = truths[list_index]
        prints, keys = table.fingerprint_classes, table.inchikey_classes
        identity = SAME_FINGERPRINT * (prints[molecules] == prints[truth])
        identity = identity + SAME_INCHIKEY * (keys[molecules] == keys[truth])
        lists = Ragged(np.bincount(list_index, minlength=len(truths)))
        return truths, lists, molecules, identity.astype(np.uint8)


def is_first(lists: Ragged, values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each value is in its list for the first time.

    Examples
    --------
    >>> is_first(Ragged(np.array([3, 1])), np.array([5, 7, 5, 5])).tolist()
    [True, True, False, True]
    """
    first = np.zeros(len(values), dtype=bool)
    width = values.max(initial=0) + 1
    first[np.unique(lists.list_index * width + values, return_index=True)[1]] = True
    return first


@dataclass(frozen=True)
class Collected:
    """Content of a data set before molecules are parsed; one entry a spectrum unless stated.

    Attributes
    ----------
    smiles : dict of str to int
        Each distinct SMILES of the data set, and its number.
    adducts : list of str
        Each distinct adduct, at its code.
    lists : dict of str to SmilesLists
        Candidate lists of each retrieval setting.
    skipped : list of (where, reason)
    spectrum_smiles : int32
        Number of each spectrum's SMILES.
    folds, adduct_codes : int8, int16
        -1 where the table has none.
    mz, intensities : float64, float32
        Peaks of all spectra, ``peak_counts`` of each.
    stated_formulas, stated_masses, stated_inchikey14
        Values of the table itself (empty or NaN where it has none).
    """

    smiles: dict[str, int]
    adducts: list[str]
    lists: dict[str, SmilesLists]
    skipped: list[tuple[str, str]]
    identifiers: list[str]
    stated_formulas: list[str]
    stated_inchikey14: list[str]
    stated_masses: npt.NDArray[np.float64]
    spectrum_smiles: npt.NDArray[np.int32]
    folds: npt.NDArray[np.int8]
    precursors: npt.NDArray[np.float64]
    energies: npt.NDArray[np.float32]
    adduct_codes: npt.NDArray[np.int16]
    instruments: npt.NDArray[np.int8]
    peak_counts: npt.NDArray[np.int32]
    mz: npt.NDArray[np.float64]
    intensities: npt.NDArray[np.float32]

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
    numbers: dict[str, int] = {}
    codes: dict[str, int] = {}
    skipped: list[tuple[str, str]] = []
    identifiers: list[str] = []
    formulas: list[str] = []
    keys: list[str] = []
    columns: dict[str, array[Any]] = {
        "spectrum_smiles": array("i"), "folds": array("b"), "precursors": array("d"),
        "energies": array("f"), "adduct_codes": array("h"), "instruments": array("b"),
        "stated_masses": array("d"),
        "peak_counts": array("i"), "mz": array("d"), "intensities": array("f"),
    }  # fmt: skip

    def number_of(smiles: str) -> int:
        return numbers.setdefault(smiles, len(numbers))

    skip = reporter(skipped)
    for spectrum in read_table(spectra, skip, intensity_floor):
        if not ((spectrum.mz >= low) & (spectrum.mz <= high)).any():
            reason = f"has no peak between m/z {low:g} and {high:g}"
            skip(f"{spectra}: {spectrum.identifier}", Reason(reason, "no-peaks"))
            continue
        stated, adduct = spectrum.metadata, spectrum.adduct
        fold = stated.get("fold")
        identifiers.append(spectrum.identifier)
        formulas.append(stated.get("formula", ""))
        keys.append(stated.get("inchikey", "")[:14])
        columns["spectrum_smiles"].append(number_of(stated["smiles"]))
        columns["folds"].append(FOLDS.index(fold) if fold in FOLDS else -1)
        columns["precursors"].append(spectrum.precursor_mz)
        columns["energies"].append(_number(stated.get("collision_energy", "")))
        columns["adduct_codes"].append(
            -1 if adduct is None else codes.setdefault(adduct, len(codes))
        )
        instrument = instrument_kind(stated)
        columns["instruments"].append(-1 if instrument is None else INSTRUMENTS.index(instrument))
        columns["stated_masses"].append(_number(stated.get("parent_mass", "")))
        columns["peak_counts"].append(len(spectrum))
        columns["mz"].frombytes(spectrum.mz.tobytes())
        columns["intensities"].frombytes(spectrum.intensities.astype(np.float32).tobytes())
        if len(identifiers) % 1000 == 0:
            progress("spectra", len(identifiers))
    progress("spectra", len(identifiers))
    if not identifiers:
        first = f" (the first: {skipped[0][1]})" if skipped else ""
        raise DatasetError(f"{spectra}: no spectrum could be used{first}")
    lists = {}
    for name, path in candidates.items():
        list_keys, counts, members = array("i"), array("i"), array("i")
        for key, smiles in read_candidates(path, skip):
            list_keys.append(number_of(key))
            counts.append(len(smiles))
            members.extend([number_of(member) for member in smiles])
            if len(counts) % 500 == 0:
                progress(f"{name} candidates", len(counts))
        progress(f"{name} candidates", len(counts))
        lists[name] = SmilesLists(str(path), *map(_as_numpy, (list_keys, counts, members)))
    arrays = {name: _as_numpy(values) for name, values in columns.items()}
    return Collected(numbers, list(codes), lists, skipped, identifiers, formulas, keys, **arrays)


def _as_numpy(values: array[Any]) -> npt.NDArray[Any]:
    return np.frombuffer(values, values.typecode)


def _number(text: str) -> float:
    """Return the number that a field begins with (``30 eV``, ``35 % (nominal)``), else NaN."""
    value = leading_number(text)
    return float("nan") if value is None or math.isinf(value) else value
