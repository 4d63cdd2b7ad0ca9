"""Priors that an annotation applies: learned by the model, or a table of weights."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.config import LEARNED_PRIOR
from mzseek.annotation.query import FeatureQuery
from mzseek.bundle import Bundle
from mzseek.bundle.bundle import BundledPrior
from mzseek.chem.molecules import BLOCK_LENGTH, describe_structure
from mzseek.core.errors import BundleError, InputError, MoleculeError
from mzseek.core.text import pluralize
from mzseek.database.formats.tables import find_columns, holds_molecules, record_of
from mzseek.evidence.queries import Molecules
from mzseek.io import StrPath, content_hash
from mzseek.io.skipped import Skipped
from mzseek.io.text_tables import (
    find_column,
    require_table,
)

Floats = npt.NDArray[np.float64]
_WEIGHT = ("weight",)
# "key" is what `mzseek database export` calls it.
KEY_COLUMNS = (
    "inchikey",
    "standardinchikey",
    "stdinchikey",
    "inchikey2d",
    "inchikeyfirstblock",
    "key",
)
_BLOCK = re.compile(rf"[A-Z]{{{BLOCK_LENGTH}}}(-[A-Z]{{10}}(-[A-Z])?)?")
_EXPECTED = "expected a table with a column weight and one of SMILES, InChI or InChIKey"


CAUTION = (
    "probabilities do not rest on the spectrum alone, and sets and calibration were fitted "
    "without it"
)
_MAX_LISTED = 100  # skipped rows that a run folder names


@dataclass(frozen=True, eq=False)
class PriorScores:
    """Log-odds of a prior for a feature's candidates.

    Attributes
    ----------
    label : str
        Of its column.
    log_odds : float64 array, shape (candidates,)
        Against the mean of the list.
    note : str
        For the feature.
    """

    label: str
    log_odds: Floats
    note: str


class Prior(ABC):
    """A prior, opened; ``label`` is what tables call it."""

    label: str

    @abstractmethod
    def of(
        self, query: FeatureQuery, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> PriorScores:
        """Return the scores of the candidates of a feature, which are `rows` of `molecules`.

        `mode` is −1 for negative, 1 for positive.
        """

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Return kind, description and weights for ``run.json``."""

    def _scores(self, log_odds: Floats, description: str) -> PriorScores:
        note = f"a prior is applied ({description}): {CAUTION}"
        return PriorScores(self.label, log_odds, note)


