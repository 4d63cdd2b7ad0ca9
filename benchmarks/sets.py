"""Coverage of prediction sets: on the test fold, and on molecules that are exchangeable by design.

usage: sets.py RUN... [--candidates NAME] [--molecules 15 30 60 100] [--draws 200]

First the promise as it is kept: fitted on validation, measured on the test fold, whose structures
were split apart from it. Then as the theorem has it: molecules of both folds are mixed, some are
drawn at random to fit on, and the others are measured; averages over draws.
"""

import argparse
from pathlib import Path

import numpy as np

from mzseek.decision import fit_set_threshold, prediction_sets
from mzseek.evaluation.posteriors import COVERAGES, by_molecule, calibrate, set_results
from mzseek.evaluation.scored import Scoring
from mzseek.runs.run import Run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--candidates")
    parser.add_argument("--molecules", type=int, nargs="+", default=[15, 30, 60, 100])
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    for folder in options.runs:
        run = Run.open(folder)
        setting = options.candidates or run.measured_on
        found = calibrate(run, Scoring(candidates=setting))
        print(f"== {folder}, {setting} candidates")
        for each in set_results(found):
            print(
                f"{100 * each.stated:.0f} %: {100 * each.covered.mean:.1f} "
                f"({100 * each.covered.low:.1f} to {100 * each.covered.high:.1f}) on the test "
                f"fold, fitted on {each.fitted_on} molecules of validation"
            )
        for count in options.molecules:
            means = [100 * mixed(found, stated, count, options.draws) for stated in COVERAGES]
            cells = ", ".join(f"{mean:.1f}" for mean in means)
            print(f"fitted on {count} molecules drawn at random: {cells}")


def mixed(found, stated, count, draws):
    """Mean coverage of molecules of both folds, fitted on as many others, drawn at random."""
    parts = [found.val.merged(), found.evaluated.merged()]
    p, counts, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
    molecule = np.concatenate([found.val.molecule, found.evaluated.molecule])
    of_list = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(draws):
        fitted = np.isin(molecule, rng.permutation(np.unique(molecule))[:count])
        inside = fitted[of_list]
        threshold = fit_set_threshold(
            p[inside], counts[fitted], labels[inside], stated, molecule[fitted]
        )
        lengths = counts[~fitted]
        chosen = prediction_sets(p[~inside], lengths, threshold) & labels[~inside]
        hit = np.logical_or.reduceat(chosen, np.cumsum(lengths) - lengths)
        shares.append(by_molecule(hit, molecule[~fitted]).mean())
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
