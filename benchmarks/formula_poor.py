"""Reliability of formulas of poor spectra: few peaks, noise, peaks of another molecule.

    python benchmarks/formula_poor.py SHARED [--fold val] [--every 2] [--kind NAME …] [--model FILE]

One spectrum a molecule and ion of both sets, precursors blurred by 2 ppm, formulas within 5 ppm.
Peaks are thinned to the strongest, replaced by noise (uniform m/z from 50 to the precursor,
log-normal intensities), or replaced by those of the spectrum of another molecule of the fold below
the precursor. The right formula stays that of the precursor: what such a spectrum says of it is
its mass. An answer is sure if its probability is 0.9 or more, on which level 4 rests. Percentages;
spectra whose formula is not enumerated count as wrong.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from formula import answered, known_ion, unknown_ion
from formula_spectra import fold_spectra, generator
from mzseek.formulas import FormulaModel, shipped_model
from mzseek.spectra import Spectrum

SURE = 0.9
FEW = (1, 2, 3, 5)
LEAST_MZ, NOISE_SPREAD = 50.0, 1.0

Change = Callable[[Spectrum, Spectrum], Spectrum]


def thinned(spectrum: Spectrum, number: int) -> Spectrum:
    """Return a spectrum with its strongest peaks only."""
    chosen = np.sort(np.argsort(-spectrum.intensities, kind="stable")[:number])
    return replace(spectrum, mz=spectrum.mz[chosen], intensities=spectrum.intensities[chosen])


def noise(spectrum: Spectrum, number: int) -> Spectrum:
    """Return a spectrum with random peaks instead of its own."""
    random = generator(spectrum, f"noise {number}")
    mz = np.sort(random.uniform(LEAST_MZ, max(spectrum.precursor_mz, LEAST_MZ + 1), number))
    return replace(spectrum, mz=mz, intensities=random.lognormal(0.0, NOISE_SPREAD, number))


def foreign(spectrum: Spectrum, other: Spectrum, number: int) -> Spectrum:
    """Return a spectrum with the strongest peaks of another one, below its own precursor."""
    below = other.mz < spectrum.precursor_mz
    if not below.any():
        return noise(spectrum, number)
    other = replace(other, mz=other.mz[below], intensities=other.intensities[below])
    few = thinned(other, number)
    return replace(spectrum, mz=few.mz, intensities=few.intensities)


def changes() -> Iterator[tuple[str, Change]]:
    """Yield kinds of poor spectra."""
    yield "as measured", lambda own, _: own
    for n in FEW:
        yield f"strongest {n}", lambda own, _, n=n: thinned(own, n)  # type: ignore[misc]
    for n in (*FEW, 20):
        yield f"noise {n}", lambda own, _, n=n: noise(own, n)  # type: ignore[misc]
    for n in (*FEW, 20):
        yield f"foreign {n}", lambda own, other, n=n: foreign(own, other, n)  # type: ignore[misc]


def poor_spectra(spectra: Sequence[Spectrum]) -> Iterator[tuple[str, list[Spectrum]]]:
    """Yield each kind of poor spectra with the spectra of a fold changed so."""
    order = np.random.default_rng(5).permutation(len(spectra))
    partner = dict(zip(order.tolist(), np.roll(order, 1).tolist(), strict=True))
    for name, change in changes():
        yield name, [change(one, spectra[partner[at]]) for at, one in enumerate(spectra)]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("shared", type=Path)
    asked.add_argument("--fold", default="val")
    asked.add_argument("--every", type=int, default=1, help="take every so many spectra")
    asked.add_argument("--kind", action="append", help="only these kinds of spectra")
    asked.add_argument("--model", type=Path)
    given = asked.parse_args()
    model = shipped_model()
    if given.model:
        model = FormulaModel.from_dict(json.loads(given.model.read_text()))
    spectra = list(fold_spectra(given.shared, given.fold))[:: given.every]
    print("| ion | spectra | top-1 | mean probability | sure | wrong of the sure |")
    print("|---|---|---|---|---|---|")
    for ion, question in (("known", known_ion), ("not known", unknown_ion)):
        for name, changed in poor_spectra(spectra):
            if given.kind and name not in given.kind:
                continue
            found = [(answered(q, model), q.right) for q in map(question, changed)]
            right = np.array([bool(f) and (f[0].formula, f[0].adduct) in r for f, r in found])
            p = np.array([f[0].probability if f else 0.0 for f, _ in found])
            sure = p >= SURE
            wrong = 100 * (~right[sure]).mean() if sure.any() else float("nan")
            print(f"| {ion} | {name} | {100 * right.mean():.1f} | {100 * p.mean():.1f} | "
                  f"{100 * sure.mean():.1f} | {wrong:.1f} ({(~right[sure]).sum()}/{sure.sum()}) |",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
