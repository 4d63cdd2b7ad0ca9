"""A list of molecules to draw candidates from, looked up by mass or formula."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import joblib
import numpy as np
import numpy.typing as npt
from rdkit.Chem import rdMolDescriptors

from mzseek.chem.molecule import parse_molecule
from mzseek.data.progress import Progress, silent
from mzseek.errors import DatasetError, MoleculeError
from mzseek.files import open_source, text_lines

_BATCH = 2_000
_SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "structure")
_MASS_NAMES = ("mass", "exact_mass", "exactmass", "monoisotopic_mass")
_FORMULA_NAMES = ("formula", "molecular_formula")


@dataclass(frozen=True)
class MoleculePool:
    """Molecules in the order of their masses."""

    smiles: list[str]
    formulas: list[str]
    masses: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.smiles)

    def by_mass(self, mass: float, ppm: float) -> npt.NDArray[np.int64]:
        """Molecules whose mass is within ``ppm`` of the one given."""
        width = mass * ppm * 1e-6
        start, end = np.searchsorted(self.masses, [mass - width, mass + width])
        return np.arange(start, end)

    def by_formula(self, formula: str) -> npt.NDArray[np.int64]:
        """Molecules of that formula."""
        return np.array(self._by_formula.get(formula, []), dtype=np.int64)

    @cached_property
    def _by_formula(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, formula in enumerate(self.formulas):
            places.setdefault(formula, []).append(place)
        return places


def read_pool(
    path: Path,
    report: Callable[[str, str], object],
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> MoleculePool:
    """Molecules of a table (tab or comma separated, with a header) or a plain list of SMILES.

    Columns ``formula`` and ``mass`` are taken as they are where both are there; otherwise they
    are computed.
    """
    columns, rows = _read_rows(path)
    smiles: list[str] = []
    formulas: list[str] = []
    masses: list[float] = []
    missing: list[tuple[int, str]] = []
    for number, row in rows:
        text = row[columns["smiles"]].strip()
        if not text:
            report(f"{path}: line {number}", "has no SMILES")
            continue
        if "formula" not in columns or "mass" not in columns:
            missing.append((number, text))
            continue
        try:
            mass = float(row[columns["mass"]])
        except ValueError:
            report(f"{path}: line {number}", f"mass {row[columns['mass']]!r} is not a number")
            continue
        if not (np.isfinite(mass) and mass > 0):
            report(f"{path}: line {number}", f"mass {mass:g} is not positive")
            continue
        smiles.append(text)
        formulas.append(row[columns["formula"]].strip())
        masses.append(mass)
    batches = [missing[start : start + _BATCH] for start in range(0, len(missing), _BATCH)]
    parallel = joblib.Parallel(n_jobs=_workers(jobs, len(batches)), return_as="generator")
    for done, batch in enumerate(parallel(joblib.delayed(_weigh)(b) for b in batches), 1):
        for number, text, formula, mass, reason in batch:
            if reason:
                report(f"{path}: line {number}", reason)
                continue
            smiles.append(text)
            formulas.append(formula)
            masses.append(mass)
        progress("molecule pool", min(done * _BATCH, len(missing)), len(missing))
    if not smiles:
        raise DatasetError(f"{path}: holds no molecule")
    order = np.argsort(np.array(masses), kind="stable")
    return MoleculePool(
        [smiles[i] for i in order], [formulas[i] for i in order], np.array(masses)[order]
    )


def _workers(jobs: int | None, batches: int) -> int:
    return max(1, min(jobs or joblib.cpu_count(), batches))


def _weigh(rows: list[tuple[int, str]]) -> list[tuple[int, str, str, float, str]]:
    weighed = []
    for number, text in rows:
        try:
            molecule = parse_molecule(text)
        except MoleculeError as error:
            weighed.append((number, text, "", 0.0, str(error)))
            continue
        formula = rdMolDescriptors.CalcMolFormula(molecule)
        weighed.append((number, text, formula, rdMolDescriptors.CalcExactMolWt(molecule), ""))
    return weighed


def _read_rows(path: Path) -> tuple[dict[str, int], Iterator[tuple[int, list[str]]]]:
    """Where the columns are, and the rows below the header."""
    source = open_source(path)
    with source.open() as stream:
        header = next(text_lines(stream))[1].rstrip("\n")
    delimiter = "\t" if "\t" in header else "," if "," in header else None
    names = [name.strip().strip('"').lower() for name in header.split(delimiter)]
    columns = {
        meaning: names.index(name)
        for meaning, known in (
            ("smiles", _SMILES_NAMES),
            ("mass", _MASS_NAMES),
            ("formula", _FORMULA_NAMES),
        )
        for name in known
        if name in names
    }
    has_header = "smiles" in columns
    if not has_header:
        if delimiter == ",":
            raise DatasetError(
                f"{path}: no column is called {' or '.join(_SMILES_NAMES)}; it has {names[:8]}"
            )
        columns = {"smiles": 0}  # a .smi file: SMILES, then perhaps a name

    def rows() -> Iterator[tuple[int, list[str]]]:
        with source.open() as stream:
            for number, line in text_lines(stream):
                values = line.rstrip("\n").split(delimiter)
                if (number == 1 and has_header) or not line.strip():
                    continue
                values += [""] * (len(names) - len(values))
                yield number, [value.strip().strip('"') for value in values]

    return columns, rows()
