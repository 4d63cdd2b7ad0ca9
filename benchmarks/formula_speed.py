"""CPU time that ranking formulas takes beside candidates, for each feature.

    python benchmarks/formula_speed.py SHARED [--features 100]

Spectra of the validation fold within 10 ppm, as `mzseek annotate` ranks them: with the ion that the
file states, and without one.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from formula_spectra import fold_spectra
from mzseek.annotation.annotation import Annotation, Level
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.formulas import with_formulas
from mzseek.io import stable_hash
from mzseek.spectra import Spectrum


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("shared", type=Path)
    asked.add_argument("--features", type=int, default=100)
    given = asked.parse_args()
    spectra = sorted(
        fold_spectra(given.shared, "val"), key=lambda s: stable_hash(s.identifier.encode())
    )[: given.features]
    seconds(spectra[:1])  # compiles
    for name, chosen in (
        ("ion stated", spectra),
        ("ion not stated", [replace(s, adduct=None) for s in spectra]),
    ):
        times = 1000 * np.array(seconds(chosen))
        print(f"{name}: {times.mean():.0f} ms a feature (median {np.median(times):.0f}, "
              f"highest {times.max():.0f})")  # fmt: skip


def seconds(spectra: list[Spectrum]) -> list[float]:
    times = []
    for spectrum in spectra:
        feature = Feature("1", "index", (spectrum,))
        empty = Annotation(
            feature, (), 0, 0, (), {}, {}, 0.9, 0, "hit", {}, None, 0.0, False, (), Level("5", "")
        )
        start = time.process_time()
        with_formulas(empty, AnnotateConfig())
        times.append(time.process_time() - start)
    return times


if __name__ == "__main__":
    main()
