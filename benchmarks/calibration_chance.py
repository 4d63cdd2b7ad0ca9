"""How large a calibration error is by chance alone, with so few molecules.

    python benchmarks/calibration_chance.py RUN BUNDLE

RUN is the fitted run that BUNDLE was made of. Outcomes are drawn as if every probability of the
test fold were right. Spectra of a molecule are right or wrong together: one number is drawn for
each molecule, and a spectrum is right if its probability is above it. What is measured lies among
what is drawn, or not.
"""

import argparse
from pathlib import Path

import numpy as np

from mzseek.annotation.confidence import MODES
from mzseek.bundle import Bundle
from mzseek.bundle.fit_confidence import merge_molecules, modes_of, usable_lists
from mzseek.datasets.prepared import Prepared
from mzseek.decision.calibration import first_places
from mzseek.runs.run import Run

BINS, DRAWS = 15, 1_000


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("run", type=Path)
    asked.add_argument("bundle", type=Path)
    given = asked.parse_args()
    run, bundle = Run.open(given.run), Bundle.open(given.bundle)
    prepared = Prepared.open(run.metadata["data"]["folder"])
    lists = usable_lists(run, prepared, "test", "mass")
    modes = modes_of(prepared, lists.queries)
    rng = np.random.default_rng(0)
    for mode, sign in MODES.items():
        own = lists.select(modes == sign)
        p = bundle.confidence.of(sign).calibration.posterior(own.scores, own.counts)
        sure, right = first_places(*merge_molecules(own, p, prepared))
        molecules, place = np.unique(own.molecule, return_inverse=True)
        drawn = [error(sure, rng.random(len(molecules))[place] < sure) for _ in range(DRAWS)]
        low, middle, high = np.percentile(drawn, [2.5, 50, 97.5])
        print(
            f"{mode}: measured {100 * error(sure, right > 0):.1f} points over {len(molecules)} "
            f"molecules; by chance alone {100 * middle:.1f} ({100 * low:.1f}…{100 * high:.1f})"
        )


def error(sure: np.ndarray, right: np.ndarray) -> float:
    """Expected calibration error over bins of equal width."""
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, sure - right, BINS)
    return float(np.abs(gaps).sum() / len(sure))


if __name__ == "__main__":
    main()
