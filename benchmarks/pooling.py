"""How calibrations and sums over spectra hold on molecules that they were not fitted on.

usage: pooling.py RUN... [--candidates NAME] [--parts 5]

Validation is cut into parts by molecule; each part is judged by what was fitted on the others.
First single spectra, by a temperature alone and by all three numbers of a calibration. Then all
spectra of a molecule together: each counted in full, their mean, and with the fitted dependence.
"""

import argparse
from pathlib import Path

import numpy as np

from mzseek.core.ragged import Ragged
from mzseek.decision import (
    Calibration,
    Pooling,
    fit_calibration,
    fit_pooling,
    fit_temperature,
    reliability,
)
from mzseek.evaluation.posteriors import calibration_lists
from mzseek.evaluation.scored import Scoring, labels_of, molecule_groups, pool_lists
from mzseek.runs.run import Run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--candidates")
    parser.add_argument("--parts", type=int, default=5)
    options = parser.parse_args()
    for folder in options.runs:
        run = Run.open(folder)
        how = Scoring("val", options.candidates or run.measured_on)
        print(f"== {folder}, {how.candidates} candidates of val")
        for name, judged in cross_fitted(
            calibration_lists(run, how).val, how, options.parts
        ).items():
            print(f"{name}: {told(judged)}")


def cross_fitted(lists, how, parts):
    """Probabilities, counts, labels and molecules by each rule, part after part."""
    molecules, place = np.unique(lists.molecule, return_inverse=True)
    part = np.random.default_rng(0).permutation(len(molecules)) % parts
    found, dependences = {}, []

    def judge(name, calibration, judged):
        p = calibration.posterior(judged.scores, judged.counts)
        row = (p, judged.counts, labels_of(judged, how.identity), judged.molecule)
        found.setdefault(name, []).append(row)

    for number in range(parts):
        held = part[place] == number
        fit, out = lists.select(~held), lists.select(held)
        given = fit.scores, fit.counts, labels_of(fit, how.identity)
        three = fit_calibration(*given, fit.molecule)
        judge("temperature alone", Calibration(fit_temperature(*given, fit.molecule)), out)
        judge("all three numbers", three, out)
        fitted = fit_pooling(*given, molecule_groups(fit), three)
        dependences.append(fitted.dependence)
        for name, pooling in (
            ("together, each in full", Pooling(0.0)), ("together, their mean", Pooling(1.0)),
            ("together, fitted", fitted),
        ):  # fmt: skip
            judge(name, three, pool_lists(out, pooling)[0])
    print(f"dependence {min(dependences):.2f} to {max(dependences):.2f}")
    return {
        name: [np.concatenate(each) for each in zip(*rows, strict=True)]
        for name, rows in found.items()
    }


def told(judged):
    """Calibration error, the worst full bin, and the log-likelihood over molecules, in bits."""
    p, counts, labels, molecule = judged
    curve = reliability(p, counts, labels)
    bits = np.log2(np.maximum(Ragged(counts).sum(np.where(labels, p, 0)), 1e-300))
    _, place = np.unique(molecule, return_inverse=True)
    mean = (np.bincount(place, weights=bits) / np.bincount(place)).mean()
    worst = curve.worst()
    off = "no full bin" if worst is None else (
        f"worst full bin off by {100 * abs(curve.confidence[worst] - curve.accuracy[worst]):.1f}"
    )  # fmt: skip
    return f"calibration error {100 * curve.error:.1f}, {off}, {mean:.3f} bits a molecule"


if __name__ == "__main__":
    main()
