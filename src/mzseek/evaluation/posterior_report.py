"""Posteriors of a run decoded for every metric, beside controls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged, pointers
from mzseek.core.tables import Table, Tabular
from mzseek.datasets.prepared import Prepared
from mzseek.decision import Reliability, reliability
from mzseek.decision.distributions import Distribution, expected_of_candidates, merged
from mzseek.decision.utilities import GOALS, UTILITIES, WITHIN, Within
from mzseek.evaluation.posteriors import (
    Abstention,
    Calibrated,
    Posterior,
    SetResult,
    abstentions,
    calibrate,
    calibration_errors,
    risk_area,
    set_results,
)
from mzseek.evaluation.scored import Scoring
from mzseek.io import StrPath
from mzseek.metrics import Interval, bootstrap, bootstrap_difference
from mzseek.parallel import LocalEngine, OpenedOnce, Progress, silent
from mzseek.runs.run import Run

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint8]
_LISTS_AT_A_TIME = 100
_WORTH_A_PROCESS = 300


@dataclass(frozen=True)
class DecodedFold:
    """Values of decisions on the spectra of a fold, each decoded for a utility.

    Attributes
    ----------
    values : dict of str to dict of str to dict of str to float64 array
        By the utility decoded for, where it was decided (``candidates`` or ``all``), and the
        utility that the decision is judged by: one value for each spectrum, against the truth.
    molecule : int array
        The true molecule of each spectrum.
    """

    values: dict[str, dict[str, dict[str, Floats]]]
    molecule: npt.NDArray[np.int32]

    def interval(
        self, decoded_for: str, judged_by: str, within: str = "all", level: float = 0.95
    ) -> Interval:
        """Mean with its interval over molecules."""
        return bootstrap(self.values[decoded_for][within][judged_by], self.molecule, level=level)

    def gain_over(
        self,
        control: "DecodedFold",
        decoded_for: str,
        judged_by: str,
        within: str = "all",
        level: float = 0.95,
    ) -> Interval:
        """Difference to another posterior decoded alike, paired by spectrum."""
        if not np.array_equal(self.molecule, control.molecule):
            raise RunError("the control was decoded on other spectra")
        return bootstrap_difference(
            self.values[decoded_for][within][judged_by],
            control.values[decoded_for][within][judged_by],
            self.molecule,
            level=level,
        )

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Means, as plain data."""
        return {
            utility: {
                within: {name: float(v.mean()) for name, v in judged.items()}
                for within, judged in places.items()
            }
            for utility, places in self.values.items()
        }


def decode(
    posterior: Posterior,
    prepared: Prepared,
    utilities: Sequence[str] = tuple(UTILITIES),
    within: Sequence[Within] = WITHIN,
    *,
    processes: int | None = None,
    progress: Progress = silent,
) -> DecodedFold:
    """Decide for every spectrum of a fold, and judge the decisions by the truth.

    Parameters
    ----------
    posterior : Posterior
    prepared : Prepared
        The data that it is of.
    utilities, within : sequences of str
        What to decode for, and where to decide.
    processes : int, optional
        By default as many as there are cores, where there are enough lists.
    progress : callable of (stage, done, total)

    Returns
    -------
    DecodedFold
    """
    count = len(posterior.counts)
    jobs = [_Job(part, tuple(utilities), tuple(within)) for part in in_parts(posterior)]
    engine = engine_for(count, len(jobs), processes)
    work = OpenedOnce(_decode_job, opened, prepared.folder, str(prepared.manifest["key"]))
    parts = []
    for part in engine.results(work, jobs):
        parts.append(part)
        progress("decoding", sum(map(len, parts)), count)
    joined = np.concatenate(parts)  # (lists, utilities, within, judged by)
    return DecodedFold(
        {
            utility: {
                place: {name: joined[:, u, w, j] for j, name in enumerate(UTILITIES)}
                for w, place in enumerate(within)
            }
            for u, utility in enumerate(utilities)
        },
        posterior.molecule,
    )


