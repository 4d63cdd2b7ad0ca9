"""Reading a data set's files into compact arrays, before any chemistry."""

from __future__ import annotations  # array[int] is for type checkers only before Python 3.12

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mzseek.choices import FOLDS
from mzseek.datasets.candidates import read_candidates
from mzseek.datasets.table import read_table
from mzseek.errors import DatasetError
from mzseek.spectra.binning import HIGH, LOW
from mzseek.spectra.numbers import leading_number
from mzseek.work.progress import Progress, silent


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
    stated_formulas, stated_masses, stated_blocks
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
    stated_blocks: list[str] = field(default_factory=list)
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
        collected.stated_blocks.append(stated.get("inchikey", "")[:14])
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
