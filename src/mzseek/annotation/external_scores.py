"""Scores of other programs (CFM-ID, ICEBERG, SIRIUS …) as contributions to candidates' scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.candidates import FEATURE_COLUMNS
from mzseek.annotation.features import normalise_name
from mzseek.annotation.prior import KEY_COLUMNS, molecule_key
from mzseek.annotation.query import FeatureQuery
from mzseek.core.errors import AnnotationError, InputError, MoleculeError
from mzseek.core.text import shorten
from mzseek.database.formats.tables import NOTHING, find_columns, holds_molecules
from mzseek.io import StrPath, content_hash
from mzseek.io.skipped import Skipped
from mzseek.io.text_tables import find_column, require_table

Floats = npt.NDArray[np.float64]
_EXPECTED = (
    "expected a table with a column feature, one of SMILES, InChI or InChIKey, and at least one of "
    "numbers, whose name is that of the score"
)
_NOT_SCORES = ("rank", "mass", "mz", "precursormz", "formula", "adduct")
_MAX_LISTED = 5


@dataclass(frozen=True, eq=False)
class Contribution:
    """Weighted scores of one name for the candidates of a feature.

    Attributes
    ----------
    label : str
    log_odds : float64 array, shape (candidates,)
        Against the mean of the list.
    """

    label: str
    log_odds: Floats


@dataclass(frozen=True, eq=False)
class ExternalScores:
    """A table of scores, and the weight of each.

    Attributes
    ----------
    scores : mapping of str to mapping of str to tuple of float
        By feature and molecule (first InChIKey block), one score for each of `names`; NaN where
        there is none.
    names : tuple of str
    weights : tuple of float
        Log-odds for one standard deviation within a candidate list.
    skipped : sequence of Skipped
        Rows without a feature, a molecule or a score, and cells that hold no number.
    """

    path: Path
    scores: Mapping[str, Mapping[str, tuple[float, ...]]]
    names: tuple[str, ...]
    weights: tuple[float, ...]
    skipped: Sequence[Skipped] = ()

    def of(self, query: FeatureQuery) -> tuple[list[Contribution], list[str], tuple[str, ...]]:
        """Return contributions for a query, notes, and scored molecules that are no candidates.

        Scores are standardised within the list: their mean is 0, their standard deviation the
        weight. A candidate without a score has the lowest of the list.
        """
        name = next((name for name in query.feature.table_names if name in self.scores), None)
        keys = [molecule.key for listed in query.molecules for molecule in listed]
        if name is None:
            zero = np.zeros(len(keys))
            return [Contribution(label, zero) for label in self.names], [], ()
        of_feature = self.scores[name]
        missing = (math.nan,) * len(self.names)
        table = np.array([of_feature.get(key, missing) for key in keys], np.float64)
        table = table.reshape(len(keys), len(self.names))
        added, notes = [], []
        for label, weight, values in zip(self.names, self.weights, table.T, strict=True):
            known = ~np.isnan(values)
            added.append(Contribution(label, weight * _standardised(values, known)))
            notes.append(
                f"{label} of {self.path.name} is applied at weight {weight:g}: it has scores of "
                f"{known.sum():,} of {len(keys):,} candidates; sets and calibration were fitted "
                "without it"
            )
        return added, notes, tuple(sorted(set(of_feature).difference(keys)))

    def metadata(self) -> dict[str, Any]:
        """Return file, checksum, weights and skipped rows for ``run.json``."""
        return {
            "path": str(self.path.resolve()),
            "sha256": content_hash(self.path),
            "weights": dict(zip(self.names, self.weights, strict=True)),
            "features": len(self.scores),
            "skipped": len(self.skipped),
            "first_skipped": [list(row) for row in self.skipped[:_MAX_LISTED]],
        }


def _standardised(values: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Return values of mean 0 and standard deviation 1; zeros where they do not differ.

    Examples
    --------
    >>> _standardised(np.array([1.0, np.nan, 3.0]), np.array([True, False, True])).round(2).tolist()
    [-0.71, -0.71, 1.41]
    """
    if not known.any():
        return np.zeros(len(values))
    filled = np.where(known, values, values[known].min())
    deviation = float(filled.std())
    if not deviation > 0:
        return np.zeros(len(values))
    return np.asarray((filled - filled.mean()) / deviation, np.float64)


