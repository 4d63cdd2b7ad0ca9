"""All that a run's probabilities are worth: decoded, calibrated, as sets, and against controls."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mzseek.decision import Reliability, reliability
from mzseek.decision.goals import GOALS
from mzseek.evaluation.decoding import DecodedFold, decode
from mzseek.evaluation.posteriors import Calibrated, calibrate
from mzseek.evaluation.scored import Scoring
from mzseek.evaluation.uncertainty import (
    Abstention,
    SetResult,
    abstentions,
    calibration_errors,
    risk_area,
    set_results,
)
from mzseek.files import StrPath
from mzseek.runs.run import Run
from mzseek.tables import Table, Tabular
from mzseek.work.progress import Progress, silent

CONTROL_UTILITIES = tuple(GOALS)


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
    curve : Reliability
        How often the first answer is right, by how sure the calibrated posterior is of it.
    """

    folder: Path
    calibrated: Calibrated
    decoded: DecodedFold
    uniform: DecodedFold
    errors: dict[str, float]
    sets: list[SetResult]
    abstentions: list[Abstention]
    risk_area: float
    curve: Reliability

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

    @property
    def worst_bin(self) -> dict[str, float] | None:
        """The bin of `FULL_BIN` or more lists that is furthest off; None where none has so many."""
        at = self.curve.worst()
        if at is None:
            return None
        confidence, accuracy = float(self.curve.confidence[at]), float(self.curve.accuracy[at])
        return {
            "lists": int(self.curve.lists[at]),
            "confidence": confidence,
            "accuracy": accuracy,
            "off": abs(confidence - accuracy),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        calibration = self.calibrated.asked.calibration
        pooling = self.calibrated.pooling
        return {
            "decoded": self.decoded.to_dict(),
            "decoded_uniform": self.uniform.to_dict(),
            "calibration": {
                **(vars(calibration) if calibration else {}),
                "step": self.calibrated.asked.step,
                "error_before": self.errors["before"],
                "error_after": self.errors["after"],
                **({"dependence": pooling.dependence} if pooling else {}),
                "bins": self.curve.to_list(),
                "worst_bin": self.worst_bin,
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
    return beliefs_in(found, run, data=data, progress=progress)


def beliefs_in(
    found: Calibrated,
    run: Run,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> Beliefs:
    """What a calibrated posterior of a run is worth; of spectra alone, or of several together."""
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
        curve=reliability(*found.asked.answers()),
    )


def _renamed(progress: Progress) -> Progress:
    return lambda stage, done, total=None: progress(f"{stage}, uniform", done, total)
