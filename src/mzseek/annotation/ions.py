"""Features of several ions: what each ion says alone, and whether they agree."""

from dataclasses import replace

import numpy as np

from mzseek.annotation.annotation import Annotation, IonSupport
from mzseek.annotation.candidates import Molecule
from mzseek.annotation.confidence import Confidence
from mzseek.annotation.posterior import uncalibrated
from mzseek.annotation.query import FeatureQuery
from mzseek.annotation.scoring import Scored, mode_of_ion

# An ion disagrees if its own spectra make another molecule so many times as probable: of
# validation molecules with such an ion 42 % are right, of others 70 % (benchmarks/pooled_ions.py).
DISAGREES = 2.0
_NAME_LENGTH = 60


def with_ion_support(
    annotation: Annotation, query: FeatureQuery, scored: Scored, confidence: Confidence
) -> Annotation:
    """Add what the spectra of each ion say alone, and notes; the same object for a single ion.

    Ions are compared among the candidates of the best candidate's adducts, by the channels' scores:
    matches, external scores and priors are of the feature.
    """
    best = annotation.best
    if best is None or not scored.by_ion:
        return annotation
    sizes = [len(molecules) for molecules in query.molecules]
    at = next(at for at, h in enumerate(query.hypotheses) if h.adducts == best.adducts)
    hypothesis, molecules = query.hypotheses[at], query.molecules[at]
    rows = slice(sum(sizes[:at]), sum(sizes[: at + 1]))
    place = next(i for i, m in enumerate(molecules) if (m.key, m.smiles) == (best.key, best.smiles))
    support, dissent = [], []
    for (adduct, spectra), scores in zip(hypothesis.ions.items(), scored.by_ion, strict=True):
        calibration = confidence.of(mode_of_ion(adduct)).calibration
        p = calibration.posterior(scores[rows], [len(molecules)])
        preferred = int(np.argmax(p))
        support.append(
            IonSupport(
                adduct, len(spectra), float(p[place]), molecules[preferred].smiles,
                molecules[preferred].name, float(p[preferred]),
            )
        )  # fmt: skip
        if p[preferred] > DISAGREES * p[place]:
            dissent.append(f"{adduct} prefers {_named(molecules[preferred])} "
                           f"({p[preferred]:.2f} to {p[place]:.2f})")  # fmt: skip
    notes = list(annotation.notes)
    if dissent:
        notes.append(f"its ions prefer different molecules: {'; '.join(dissent)}")
    others = [ion for ion in hypothesis.ions if ion[-1] != best.adduct[-1]]
    if others:
        numbers = confidence.of(mode_of_ion(others[0]))
        notes += uncalibrated(query.hypotheses, others[0], numbers)
    return replace(annotation, ion_support=tuple(support), notes=tuple(notes))


def _named(molecule: Molecule) -> str:
    return (molecule.name or molecule.smiles)[:_NAME_LENGTH]