def read_scores(
    path: StrPath, weights: Mapping[str, float], skipped: list[Skipped]
) -> ExternalScores:
    """Read a table of scores: a row has a feature, a molecule, and a number in each score column.

    Parameters
    ----------
    path : path
        Tabs, commas or semicolons; plain or packed. All columns of numbers other than masses,
        ranks and the like are scores. Higher scores are better.
    weights : mapping of str to float
        By name of the column; 1 for others.
    skipped : list
        Gets where and why for rows that cannot be used, and for cells of scores that hold something
        other than a finite number; other scores of such a row count.

    Raises
    ------
    InputError
        It is missing, lacks a column, or none of its rows can be used.
    AnnotationError
        A weight names no score.
    """
    path = Path(path)
    table, columns = require_table(path, lambda names: _columns(path, names), _EXPECTED)
    feature_column, molecule_columns = columns
    taken = {feature_column, *molecule_columns.values()}
    others = [
        at for at, name in enumerate(table.names)
        if at not in taken and _plain(name) not in _NOT_SCORES
    ]  # fmt: skip
    rows: list[tuple[str, str, list[float]]] = []
    no_numbers: list[tuple[int, int, str]] = []  # line, column and text of cells

    def skip(number: int, reason: str) -> None:
        skipped.append(Skipped(f"{path.name}: line {number}", reason))

    for number, cells in table.whole_rows(skip):
        feature = normalise_name(cells[feature_column])
        values = [_number(cells[at]) for at in others]
        if not feature:
            skip(number, "names no feature")
        elif all(math.isnan(value) for value in values):
            skip(number, "has no score")
        else:
            try:
                rows.append((feature, molecule_key(cells, molecule_columns), values))
            except MoleculeError as error:
                skip(number, error.reason)
                continue
            no_numbers += [
                (number, at, cells[at]) for at, value in zip(others, values, strict=True)
                if math.isnan(value) and cells[at].strip().lower() not in NOTHING
            ]  # fmt: skip
    filled_columns = [
        at for at in range(len(others)) if any(not math.isnan(row[2][at]) for row in rows)
    ]
    if not filled_columns:
        first = f"; the first: {skipped[0][1]}" if skipped else ""
        raise InputError(path, f"no row has a feature, a molecule and a score{first}")
    labels = tuple(table.names[others[at]].strip() for at in filled_columns)
    score_columns = {others[at] for at in filled_columns}
    for number, column, text in no_numbers:
        if column in score_columns:  # other columns hold text
            name = table.names[column].strip()
            skip(number, f"{name} is {shorten(text.strip(), 40)!r}, expected a number")
    for name in weights:
        if name not in labels:
            raise AnnotationError(f"--score-weight {name}: {path} has the scores {labels}")
    scores: dict[str, dict[str, tuple[float, ...]]] = {}
    for feature, key, values in rows:
        row = tuple(values[at] for at in filled_columns)
        before = scores.setdefault(feature, {}).get(key, row)
        # Of several rows for one molecule (stereoisomers) the highest, whatever their order.
        scores[feature][key] = tuple(float(np.fmax(a, b)) for a, b in zip(before, row, strict=True))
    return ExternalScores(
        path, scores, labels, tuple(weights.get(label, 1.0) for label in labels), skipped
    )


def _columns(path: Path, names: Sequence[str]) -> tuple[int, dict[str, int]] | None:
    """Return the column of features and those of molecules; None if one is missing."""
    feature = find_column(path, names, FEATURE_COLUMNS)
    key = find_column(path, names, KEY_COLUMNS)
    columns = find_columns(path, names, {})
    if feature is None or (key is None and not holds_molecules(columns)):
        return None
    return feature, {**columns, **({} if key is None else {"key": key})}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
