"""What was measured of a run, kept beside it: the model is applied once."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mzseek.errors import ExperimentError
from mzseek.evaluation.beliefs import beliefs_of
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.files import atomic_file
from mzseek.files.json_file import read_object
from mzseek.runs.run import CHECKPOINTS, Run

DECODED = "decoded "  # before the name of a utility: the posterior decided for it, judged by it
CHANCE = "chance "  # before the name of a metric: what an order at random reaches


def kept_values(file: Path, run: Run) -> dict[str, Any] | None:
    """What a file holds of a run; None if there is none, or the run was made anew meanwhile."""
    if not file.exists():
        return None
    kept = read_object(file, ExperimentError, "delete it, and it is measured again")
    return dict(kept["values"]) if kept.get("run") == run.identity else None


def keep_values(file: Path, run: Run, values: Mapping[str, Any]) -> None:
    """Keep what was measured of a run."""
    facts = {"run": run.identity, "values": values}
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as partial:
        partial.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", "utf-8")


class Measured:
    """Numbers of one run.

    Parameters
    ----------
    run : Run
    file : Path
        Where they are kept.
    """

    def __init__(self, run: Run, file: Path) -> None:
        self._run, self._file = run, file
        self._values: dict[str, float | None] = kept_values(file, run) or {}

    def value(
        self, metric: str, candidates: str, fold: str, similarity: str | None = None
    ) -> float | None:
        """A metric's mean over a fold, from the checkpoint that was best by it on validation.

        None where the model has no such number.
        """
        key = "|".join((metric, candidates, fold, similarity or ""))
        if key not in self._values:
            self._measure(metric, candidates, fold, similarity)
            self._values.setdefault(key, None)  # also that there is no such number
            keep_values(self._file, self._run, self._values)
        return self._values[key]

    def _measure(self, metric: str, candidates: str, fold: str, similarity: str | None) -> None:
        if self._run.baseline is None and not (self._run.folder / CHECKPOINTS).is_dir():
            raise ExperimentError(
                f"{self._run.folder}: {metric} was not measured before its weights were dropped; "
                "delete the folder, and it is trained again"
            )
        how = Scoring(fold, candidates, similarity)
        if metric.startswith(DECODED):
            utility = metric.removeprefix(DECODED)
            beliefs = beliefs_of(self._run, how)
            # One look at the posterior gives all utilities, and those of who has not seen it.
            values = {
                f"{DECODED}{name}": beliefs.decoded.interval(name, name).mean
                for name in dict.fromkeys((utility, "tanimoto", "cosine"))
            }
        else:
            scored = evaluate(self._run, how)
            values = {name: float(found.mean()) for name, found in scored.values.items()}
            values |= {f"{CHANCE}{name}": value for name, value in scored.chance.items()}
        tail = "|".join((candidates, fold, similarity or ""))
        self._values |= {f"{name}|{tail}": value for name, value in values.items()}
