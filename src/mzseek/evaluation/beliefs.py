"""All that a run's probabilities are worth: decoded, calibrated, as sets, and against controls."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.decision.decide import decompose_under
from mzseek.decision.goals import GOALS
from mzseek.decision.utility import Within
from mzseek.errors import RunError
from mzseek.evaluation.decoding import DecodedFold, decode, list_distribution
from mzseek.evaluation.posteriors import Calibrated, calibrate
from mzseek.evaluation.scored import (
    Scoring,
    best_step,
    name_of,
    predictions_of,
    predicts_fingerprint,
)
from mzseek.evaluation.uncertainty import (
    Abstention,
    SetResult,
    abstentions,
    calibration_errors,
    risk_area,
    set_results,
)
from mzseek.files import StrPath
from mzseek.metrics import binarise
from mzseek.prepared.reader import Prepared
from mzseek.registry import check_name
from mzseek.runs.run import Run
from mzseek.tables import Table, Tabular
from mzseek.work.progress import Progress, silent

CONTROL_UTILITIES = tuple(GOALS)
RULES = ("rank", "threshold")


@dataclass(frozen=True)
class Beliefs(Tabular):
    """What a run's calibrated posterior says about a fold.

    Attributes
    ----------
    folder : Path
        The run's, resolved: which run this is said of.
    calibrated : Calibrated
    decoded, uniform : DecodedFold
        The posterior decoded for every utility, and that of one who has not seen the spectrum.
    errors : dict of str to float
        Expected calibration error ``before`` and ``after``.
    sets : list of SetResult
    abstentions : list of Abstention
    risk_area : float
    """

    folder: Path
    calibrated: Calibrated
    decoded: DecodedFold
    uniform: DecodedFold
    errors: dict[str, float]
    sets: list[SetResult]
    abstentions: list[Abstention]
    risk_area: float

    def to_table(self) -> Table:
        """One row for each decision: what it was decoded for, where, and what each metric says."""
        decoded = self.decoded.to_dict()
        rows = [(goal, within) for goal, places in decoded.items() for within in places]
        judged = next(iter(next(iter(decoded.values())).values()))
        return Table(
            {
                "decoded for": [goal for goal, _ in rows],
                "within": [within for _, within in rows],
                **{name: [decoded[goal][within][name] for goal, within in rows] for name in judged},
            },
            f"{self.folder.name}: one posterior, a decision for each metric",
            frozenset(judged),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        calibration = self.calibrated.asked.calibration
        return {
            "decoded": self.decoded.to_dict(),
            "decoded_uniform": self.uniform.to_dict(),
            "calibration": {
                **(vars(calibration) if calibration else {}),
                "step": self.calibrated.asked.step,
                "error_before": self.errors["before"],
                "error_after": self.errors["after"],
            },
            "prediction_sets": [each.to_dict() for each in self.sets],
            "abstention": [each.to_dict() for each in self.abstentions],
            "risk_area": self.risk_area,
        }


def beliefs_of(
    run: Run,
    how: Scoring | None = None,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Beliefs:
    """Calibrate a run on validation, and decode it on the fold asked for.

    Parameters
    ----------
    run, how, data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.

    Returns
    -------
    Beliefs
    """
    found = calibrate(run, how, data=data, progress=progress)
    prepared = run.open_data(data)
    return Beliefs(
        folder=run.folder.resolve(),
        calibrated=found,
        decoded=decode(found.asked, prepared, progress=progress),
        uniform=decode(
            found.asked.uniform(), prepared, CONTROL_UTILITIES, progress=_renamed(progress)
        ),
        errors=calibration_errors(found),
        sets=set_results(found),
        abstentions=abstentions(found),
        risk_area=risk_area(found),
    )


def decompose_run(
    run: Run,
    found: Calibrated,
    evaluated_under: str,
    decoded_for: str,
    *,
    rule: str = "rank",
    data: StrPath | None = None,
    every: int = 1,
) -> npt.NDArray[np.float64]:
    """The exact decomposition of a run's regret, spectrum by spectrum.

    Parameters
    ----------
    run : Run
    found : Calibrated
        Its posterior stands for the truth's distribution.
    evaluated_under, decoded_for : str
        Utilities: the one that counts, and the one that the loss stands for.
    rule : "rank" or "threshold"
        What the run itself decides for: its best-scored candidate, or its predicted fingerprint
        thresholded at one half (over all fingerprints).
    data : Path, optional
        The prepared folder, if it is no longer where it was.
    every : int
        Take every so-manieth spectrum.

    Returns
    -------
    float64 array, shape (spectra, 3)
        Bayes mismatch, residual and their sum.
    """
    check_name(RULES, rule, "rule", RunError)
    if rule == "threshold" and not predicts_fingerprint(run):
        raise RunError(f"{run.folder}: {name_of(run)} predicts no fingerprint to threshold")
    test, prepared = found.asked, run.open_data(data)
    predicted = _thresholded(run, test.how, test.queries, prepared) if rule == "threshold" else None
    ends = np.cumsum(test.counts)
    parts = []
    for place in range(0, len(test.counts), every):
        here = slice(ends[place] - test.counts[place], ends[place])
        known = list_distribution(prepared, test.candidates[here], test.probabilities[here])
        if predicted is None:
            bits = known.bits_of(int(np.argmax(known.probabilities)))
        else:
            bits = predicted[place]
        within: Within = "candidates" if predicted is None else "all"
        split = decompose_under(evaluated_under, decoded_for, known, bits, within)
        parts.append((split.bayes, split.residual, split.total))
    return np.array(parts)


def _thresholded(
    run: Run, how: Scoring, queries: npt.NDArray[np.int64], prepared: Prepared
) -> npt.NDArray[np.uint8]:
    """Predicted fingerprints of spectra, from the checkpoint that was best by Tanimoto."""
    said = predictions_of(run, prepared, best_step(run, "tanimoto"), how.fold, silent)
    assert said.fingerprints is not None
    rows = np.searchsorted(said.queries, queries)
    return np.asarray(binarise(said.fingerprints[rows]), np.uint8)


def _renamed(progress: Progress) -> Progress:
    return lambda stage, done, total=None: progress(f"{stage}, uniform", done, total)
