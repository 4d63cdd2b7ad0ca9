"""A list of molecules to draw candidates from, looked up by mass or formula."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rdkit.Chem import rdMolDescriptors

from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecule import parse_molecule
from mzseek.chem.standard import standardise
from mzseek.database.formats.columns import KNOWN
from mzseek.errors import DatasetError, MoleculeError
from mzseek.files import Source, open_source, text_lines
from mzseek.files.table import (
    DELIMITERS,
    bounded_lines,
    first_line,
    shown_names,
    sole_column,
    split_row,
    table_rows,
)
from mzseek.rejects import Report
from mzseek.work.batches import in_batches
from mzseek.work.progress import Progress, silent

_BATCH = 2_000
# By preference, written without case, blanks and marks.
_COLUMN_NAMES = {
    "smiles": KNOWN["smiles"],
    "mass": ("exactmass", "monoisotopicmass", "mass"),
    "formula": ("formula", "molecularformula"),
}
_EXPECTED = "expected a table with a smiles column, or a list of SMILES"
_ATOMS = re.compile(r"(?:[A-Z][a-z]?\d*)+")
_CHARGE = re.compile(r"([+-])(\d?)\]")


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
    report: Report,
    *,
    jobs: int | None = None,
    progress: Progress = silent,
) -> MoleculePool:
    """Molecules of a table (tabs, semicolons or commas, a header) or a plain list of SMILES.

    Columns ``formula`` and ``mass`` are taken as they are where both are there. Otherwise, and for
    salts and ions, which are looked up in their neutral form, they are computed. Lines with the
    same SMILES count once.
    """
    columns, rows = _read_rows(path, report)
    is_weighed = "formula" in columns and "mass" in columns
    smiles: list[str] = []
    formulas: list[str] = []
    masses: list[float] = []
    unweighed: list[tuple[int, str]] = []
    seen: set[int] = set()
    for number, row in rows:
        text = row[columns["smiles"]].strip()
        if not text:
            report(f"{path}: line {number}", "has no SMILES")
            continue
        if hash(text) in seen:
            continue
        seen.add(hash(text))
        if not is_weighed or _changes_when_standardised(text):
            unweighed.append((number, text))
            continue
        mass = _positive(row[columns["mass"]])
        if mass is None:
            shown = row[columns["mass"]][:40]
            report(f"{path}: line {number}", f"mass {shown!r} is no positive number")
            continue
        smiles.append(text)
        formulas.append(hill_formula(row[columns["formula"]].strip()))
        masses.append(mass)
    done = 0
    first_fault = ""
    for batch, weighed in in_batches(_weigh, unweighed, _BATCH, jobs):
        for (number, text), (formula, mass, reason) in zip(batch, weighed, strict=True):
            if reason:
                report(f"{path}: line {number}", reason)
                first_fault = first_fault or f" (line {number}: {reason})"
                continue
            smiles.append(text)
            formulas.append(formula)
            masses.append(mass)
        done += len(batch)
        progress("molecule pool", done, len(unweighed))
    if not smiles:
        raise DatasetError(f"{path}: holds no molecule{first_fault}; {_EXPECTED}")
    order = np.argsort(np.array(masses), kind="stable")
    return MoleculePool(
        [smiles[i] for i in order], [formulas[i] for i in order], np.array(masses)[order]
    )


@lru_cache(maxsize=1 << 16)
def hill_formula(formula: str) -> str:
    """Formula in Hill order: carbon, hydrogen, then the alphabet.

    Examples
    --------
    >>> hill_formula("H6C2O"), hill_formula("ClNa"), hill_formula("odd")
    ('C2H6O', 'ClNa', 'odd')
    """
    if not _ATOMS.fullmatch(formula):
        return formula  # charges and isotopes: nothing to reorder with certainty
    try:
        return str(parse_formula(formula))
    except MoleculeError:
        return formula


def _changes_when_standardised(smiles: str) -> bool:
    """Whether the neutral largest fragment may weigh something else: salts and net charges."""
    charge = 0
    for sign, size in _CHARGE.findall(smiles):
        charge += (1 if sign == "+" else -1) * int(size or 1)
    return "." in smiles or charge != 0


def _positive(text: str) -> float | None:
    try:
        value = float(text) if "_" not in text else 0.0  # Python reads "1_0" as 10
    except ValueError:
        return None
    return value if np.isfinite(value) and value > 0 else None


def _weigh(rows: Sequence[tuple[int, str]]) -> list[tuple[str, float, str]]:
    """Formula, mass and, where there are none, the reason."""
    weighed = []
    for _, text in rows:
        try:
            molecule = parse_molecule(text)
            if _changes_when_standardised(text):
                molecule = standardise(molecule)
        except MoleculeError as error:
            weighed.append(("", 0.0, str(error)))
            continue
        mass = rdMolDescriptors.CalcExactMolWt(molecule)
        weighed.append((rdMolDescriptors.CalcMolFormula(molecule), mass, ""))
    return weighed


def _read_rows(
    path: Path, report: Report
) -> tuple[dict[str, int], Iterator[tuple[int, list[str]]]]:
    """Where the columns are, and the numbered rows below the header."""
    source = open_source(path)
    header = first_line(source)
    if header is None:
        raise DatasetError(f"{path}: has no header and no molecules")
    if "\0" in header or header.startswith("PK"):
        raise DatasetError(f"{path}: is not a text file; {_EXPECTED}")
    delimiter = next((mark for mark in DELIMITERS if mark in header), None)
    names = (split_row(header, delimiter) if delimiter else header.split()) or [header]
    columns = {
        meaning: place
        for meaning, known in _COLUMN_NAMES.items()
        if (place := sole_column(path, names, known)) is not None
    }
    if "smiles" in columns:
        return columns, _table_rows(source, delimiter, len(names), report)
    if delimiter in {",", ";"}:
        wanted = "smiles, canonical_smiles, isomeric_smiles or structure"
        raise DatasetError(f"{path}: no column is called {wanted}; it has {shown_names(names)}")
    # A .smi file: SMILES, then perhaps a name.
    return {"smiles": 0}, _list_rows(source, delimiter, report)


def _table_rows(
    source: Source, delimiter: str | None, width: int, report: Report
) -> Iterator[tuple[int, list[str]]]:
    """Rows below a header, none shorter than it; white space may be all that parts cells."""

    def set_aside(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        lines = bounded_lines(text_lines(stream), set_aside)
        next(lines, None)
        rows = (
            table_rows(lines, delimiter, width, set_aside)
            if delimiter
            else ((number, line.split()) for number, line in lines)
        )
        for number, cells in rows:
            yield number, cells + [""] * (width - len(cells))


def _list_rows(
    source: Source, delimiter: str | None, report: Report
) -> Iterator[tuple[int, list[str]]]:
    def set_aside(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        for number, line in bounded_lines(text_lines(stream), set_aside):
            yield number, [line.split(delimiter)[0].strip().strip('"')]
