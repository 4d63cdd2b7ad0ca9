"""Posteriors of a run decoded for every metric, beside controls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged, pointers
from mzseek.core.text import Table, Tabular
from mzseek.datasets.prepared import Prepared
from mzseek.decision import (
    Reliability,
    calibration_error,
    first_places,
    reliability,
    risk_coverage,
)
from mzseek.decision.distributions import Distribution, expected_of_candidates, merged
from mzseek.decision.utilities import GOALS, UTILITIES, WITHIN, Within
from mzseek.evaluation.posteriors import (
    Abstention,
    Calibrated,
    Posterior,
    SetResult,
    abstentions,
    calibrate,
    set_results,
)
from mzseek.evaluation.scored import Floats, Scoring
from mzseek.io import StrPath
from mzseek.metrics import Interval, bootstrap, bootstrap_difference
from mzseek.parallel import LocalEngine, OpenedOnce, Progress, silent
from mzseek.runs.run import Run

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

    def interval(self, decoded_for: str, judged_by: str, within: str = "all") -> Interval:
        """Return a mean with its interval over molecules."""
        return bootstrap(self.values[decoded_for][within][judged_by], self.molecule)

    def gain_over(
        self, control: "DecodedFold", decoded_for: str, judged_by: str, within: str = "all"
    ) -> Interval:
        """Difference to another posterior decoded alike, paired by spectrum."""
        if not np.array_equal(self.molecule, control.molecule):
            raise RunError("the control was decoded on other spectra")
        return bootstrap_difference(
            self.values[decoded_for][within][judged_by],
            control.values[decoded_for][within][judged_by],
            self.molecule,
        )

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Means, as plain data."""
        return {
            utility: {
                within: {name: float(v.mean()) for name, v in judged.items()}
                for within, judged in regions.items()
            }
            for utility, regions in self.values.items()
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
    """
    decisions = [(utility, where) for utility in utilities for where in within]
    values = map_lists(
        partial(_decide_lists, decisions), posterior, prepared, processes, progress, "decoding"
    )  # (lists, decisions, judged by)
    judged = {
        decision: {name: values[:, d, j] for j, name in enumerate(UTILITIES)}
        for d, decision in enumerate(decisions)
    }
    return DecodedFold(
        {utility: {where: judged[utility, where] for where in within} for utility in utilities},
        posterior.molecule,
    )


def map_lists(
    function: Callable[[Prepared, Posterior], Floats],
    posterior: Posterior,
    prepared: Prepared,
    processes: int | None,
    progress: Progress,
    stage: str,
) -> Floats:
    """Concatenate a function of the lists of a posterior, computed in parallel where it pays."""
    count, ends = len(posterior.counts), pointers(posterior.counts)
    parts = []
    for start in range(0, count, _LISTS_AT_A_TIME):
        lists = slice(start, min(start + _LISTS_AT_A_TIME, count))
        inside = slice(ends[start], ends[lists.stop])
        slices = dict.fromkeys(("queries", "molecule", "counts"), lists)
        slices |= dict.fromkeys(("candidates", "labels", "probabilities", "identity"), inside)
        parts.append(
            replace(
                posterior, **{name: getattr(posterior, name)[at] for name, at in slices.items()}
            )
        )
    if len(parts) == 1 or (processes is None and count < _WORTH_A_PROCESS):
        processes = 1
    work = OpenedOnce(function, _open_prepared, prepared.folder, str(prepared.manifest["key"]))
    results: list[Floats] = []
    for result in LocalEngine(processes).results(work, parts):
        results.append(result)
        progress(stage, sum(map(len, results)), count)
    return np.concatenate(results)


def _open_prepared(folder: Path, key: str) -> Prepared:
    """Open the folder; the key distinguishes it from one made anew in its place."""
    return Prepared.open(folder)


def distributions(prepared: Prepared, posterior: Posterior) -> Iterator[Distribution]:
    """Yield the distribution over fingerprints of each list of a posterior."""
    for start, count in zip(Ragged(posterior.counts).starts, posterior.counts, strict=True):
        inside = slice(start, start + count)
        yield list_distribution(
            prepared, posterior.candidates[inside], posterior.probabilities[inside]
        )


_HIT = list(UTILITIES).index("hit")


def _decide_lists(
    decisions: Sequence[tuple[str, Within]], prepared: Prepared, posterior: Posterior
) -> Floats:
    """Judge each decision by every utility, against the truth.

    The bound on a decision's utility costs time, is not read here, and is left out.
    """
    values = np.empty((len(posterior.counts), len(decisions), len(UTILITIES)))
    starts = Ragged(posterior.counts).starts
    for row, distribution in enumerate(distributions(prepared, posterior)):
        truth = prepared.fingerprint_rows(posterior.molecule[[row]]).indices
        for d, (utility, within) in enumerate(decisions):
            index: int | None
            if within == "candidates":
                index = int(np.argmax(expected_of_candidates(utility, distribution)))
                bits = distribution.bits_of(index)
            else:
                bits = UTILITIES[utility].rules.decode(distribution, bound=False).bits
                index = distribution.place_of(bits)
            common, size = np.float64(bits[truth].sum()), np.float64(bits.sum())
            values[row, d] = [
                float(judge.rules.of(common, size, np.float64(len(truth)), len(bits)))
                for judge in UTILITIES.values()
            ]
            if index is not None:  # by the identity asked for, which bits may not tell
                candidate = int(distribution.rows[index])
                values[row, d, _HIT] = posterior.labels[starts[row] + candidate]
    return values


def list_distribution(
    prepared: Prepared, candidates: npt.NDArray[np.integer], probabilities: Floats
) -> Distribution:
    """Return the distribution over fingerprints that a list's posterior is."""
    rows = prepared.fingerprint_rows(candidates)
    return merged(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.shape[1], probabilities
    )


CONTROL_UTILITIES = tuple(GOALS)


@dataclass(frozen=True)
class PosteriorReport(Tabular):
    """A run's calibrated posterior on a fold: decisions, calibration, sets and abstention.

    Attributes
    ----------
    folder : Path
        The run's, resolved.
    calibrated : Calibrated
    decoded, uniform : DecodedFold
        The posterior decoded for every utility, and the uniform one, without the spectrum.
    errors : dict of str to float
        Expected calibration error ``before`` and ``after``.
    sets : list of SetResult
    abstentions : list of Abstention
    risk_area : float
    curve : Reliability
        Accuracy of the most probable candidate, by its calibrated probability.
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
        """Return one row for each decision: goal, where it was decided, values by metric."""
        decoded = self.decoded.to_dict()
        rows = [(goal, within) for goal, regions in decoded.items() for within in regions]
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
        """The bin with the largest error of those with `FULL_BIN` lists; None without any."""
        at = self.curve.worst()
        if at is None:
            return None
        confidence, accuracy = float(self.curve.confidence[at]), float(self.curve.accuracy[at])
        lists, off = int(self.curve.lists[at]), abs(confidence - accuracy)
        return {"lists": lists, "confidence": confidence, "accuracy": accuracy, "off": off}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        calibration = self.calibrated.evaluated.calibration
        pooling = self.calibrated.pooling
        return {
            "decoded": self.decoded.to_dict(),
            "decoded_uniform": self.uniform.to_dict(),
            "calibration": {
                **(vars(calibration) if calibration else {}),
                "step": self.calibrated.evaluated.step,
                "error_before": self.errors["before"],
                "error_after": self.errors["after"],
                **({"dependence": pooling.dependence} if pooling else {}),
                "bins": self.curve.to_list(),
                "worst_bin": self.worst_bin,
            },
            "prediction_sets": [result.to_dict() for result in self.sets],
            "abstention": [result.to_dict() for result in self.abstentions],
            "risk_area": self.risk_area,
        }


def posterior_report(
    run: Run,
    how: Scoring | None = None,
    *,
    pooled: bool = False,
    data: StrPath | None = None,
    progress: Progress = silent,
) -> PosteriorReport:
    """Calibrate a run on validation, and decode it on the fold asked for.

    Parameters are those of `mzseek.evaluation.evaluate.evaluate`; with ``pooled``, the posteriors
    are given all spectra of a molecule.
    """
    calibrated = calibrate(run, how, pooled=pooled, data=data, progress=progress)
    prepared, posterior = run.open_data(data), calibrated.evaluated

    def tell_uniform(stage: str, done: int, total: int | None = None) -> None:
        progress(f"{stage}, uniform", done, total)

    curve = reliability(*posterior.merged())
    before = calibration_error(*calibrated.uncalibrated.merged())
    return PosteriorReport(
        folder=run.folder.resolve(),
        calibrated=calibrated,
        decoded=decode(posterior, prepared, progress=progress),
        uniform=decode(posterior.uniform(), prepared, CONTROL_UTILITIES, progress=tell_uniform),
        errors={"before": before, "after": curve.error},
        sets=set_results(calibrated),
        abstentions=abstentions(calibrated),
        risk_area=risk_coverage(*first_places(*posterior.merged())).area,
        curve=curve,
    )
