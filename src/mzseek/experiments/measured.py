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
        self._values: dict[str, float] = {}
        if file.exists():
            kept = read_object(file, ExperimentError, "delete it, and it is measured again")
            if kept.get("run") == run.identity:  # else the run was made anew meanwhile
                self._values = dict(kept["values"])

    def value(
        self, metric: str, candidates: str, fold: str, similarity: str | None = None
    ) -> float | None:
        """A metric's mean over a fold, from the checkpoint that was best by it on validation.

        None where the model has no such number.
        """
        key = "|".join((metric, candidates, fold, similarity or ""))
        if key not in self._values:
            self._measure(metric, candidates, fold, similarity)
            self._save()
        found = self._values.get(key)
        return None if found is None else float(found)

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

    def _save(self) -> None:
        facts: Mapping[str, Any] = {"run": self._run.identity, "values": self._values}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(self._file) as partial:
            partial.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", "utf-8")
