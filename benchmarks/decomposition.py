"""What a run's own rule loses, split into what its goal loses and what it has not learnt."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import RunError
from mzseek.core.ragged import Ragged
from mzseek.core.registry import check_name
from mzseek.datasets.prepared import Prepared
from mzseek.decision.advice import METRICS
from mzseek.decision.decide import decompose_under
from mzseek.decision.distributions import Distribution, expected
from mzseek.decision.utilities import Within
from mzseek.evaluation.posterior_report import list_distribution
from mzseek.evaluation.posteriors import Calibrated, Posterior
from mzseek.evaluation.scored import best_step, predictions_of, scored_lists, usable_lists
from mzseek.io import StrPath
from mzseek.losses import LOSSES
from mzseek.metrics import binarise
from mzseek.parallel.engine import silent
from mzseek.runs.run import Run

# Losses whose models are judged by the fingerprint that they predict; the others rank.
_THRESHOLDED = ("bitwise", "vectorwise")


def own_rule(run: Run) -> tuple[str, str]:
    """What a run itself decides by, and the utility that this rule was made for.

    Returns
    -------
    rule : str
        "threshold" after a bitwise or vectorwise loss: the predicted fingerprint, cut at one half.
        "rank" after any other, for baselines and for what was fitted: the candidate that is scored
        best.
    utility : str
        What the loss stands for; HR@1 where there is none.
    """
    if not run.description.reports_fingerprint or LOSSES[run.loss.name].kind not in _THRESHOLDED:
        return "rank", "hit"
    loss = LOSSES[run.loss.name]
    return "threshold", next(goal for goal, of in METRICS.items() if of == loss.stands_for)


def decompose_run(
    run: Run,
    found: Calibrated,
    evaluated_under: str,
    decoded_for: str | None = None,
    *,
    rule: str | None = None,
    data: StrPath | None = None,
    every: int = 1,
) -> npt.NDArray[np.float64]:
    """The exact decomposition of a run's regret, spectrum by spectrum.

    The calibrated posterior stands for the distribution of the truth. The rule is the run's own
    and is not read from that posterior: its metric chose another checkpoint, candidates of one
    fingerprint are ranked one by one, and calibration weighs lists by their length.

    Parameters
    ----------
    run : Run
    found : Calibrated
        By this run or by another: the better it is, the more the residual says.
    evaluated_under : str
        The utility that counts.
    decoded_for : str, optional
        The utility that the rule was made for; by default what the run's loss stands for.
    rule : "rank" or "threshold", optional
        What the run itself decides for: its best-scored candidate (of several, their mean) from
        the checkpoint that was best by HR@1, or its predicted fingerprint thresholded at one half
        from that best by Tanimoto, which is compared with decisions over all fingerprints. By
        default as `own_rule` says.
    data : Path, optional
        The prepared folder, if it is no longer where it was.
    every : int
        Take every so-manieth spectrum.

    Returns
    -------
    float64 array, shape (spectra, 3)
        Bayes mismatch, residual and their sum.
    """
    own, stands_for = own_rule(run)
    rule, decoded_for = rule or own, decoded_for or stands_for
    check_name(_DECIDED, rule, "rule", RunError)
    if rule == "threshold" and not run.description.reports_fingerprint:
        raise RunError(f"{run.folder}: {run.description.name} predicts no fingerprint to threshold")
    asked, prepared = found.evaluated, run.open_data(data)
    decided = _DECIDED[rule](run, asked, prepared)
    starts = Ragged(asked.counts).starts
    parts = []
    for place in range(0, len(asked.counts), every):
        here = slice(starts[place], starts[place] + asked.counts[place])
        known = list_distribution(prepared, asked.candidates[here], asked.probabilities[here])
        split = decompose_under(
            evaluated_under, decoded_for, known,
            decided.worth(evaluated_under, place, known), decided.within,
        )  # fmt: skip
        parts.append((split.bayes, split.residual, split.total))
    return np.array(parts)


class _Thresholded:
    """Predicted fingerprints of spectra, from the checkpoint that was best by Tanimoto."""

    within: ClassVar[Within] = "all"

    def __init__(self, run: Run, asked: Posterior, prepared: Prepared) -> None:
        step = best_step(run, "tanimoto")
        said = predictions_of(run, prepared, step, asked.how.fold, silent)
        assert said.fingerprints is not None
        rows = np.searchsorted(said.queries, asked.queries)
        self._bits = np.asarray(binarise(said.fingerprints[rows]), np.uint8)

    def worth(self, utility: str, place: int, known: Distribution) -> float:
        """Expected utility of the fingerprint that was predicted."""
        return expected(utility, self._bits[place], known)


class _Ranked:
    """Best-scored candidates of spectra, from the checkpoint that was best by HR@1."""

    within: ClassVar[Within] = "candidates"

    def __init__(self, run: Run, asked: Posterior, prepared: Prepared) -> None:
        step = best_step(run, f"hit_rate@1/{asked.how.candidates}")
        lists = usable_lists(scored_lists(run, prepared, asked.how, step), prepared, asked.how)
        if not np.array_equal(lists.candidates, asked.candidates):
            raise RunError(f"{run.folder}: the posterior is of other lists than the run ranks")
        self._prepared, self._candidates = prepared, lists.candidates
        self._starts, self._counts = Ragged(lists.counts).starts, lists.counts
        self._scores = np.asarray(lists.scores)

    def worth(self, utility: str, place: int, known: Distribution) -> float:
        """Of candidates that share the first place, the mean, as hit rates reckon with ties."""
        here = slice(self._starts[place], self._starts[place] + self._counts[place])
        scores = self._scores[here]
        first = self._candidates[here][scores == scores.max()]
        rows = self._prepared.fingerprint_rows(first).toarray().astype(np.uint8)
        return float(np.mean([expected(utility, bits, known) for bits in rows]))


_DECIDED: dict[str, type[_Ranked | _Thresholded]] = {"rank": _Ranked, "threshold": _Thresholded}