class PriorOfModel(Prior):
    """The learned one of a bundle."""

    label = "prior"
    _description = "learned by the model: how like a candidate is to molecules that people measure"

    def __init__(self, prior: BundledPrior) -> None:
        self._prior = prior

    def of(
        self, query: FeatureQuery, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> PriorScores:
        """Return weighted log-odds."""
        return self._scores(self._prior.log_odds(molecules, rows, mode), self._description)

    def metadata(self) -> dict[str, Any]:
        """Return kind, description and weights for ``run.json``."""
        description = f"{self._description}; {CAUTION}"
        return {"kind": LEARNED_PRIOR, "said": description, "weights": dict(self._prior.weights)}


class PriorOfFile(Prior):
    """Weights of a user's own table.

    Attributes
    ----------
    logs : mapping of str to float
        Logarithm of the weight of each molecule, by the first block of its InChIKey.
    least : float
        Logarithm of the smallest weight of the file: that of all other molecules.
    """

    label = "weights"

    def __init__(
        self,
        path: Path,
        logs: Mapping[str, float],
        least: float,
        skipped: Sequence[Skipped] = (),
    ) -> None:
        self.path, self.logs, self.least = path, logs, least
        self._sha256, self._skipped = content_hash(path), skipped

    def of(
        self, query: FeatureQuery, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> PriorScores:
        """Return log-weights."""
        keys = [molecule.key for listed in query.molecules for molecule in listed]
        values = np.array([self.logs.get(key, self.least) for key in keys], np.float64)
        inside = sum(key in self.logs for key in keys)
        return self._scores(
            values - values.mean(),
            f"weights of {self.path.name}, which has {inside:,} of {len(keys):,} candidates",
        )

    def metadata(self) -> dict[str, Any]:
        """Return kind, description, checksum and skipped rows for ``run.json``."""
        return {
            "kind": "file",
            "said": f"weights of {self.path.name}, "
            f"{pluralize(len(self.logs), 'molecule', 'molecules')}; {CAUTION}",
            "path": str(self.path.resolve()),
            "sha256": self._sha256,
            "molecules": len(self.logs),
            "set_aside": len(self._skipped),
            "rejects": [list(row) for row in self._skipped[:_MAX_LISTED]],
        }


def read_weights(path: StrPath, skipped: list[Skipped]) -> PriorOfFile:
    """Read the weights of a table (tabs, commas or semicolons; plain or packed).

    Molecules are told by the first block of their InChIKey: of the column of InChIKeys where a row
    has one, else of the SMILES or InChI in standard form. Weights of rows of one molecule add up.

    `skipped` gets where and why for each row that has no molecule, or no weight above 0.

    Raises
    ------
    InputError
        It is missing, lacks a column, or none of its rows can be used.
    """
    path = Path(path)
    table, columns = require_table(path, lambda names: _columns(path, names), _EXPECTED)
    log_weights: dict[str, list[float]] = {}

    def skip(number: int, reason: str) -> None:
        skipped.append(Skipped(f"{path.name}: line {number}", reason))

    for number, cells in table.whole_rows(skip):
        try:
            key, weight = molecule_key(cells, columns), _weight(cells[columns["weight"]])
        except MoleculeError as error:
            skip(number, error.reason)
        else:
            log_weights.setdefault(key, []).append(math.log(weight))
    if not log_weights:
        first = f"; the first {skipped[0][1]}" if skipped else ""
        raise InputError(path, f"no row has a molecule and a weight above 0{first}")
    # Sorted before they are added: no order of rows shows.
    logs = {
        key: float(np.logaddexp.reduce(sorted(values)))
        for key, values in sorted(log_weights.items())
    }
    return PriorOfFile(path, logs, min(map(min, log_weights.values())), skipped)


def _columns(path: Path, names: Sequence[str]) -> dict[str, int] | None:
    """Places of columns by meaning; None where there is no weight, or no molecule."""
    weight = find_column(path, names, _WEIGHT)
    key = find_column(path, names, KEY_COLUMNS)
    columns = find_columns(path, names, {})
    if weight is None or (key is None and not holds_molecules(columns)):
        return None
    return {**columns, "weight": weight, **({} if key is None else {"key": key})}


def molecule_key(cells: Sequence[str], columns: Mapping[str, int]) -> str:
    """First InChIKey block of a row's molecule; raises `MoleculeError`."""
    inchikey = cells[columns["key"]].strip() if "key" in columns else ""
    if _BLOCK.fullmatch(inchikey.upper()):
        return inchikey.upper()[:BLOCK_LENGTH]
    record = record_of("", cells, columns, "")
    if record is None:
        raise MoleculeError(
            f"InChIKey {inchikey[:40]!r} is none" if inchikey else "has no molecule"
        )
    return _block(record.text)


@lru_cache(maxsize=4096)
def _block(text: str) -> str:
    described = describe_structure(text)
    if not described.inchikey14:
        raise MoleculeError(f"{text[:40]!r} has no InChIKey")
    return described.inchikey14


def _weight(cell: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise MoleculeError(f"weight {cell.strip()[:40]!r} is no number above 0", "bad-number")
    return weight


def open_prior(name: str, bundle: Bundle, skipped: list[Skipped]) -> Prior:
    """Open a prior: ``learned``, or a table of weights.

    `skipped` gets where and why for rows of the table that cannot be used.

    Raises
    ------
    BundleError, InputError
        The bundle has learned none, or the table is none.
    """
    if name != LEARNED_PRIOR:
        return read_weights(name, skipped)
    if bundle.prior is not None:
        return PriorOfModel(bundle.prior)
    if any(channel.name == PriorOfModel.label for channel in bundle.fitted.channels):
        raise BundleError(f"{bundle.folder}: its ranker has the prior among its channels already")
    raise BundleError(
        f"{bundle.folder}: has no learned prior; make a bundle that has one with "
        "`mzseek model build` or `mzseek model export`, or give a table of weights"
    )
