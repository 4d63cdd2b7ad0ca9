"""Reference spectra of a prepared folder, with records and molecules, as a library has them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.annotation.bundle.peaks import MOST_PEAKS, compact_ions, compact_peaks
from mzseek.annotation.confidence import MODES
from mzseek.chem.describe import DescribedMolecule, describe_structure
from mzseek.errors import MoleculeError
from mzseek.evidence.asked import spectra_from
from mzseek.library import Library
from mzseek.library.folder import MOLECULE_SCHEMA, RECORD_COLUMNS, RECORD_SCHEMA
from mzseek.library.lists import Ions, Lists, lists_of
from mzseek.prepared.reader import Prepared

Details = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, eq=False)
class References:
    """Reference spectra.

    Attributes
    ----------
    peaks, ions : Lists, Ions
        Compact.
    records : pyarrow.Table
    molecule_of : int64 array, shape (spectra,)
        Place of each one's molecule in ``molecules``.
    molecules : list of DescribedMolecule
        In standard form.
    """

    peaks: Lists
    ions: Ions
    records: pa.Table
    molecule_of: npt.NDArray[np.int64]
    molecules: list[DescribedMolecule]

    @property
    def keys(self) -> list[tuple[str, float]]:
        """Key and mass of each molecule."""
        return [molecule.identity for molecule in self.molecules]

    def library(self, folder: Path) -> Library:
        """The same, to be searched."""
        rows = [_row(molecule) for molecule in self.molecules]
        molecules = pa.Table.from_pylist(rows, MOLECULE_SCHEMA)
        return Library.held(
            folder, self.peaks, self.ions, self.molecule_of, self.records, molecules
        )

    def features_by_ion(self) -> dict[str, Counter[str]]:
        """How many pairs of a molecule and an ion there are of each ion, for each mode."""
        found: dict[str, Counter[str]] = {mode: Counter() for mode in MODES}
        adducts = self.records["adduct"].to_pylist()
        pairs = set(zip(self.molecule_of.tolist(), adducts, self.ions.modes.tolist(), strict=True))
        for _, adduct, mode in sorted(pairs):
            if adduct:
                found["negative" if mode < 0 else "positive"][adduct] += 1
        return found

    @classmethod
    def of_library(cls, library: Library) -> "References":
        """All spectra of a library."""
        rows = library.molecules.to_pylist()
        for row in rows:  # the key of a bundle's molecule that InChI cannot name is its SMILES
            row["inchikey"] = "" if row["inchikey"].startswith("SMILES=") else row["inchikey"]
        return cls(
            Lists._make(np.array(each) for each in library.peaks),
            Ions._make(np.array(each) for each in library.ions),
            library.records,
            np.asarray(library.molecule_of, np.int64),
            [DescribedMolecule(**row) for row in rows],
        )


def references_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    details: Details,
    most_peaks: int = MOST_PEAKS,
) -> References:
    """Some spectra of a prepared folder.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
    details : mapping of str to mapping
        By identifier what else is known of spectra: energy, instrument, contributor, licence,
        source. What is missing stays empty.
    most_peaks : int
        Of a spectrum.
    """
    peaks, ions = lists_of(spectra_from(prepared, queries))
    table, molecule_of = np.unique(prepared.molecule[queries], return_inverse=True)
    records = []
    for query in queries:
        known: dict[str, Any] = {
            "identifier": prepared.identifiers[int(query)],
            "adduct": prepared.adduct(int(query)) or "",
        }
        energy = float(prepared.collision_energy[query])
        known["collision_energy"] = "" if np.isnan(energy) else f"{energy:g}"
        known |= {name: v for name, v in details.get(known["identifier"], {}).items() if v}
        records.append({name: known.get(name, "") for name in RECORD_COLUMNS})
    return References(
        compact_peaks(peaks, most_peaks),
        compact_ions(ions),
        pa.Table.from_pylist(records, RECORD_SCHEMA),
        np.asarray(molecule_of, np.int64),
        [_described(prepared, int(each)) for each in table],
    )


def _described(prepared: Prepared, molecule: int) -> DescribedMolecule:
    """In standard form; as it is where that cannot be had."""
    smiles = prepared.smiles[molecule]
    try:
        return describe_structure(smiles)
    except MoleculeError:
        block = prepared.blocks[molecule].decode()
        mass = float(prepared.masses[molecule])
        return DescribedMolecule(smiles, prepared.formulas[molecule], mass, block)


def _row(molecule: DescribedMolecule) -> dict[str, Any]:
    return {
        "smiles": molecule.smiles,
        "inchikey": molecule.key,
        "formula": molecule.formula,
        "mass": molecule.mass,
    }
