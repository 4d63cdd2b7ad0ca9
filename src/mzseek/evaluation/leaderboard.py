"""Rows of MassSpecGym's retrieval leaderboard: its columns, its two challenges, its conventions."""

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.evaluation.evaluate import Evaluation, evaluate, mces_of_best
from mzseek.evaluation.scored import HITS, Scoring
from mzseek.io import StrPath, atomic_file
from mzseek.io.sources import MAX_ROW
from mzseek.metrics import bootstrap
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.run import Run
from mzseek.version import __version__

# Its standard challenge has candidates of equal mass, its bonus challenge of equal formula; their
# tables are retrieval.csv and retrieval_bonus.csv.
CHALLENGES = {"mass": "", "formula": "_bonus"}
_MEASURED = (*(f"Hit rate @ {k}" for k in HITS), "MCES @ 1")
COLUMNS = (
    "Method",
    *(f"{name}{part}" for name in _MEASURED for part in ("", " CI Low", " CI High")),
    "Paper", "DOI", "Comment", "Publication date",
)  # fmt: skip


def write_leaderboard(
    run: Run,
    path: StrPath,
    *,
    mces: int = 0,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> list[Path]:
    """Write a run into tables like the leaderboard's, one for each challenge that the data have.

    As the leaderboard asks: the test fold, a hit is the same first block of an InChIKey, percent,
    95 % intervals over spectra (narrower than those over molecules that mzseek states elsewhere).
    A table that is there keeps its other rows; the run's own row, by its folder's name, is
    replaced.

    Parameters
    ----------
    run : Run
    path : Path
        Table of the standard challenge; that of the bonus challenge lies beside it, with ``_bonus``
        in its name.
    mces : int
        Measure MCES @ 1 for so many molecules; with none, its columns are empty.
    data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.

    Raises
    ------
    RunError
        The data have neither mass nor formula lists, or a table there has other columns.
    """
    path = Path(path)
    settings = run.open_data(data).measured_settings
    tables = {
        setting: path.with_name(f"{path.stem}{suffix}{path.suffix}")
        for setting, suffix in CHALLENGES.items()
        if setting in settings
    }
    if not tables:
        raise RunError(
            f"{run.folder}: its data have no {' or '.join(CHALLENGES)} lists, and the leaderboard "
            "has no others"
        )
    others = {table: _rows_of(table) for table in tables.values()}
    for setting, table in tables.items():
        how = Scoring("test", setting, identity="inchikey")
        evaluation = evaluate(run, how, data=data, progress=progress)
        distances = mces_of_best(run, how, molecules=mces, data=data)[0] if mces else None
        row = leaderboard_row(run, evaluation, distances)
        rows = [other for other in others[table] if other["Method"] != row["Method"]]
        with atomic_file(table) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows([*rows, row])
    return list(tables.values())


def leaderboard_row(
    run: Run, evaluation: Evaluation, distances: npt.NDArray[np.float64] | None = None
) -> dict[str, str]:
    """Return a run in the leaderboard's columns; those of its publication are empty."""
    measured = {f"Hit rate @ {k}": bootstrap(evaluation.values[f"hit_rate@{k}"]) for k in HITS}
    verb = "trained" if run.description.fitted is None else "fitted"
    comment = f"mzseek {__version__}, {run.description.name} {verb} on {run.candidates} candidates"
    if distances is not None:
        measured["MCES @ 1"] = bootstrap(distances, bounds=None)
        comment += f", MCES @ 1 of {len(distances):,} molecules"
    cells = {}
    for name, interval in measured.items():
        scale = 1 if name == "MCES @ 1" else 100
        for part in ("mean", "low", "high"):
            column = name if part == "mean" else f"{name} CI {part.capitalize()}"
            cells[column] = f"{scale * getattr(interval, part):.2f}"
    row = dict.fromkeys(COLUMNS, "") | cells
    return row | {"Method": run.folder.resolve().name, "Comment": comment}


def _rows_of(table: Path) -> list[dict[str, str]]:
    """Read the rows of an existing table; it must have the leaderboard's columns."""
    if not table.exists():
        return []
    try:
        with table.open(newline="", encoding="utf-8") as file:
            if (first := file.readline(MAX_ROW).rstrip("\r\n")) != ",".join(COLUMNS):
                raise RunError(
                    f"{table}: has other columns than the leaderboard ({first[:60]!r}…); name "
                    "another file"
                )
            rows = list(csv.DictReader(file, COLUMNS, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{table}: cannot be read ({error})") from error
    if any(None in row or None in row.values() for row in rows):
        raise RunError(f"{table}: has a row with other columns than its header; name another file")
    return rows