def in_parts(posterior: Posterior) -> Iterator[Posterior]:
    """A posterior in parts of some lists each, for processes to share."""
    count, ends = len(posterior.counts), pointers(posterior.counts)
    for start in range(0, count, _LISTS_AT_A_TIME):
        here = slice(start, min(start + _LISTS_AT_A_TIME, count))
        inside = slice(ends[start], ends[here.stop])
        yield replace(
            posterior,
            queries=posterior.queries[here],
            molecule=posterior.molecule[here],
            counts=posterior.counts[here],
            candidates=posterior.candidates[inside],
            labels=posterior.labels[inside],
            probabilities=posterior.probabilities[inside],
            answer=posterior.answer[inside],
        )


def distributions(prepared: Prepared, posterior: Posterior) -> Iterator[Distribution]:
    """The distribution over fingerprints of each list of a posterior."""
    for start, count in zip(Ragged(posterior.counts).starts, posterior.counts, strict=True):
        here = slice(start, start + count)
        yield list_distribution(prepared, posterior.candidates[here], posterior.probabilities[here])


def engine_for(lists: int, jobs: int, processes: int | None) -> LocalEngine:
    """Processes as many as asked for, or as there are cores; one where lists are few."""
    if jobs == 1 or (processes is None and lists < _WORTH_A_PROCESS):
        processes = 1
    return LocalEngine(processes)


def opened(folder: Path, key: str) -> Prepared:
    """The folder; the key tells it from one made anew in its place."""
    return Prepared.open(folder)


@dataclass(frozen=True)
class _Job:
    part: Posterior
    utilities: tuple[str, ...]
    within: tuple[Within, ...]


def _decode_job(prepared: Prepared, job: _Job) -> Floats:
    part = job.part
    found = np.empty((len(part.counts), len(job.utilities), len(job.within), len(UTILITIES)))
    starts = Ragged(part.counts).starts
    for row, known in enumerate(distributions(prepared, part)):
        rows = prepared.fingerprint_rows(part.molecule[[row]])
        for u, utility in enumerate(job.utilities):
            for w, within in enumerate(job.within):
                bits, index = _decide(utility, within, known)
                found[row, u, w] = _judge(bits, rows.indices)
                if index is not None:  # by the identity asked for, which bits may not tell
                    found[row, u, w, _HIT] = part.labels[starts[row] + index]
    return found


_HIT = list(UTILITIES).index("hit")


def _decide(utility: str, within: Within, known: Distribution) -> tuple[Bits, int | None]:
    """`mzseek.decision.decide.decide`, without the bound that costs time and is not read here."""
    if within == "candidates":
        best = int(np.argmax(expected_of_candidates(utility, known)))
        return known.bits_of(best), int(known.rows[best])
    bits = UTILITIES[utility].decode(known, bound=False).bits
    place = known.place_of(bits)
    return bits, None if place is None else int(known.rows[place])


def _judge(bits: Bits, truth: npt.NDArray[Any]) -> list[float]:
    """Every utility of a decision against the truth."""
    common, size = np.float64(bits[truth].sum()), np.float64(bits.sum())
    return [
        float(each.of(common, size, np.float64(len(truth)), len(bits)))
        for each in UTILITIES.values()
    ]


def list_distribution(
    prepared: Prepared, candidates: npt.NDArray[np.integer], probabilities: Floats
) -> Distribution:
    """The distribution over fingerprints that a list's posterior is."""
    rows = prepared.fingerprint_rows(candidates)
    return merged(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.shape[1], probabilities
    )


CONTROL_UTILITIES = tuple(GOALS)


@dataclass(frozen=True)
class PosteriorReport(Tabular):
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
) -> PosteriorReport:
    """Calibrate a run on validation, and decode it on the fold asked for.

    Parameters
    ----------
    run, how, data, progress
        As in `mzseek.evaluation.evaluate.evaluate`.

    Returns
    -------
    PosteriorReport
    """
    found = calibrate(run, how, data=data, progress=progress)
    return beliefs_in(found, run, data=data, progress=progress)


def beliefs_in(
    found: Calibrated,
    run: Run,
    *,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> PosteriorReport:
    """What a calibrated posterior of a run is worth; of spectra alone, or of several together."""
    prepared = run.open_data(data)
    return PosteriorReport(
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
