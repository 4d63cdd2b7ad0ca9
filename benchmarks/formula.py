"""How often the formula is right without a database, with controls, on the test fold.

    python benchmarks/formula.py SHARED [--fold test] [--model FILE] [--json]

One spectrum a molecule and ion of both sets, precursors blurred by 2 ppm (standard deviation, not
cut), within 5 ppm. Three kinds of input: the ion is known; the ion is known and a survey scan is
simulated (intensities off by 5 %, isotopologues below 0.5 % missing); the ion is not known. Then
`cbio_standards.msp` as it is: measured survey scans, ions not stated, within 10 ppm.

Right is the formula of the molecule (and its ion, where that is not known). Elements that are not
enumerated, masses beyond the tolerance, and spectra without any formula count as wrong. Intervals
(95 %) are over molecules. The calibration error is that of the first formula, in 15 bins.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from formula_spectra import fold_spectra, true_formula, with_simulated_scan
from mzseek.chem.adducts import fitting_adducts, parse_adduct
from mzseek.chem.formulas import parse_formula
from mzseek.core.errors import MzseekError
from mzseek.formulas import FormulaModel, RankedFormula, rank_formulas, shipped_model
from mzseek.formulas.model import FEATURES
from mzseek.metrics.intervals import bootstrap
from mzseek.spectra import Spectrum, read_spectra

BINS, TOP = 15, 200
# Controls: all evidence but these is left out.
CONTROLS = {
    "all evidence": FEATURES,
    "mass error alone": ("mass",),
    "mass error and prior": ("mass", "prior", "ion"),
    "without the prior": tuple(name for name in FEATURES if name != "prior"),
}


@dataclass(frozen=True)
class Question:
    """A spectrum, the ions it may be, and the right answers."""

    molecule: str
    spectrum: Spectrum
    adducts: tuple[str, ...] | None
    right: frozenset[tuple[str, str]]
    ppm: float


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("shared", type=Path)
    asked.add_argument("--fold", default="test")
    asked.add_argument("--model", type=Path)
    asked.add_argument("--part", default="", help="only rows whose name has this")
    given = asked.parse_args()
    model = shipped_model()
    if given.model:
        model = FormulaModel.from_dict(json.loads(given.model.read_text()))
    spectra = list(fold_spectra(given.shared, given.fold))
    rows: dict[str, Callable[[], Iterable[Question]]] = {
        "ion known": lambda: map(known_ion, spectra),
        "ion known, simulated MS1": lambda: map(known_ion, map(with_scan, spectra)),
        "ion not known": lambda: map(unknown_ion, spectra),
        "cbio_standards.msp, measured MS1": lambda: standards(given.shared, with_ms1=True),
        "cbio_standards.msp, without MS1": lambda: standards(given.shared, with_ms1=False),
    }
    print("| input | evidence | molecules | top-1 | top-5 | mean probability | calibration error |")
    print("|---|---|---|---|---|---|---|")
    for name, questions in rows.items():
        if given.part not in name:
            continue
        everything = list(questions())
        controls = CONTROLS if name == "ion known" else {"all evidence": FEATURES}
        for control, features in controls.items():
            measured = measure(everything, only(model, features))
            print(f"| {name} | {control} | {measured} |", flush=True)


def only(model: FormulaModel, features: Sequence[str]) -> FormulaModel:
    """Return the model with the weights of other evidence set to 0."""
    kept = np.array([name in features for name in FEATURES])
    modes = {sign: replace(m, weights=m.weights * kept) for sign, m in model.modes.items()}
    return replace(model, modes=modes)


def with_scan(spectrum: Spectrum) -> Spectrum:
    try:
        return with_simulated_scan(spectrum, 0.05)
    except MzseekError:  # an element that is not enumerated
        return spectrum


def known_ion(spectrum: Spectrum) -> Question:
    adduct = parse_adduct(str(spectrum.adduct)).name
    return Question(
        spectrum.metadata["inchikey"], spectrum, (adduct,),
        frozenset([(true_formula(spectrum), adduct)]), 5.0,
    )  # fmt: skip


def unknown_ion(spectrum: Spectrum) -> Question:
    known = known_ion(spectrum)
    unstated = replace(spectrum, adduct=None)
    return replace(known, spectrum=unstated, adducts=None)


def standards(shared: Path, *, with_ms1: bool) -> Iterable[Question]:
    """Yield the MS2 spectra with a survey scan whose precursor some known ion explains."""
    for spectrum in read_spectra(shared / "data" / "cbio_standards.msp", []):
        text = spectrum.metadata.get("formula")
        if not text or "ms1_peaks" not in spectrum.metadata:
            continue
        try:
            formula = parse_formula(text)
        except MzseekError:
            continue
        mode = spectrum.metadata.get("ionmode")
        ions = fitting_adducts(spectrum.precursor_mz, formula.mass, 15.0, None, mode)
        if not ions:
            continue
        if not with_ms1:
            kept = {k: v for k, v in spectrum.metadata.items() if k != "ms1_peaks"}
            spectrum = replace(spectrum, metadata=kept)
        right = frozenset((str(formula), ion.name) for ion in ions)
        molecule = spectrum.metadata.get("inchi") or spectrum.metadata["compound_name"]
        yield Question(molecule, spectrum, None, right, 10.0)


def measure(questions: Sequence[Question], model: FormulaModel) -> str:
    """Return cells of the table."""
    ranks, sure, molecules = [], [], []
    for question in questions:
        found = answered(question, model)
        places = [at for at, f in enumerate(found) if (f.formula, f.adduct) in question.right]
        ranks.append(places[0] if places else TOP)
        sure.append(found[0].probability if found else 0.0)
        molecules.append(question.molecule)
    place, p = np.array(ranks), np.array(sure)
    right = place == 0
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    error = np.abs(np.bincount(bins, p - right, BINS)).sum() / len(p)
    groups = np.unique(molecules, return_inverse=True)[1]
    shares = []
    for hits in (right, place < 5):
        low, high = interval(hits.astype(float), groups)
        shares.append(f"{100 * hits.mean():.1f} ({100 * low:.1f}…{100 * high:.1f})")
    return (
        f"{len(set(molecules)):,} | {shares[0]} | {shares[1]} | {100 * p.mean():.1f} | "
        f"{100 * error:.1f}"
    )


def answered(question: Question, model: FormulaModel) -> tuple[RankedFormula, ...]:
    adducts = question.adducts
    try:
        return rank_formulas(question.spectrum, adducts, ppm=question.ppm, top=TOP, model=model)
    except MzseekError:
        return ()


def interval(values: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    found = bootstrap(values, groups)
    return found.low, found.high


if __name__ == "__main__":
    main()
