"""What a fitted run reaches on the test fold, by ion mode: numbers for the card."""

from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.bundle.making.cases import modes_of, only
from mzseek.annotation.bundle.making.confident import answers_of, usable_lists
from mzseek.annotation.confidence import MODES, Confidence, OfMode
from mzseek.decision import calibration_error, prediction_sets
from mzseek.evaluation.together import pooled_lists
from mzseek.metrics import bootstrap, hit_rate
from mzseek.prepared.reader import Prepared
from mzseek.ragged import Ragged
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

MEASURED_ON = "test"
HITS = (1, 5, 20)
COVERAGE = 0.9


def measured(run: Run, prepared: Prepared, confidence: Confidence, setting: str) -> dict[str, Any]:
    """Hit rates, calibration and sets on the test fold, for each ion mode that it has.

    Rates are shares, each with its 95 % interval over molecules; a hit is the same molecule (first
    InChIKey block).
    """
    if not len(prepared.in_fold(MEASURED_ON)):
        return {}
    lists = usable_lists(run, prepared, MEASURED_ON, setting)
    modes = modes_of(prepared, lists.queries)
    found = {}
    for mode, sign in MODES.items():
        own = np.flatnonzero(modes == sign)
        if len(own):
            found[mode] = _of_mode(only(lists, own), prepared, confidence.of(sign))
    return found


def _of_mode(lists: ListScores, prepared: Prepared, numbers: OfMode) -> dict[str, Any]:
    pooled, _ = pooled_lists(lists, numbers.pooling)
    p, counts, truth = answers_of(lists, prepared, numbers.calibration)
    ragged = Ragged(counts)
    inside = prediction_sets(p, counts, numbers.threshold(COVERAGE)[1])
    covered = ragged.any(inside & truth).astype(np.float64)
    return {
        "spectra": len(lists.counts),
        "molecules": len(np.unique(lists.molecule)),
        "candidates": float(lists.counts.mean()),
        "hit_rates": {str(k): _rate(lists, k) for k in HITS},
        "hit_rates_together": {str(k): _rate(pooled, k) for k in HITS},
        "calibration_error": float(calibration_error(p, counts, truth)),
        "sets": {
            "stated": COVERAGE,
            "covered": interval_of(covered, lists.molecule),
            "size": float(ragged.sum(inside.astype(np.int64)).mean()),
        },
    }


def _rate(lists: ListScores, k: int) -> list[float]:
    labels = np.asarray(lists.identity) > 0
    return interval_of(hit_rate(lists.scores, lists.counts, labels, k), lists.molecule)


def interval_of(values: Any, molecule: npt.NDArray[np.integer]) -> list[float]:
    """Mean and 95 % interval over molecules."""
    found = bootstrap(values, molecule)
    return [round(float(each), 6) for each in (found.mean, found.low, found.high)]
