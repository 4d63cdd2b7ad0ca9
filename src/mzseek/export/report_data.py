"""What the annotation report shows of a feature, as plain data."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.annotation.annotation import Annotation, Candidate, Floats, Reference
from mzseek.chem.depiction import structure
from mzseek.chem.identifiers import canonical, link
from mzseek.decision import UTILITIES
from mzseek.fragments import Explanation

MAX_PEAKS = 160  # that are drawn; of more, the strongest
MAX_REFERENCE_PEAKS = 80
IN_FULL = 5  # candidates with their fragments
LISTED = 15  # candidates with a name and a probability
REFERENCES = 6  # spectra
KINDS = ("match", "evidence", "analogy", "prior")
_SURE, _FAIR = 0.9, 0.5
_MIN_ANALOGY = 0.1  # log-odds
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def packed_peaks(mz: Floats, intensities: Floats, max_peaks: int = MAX_PEAKS) -> list[list[int]]:
    """Return the strongest peaks by m/z: m/z × 10,000, intensity in 1/1,000 of the strongest.

    Examples
    --------
    >>> packed_peaks(np.array([50.0, 60.5]), np.array([1.0, 4.0]))
    [[500000, 605000], [250, 1000]]
    """
    indices = _strongest(intensities, max_peaks)
    highest = float(intensities.max(initial=0.0))
    return [
        [round(float(value) * 10_000) for value in mz[indices]],
        [max(1, round(float(value) / highest * 1000)) for value in intensities[indices]],
    ]


def _strongest(intensities: Floats, max_peaks: int) -> Floats:
    """Return indices of the strongest, in rising order; of equals the first."""
    return np.sort(np.argsort(-intensities, kind="stable")[:max_peaks])


def packed_fragments(peaks: Sequence[Explanation]) -> list[list[Any]]:
    """Return what a candidate explains of the peaks that are drawn.

    Returns
    -------
    list of list
        Of each explained peak: index among `packed_peaks`, formula, charge, error in 1/10 ppm,
        atoms (a number in hexadecimal whose bits are indices in the SMILES), bonds broken,
        hydrogens moved, equivalent fragments.
    """
    indices = _strongest(np.array([peak.intensity for peak in peaks]), MAX_PEAKS)
    drawn = [peaks[int(index)] for index in indices]
    return [
        [
            index, peak.formula, peak.charge, round((peak.error_ppm or 0.0) * 10),
            format(sum(1 << atom for atom in peak.atoms), "x"), peak.bonds, peak.hydrogens,
            peak.equivalents,
        ]
        for index, peak in enumerate(drawn)
        if peak.formula is not None
    ]  # fmt: skip


LEVELS = {
    "2a": "a reference spectrum of the same molecule matches",
    "2b": "what was measured fits no other structure",
    "3": "a likely structure among several",
    "4": "a formula, no structure",
    "5": "a mass, no more",
}
# What somebody wants who decides for it.
GOALS = {
    "hit": "the exact molecule, as often as possible",
    "tanimoto": "a molecule that shares most of its parts with the true one",
    "cosine": "shared parts, weighed against the size of both molecules",
    "bits": "as few wrong statements about parts as possible",
    "f1": "a balance of parts found and parts made up",
}


def goals() -> dict[str, str]:
    """Return what each objective is for."""
    return {name: GOALS.get(name, utility.label) for name, utility in UTILITIES.items()}


def percentage_words(
    *,
    knows_absence: bool,
    expected: float | None = None,
    objectives: Collection[str] = ("hit",),
    has_prior: bool = False,
) -> list[str]:
    """Return sentences about what percentages mean that are true for a run.

    Parameters
    ----------
    knows_absence : bool
        Whether they include the probability that the molecule is in the database.
    expected : float, optional
        Share of features that is assumed to be in the database before spectra are looked at.
    objectives : collection of str
        What annotations were chosen for.
    has_prior : bool
        Whether a prior is applied.
    """
    sentences = [
        "The probability that the answer is the molecule behind the spectrum (stereoisomers count "
        "as one molecule)."
    ]
    conditions = "your spectra are like those that this was measured on"
    whose = ""
    if knows_absence:
        share = (
            "a share of your features"
            if expected is None
            else f"{100 * expected:g} % of your features"
        )
        sentences.append(
            "It includes the probability that the molecule is in the database at all, which starts "
            f"from the assumption that {share} are (--expected-in-database)."
        )
        conditions += " and this share is right"
    else:
        sentences.append(
            "This model does not estimate whether the molecule is in the database: percentages "
            "hold for features whose molecule is."
        )
        whose = ", of features whose molecule is in the database,"
    others = [objective for objective in sorted(objectives) if objective != "hit"]
    if others:
        sentences.append(
            f"Answers were chosen for {', '.join(others)}, so that another candidate of the "
            "feature may have a higher percentage."
        )
    if has_prior:
        sentences.append(
            "A prior is applied. Percentages were checked without it: with it they are not rates "
            "of right answers."
        )
    else:
        sentences.append(f"Of 100 answers with 80 %{whose} about 80 are right, if {conditions}.")
    return sentences


def badges(annotation: Annotation) -> list[str]:
    """Return marks of an annotation, the ground of the best candidate first."""
    best = annotation.best
    if best is None:
        marks = ["no answer"]
    elif best.match is not None:
        marks = ["library match"]
    else:
        analogy, evidence = annotation.nats(best, "analogy"), annotation.nats(best, "evidence")
        marks = ["evidence" if evidence >= analogy or analogy < _MIN_ANALOGY else "analogy"]
    if annotation.scored < annotation.found:
        marks.append("capped list")
    if annotation.unlike:
        marks.append("unlike anything known")
    if best is not None and all(spectrum.adduct is None for spectrum in annotation.feature.spectra):
        marks.append("ion guessed")
    return marks


class Counts:
    """Numbers of the head of the page.

    Attributes
    ----------
    features, records : int
        Features annotated, and spectra in them.
    levels, badges, licences : Counter
        Features by level and by badge; reference spectra that are shown, by licence.
    sure, fair : int
        Features whose confidence is at least 90 %, and 50 to 90 %.
    coverages, objectives : set
        That the annotations were made for.
    """

    def __init__(self) -> None:
        self.features = self.records = self.sure = self.fair = 0
        self.levels: Counter[str] = Counter()
        self.badges: Counter[str] = Counter()
        self.licences: Counter[tuple[str, str]] = Counter()
        self.coverages: set[float] = set()
        self.objectives: set[str] = set()
        self.knows_absence = False

    def add(self, signs: Mapping[str, Any]) -> None:
        """Count a feature by its `signs_of`, and by licence and contributor of ``references``."""
        self.features += 1
        self.records += signs["spectra"]
        self.levels[signs["level"]] += 1
        self.badges.update(signs["badges"])
        self.sure += signs["confidence"] >= _SURE
        self.fair += _FAIR <= signs["confidence"] < _SURE
        self.coverages.add(signs["coverage"])
        self.objectives.add(signs["objective"])
        self.knows_absence |= signs["knows_absence"]
        self.licences.update((licence, whose) for licence, whose in signs["references"])

    def by_level(self) -> list[tuple[str, str, int, float]]:
        """Return level, meaning, number of features, and its share in percent; surest first."""
        known = [level for level in LEVELS if level in self.levels]
        order = [*known, *sorted(self.levels.keys() - LEVELS)]
        return [
            (level, LEVELS.get(level, ""), number, 100 * number / self.features)
            for level in order
            if (number := self.levels[level])
        ]


def signs_of(annotation: Annotation) -> dict[str, Any]:
    """Return what is counted of an annotation, as plain data."""
    return {
        "spectra": len(annotation.feature.spectra),
        "level": annotation.level.number,
        "badges": badges(annotation),
        "confidence": annotation.confidence,
        "coverage": annotation.coverage,
        "objective": annotation.objective,
        # Without candidates the molecule is not among them, whatever a model can estimate.
        "knows_absence": annotation.present is not None and annotation.best is not None,
    }


def row_data(annotation: Annotation) -> dict[str, Any]:
    """Return what the template of a row is filled with."""
    best = annotation.best
    name = "" if best is None else best.name or best.smiles
    return {
        "name": annotation.feature.name,
        "mz": annotation.feature.precursor_mz,
        "rt": annotation.feature.retention_time,
        "best": name,
        "smiles": "" if best is None else best.smiles,
        "key": "" if best is None else best.key,
        "formula": "" if best is None else subscripted(best.formula),
        "adduct": "" if best is None else best.adduct,
        "confidence": annotation.confidence,
        "width": round(100 * min(max(annotation.confidence, 0.0), 1.0), 1),
        "set_size": annotation.set_size,
        "level": annotation.level.number,
        "badges": [(mark, mark.replace(" ", "-")) for mark in badges(annotation)],
    }


def subscripted(formula: str) -> str:
    """Return a formula with its numbers as subscripts.

    Examples
    --------
    >>> subscripted("C8H10N4O2")
    'C₈H₁₀N₄O₂'
    """
    return re.sub(r"(?<=[A-Za-z)\]])\d+", lambda match: match[0].translate(_SUBSCRIPTS), formula)


def feature_data(annotation: Annotation, *, in_full: int = IN_FULL) -> dict[str, Any]:
    """Return what the page draws a feature from.

    `in_full` candidates are drawn with what they explain; what is decided for is always one.
    """
    feature, candidates = annotation.feature, annotation.candidates
    spectrum = feature.spectra[feature.representative]
    best = annotation.choices.get(annotation.objective, 0)
    first = [index for index in range(len(candidates)) if index != best]
    shown = sorted([best, *first[: max(in_full, 1) - 1]]) if candidates else []
    listed = [index for index in range(min(len(candidates), LISTED)) if index not in shown]
    present = 1.0 if annotation.present is None else annotation.present
    left = max(annotation.found - len(shown) - len(listed), 0)
    known = sum(candidates[index].probability for index in (*shown, *listed))
    structures, references = _Structures(), _References()
    in_detail = [
        {
            **_candidate(annotation, candidates[index], index),
            "st": structures.add(candidates[index].smiles, candidates[index].structure),
            "pieces": packed_fragments(
                annotation.peaks_of(candidates[index])[feature.representative]
            ),
            "match": references.add(candidates[index].match, is_match=True),
            "analog": references.add(candidates[index].analog, is_match=False),
        }
        for index in shown
    ]
    for reference in annotation.matches:
        references.add(reference, is_match=True)
    metadata = spectrum.metadata
    energy = metadata.get("collision_energy")
    about = [energy and f"collision energy {energy}"]
    about.append(metadata.get("instrument") or metadata.get("instrument_type"))
    return {
        "name": feature.name,
        "by": feature.named_by,
        "where": Path(feature.where).name,
        "mz": round(feature.precursor_mz, 5),
        "rt": _rounded(feature.retention_time, 1),
        "spectra": len(feature.spectra),
        "all": len(spectrum),
        "precursor": round(spectrum.precursor_mz, 5),
        "about": [text for text in about if text],
        "best": shown.index(best) if shown else None,
        "others": [
            [index + 1, c.name, c.smiles, round(annotation.confidence_of(c), 5), c.in_set]
            for index, c in ((index, candidates[index]) for index in listed)
        ],
        # Candidates that are not listed at all, and the probability that they have together.
        "rest": [left, round(max(0.0, 1.0 - known) * present, 5) if left else 0.0],
        "channels": [[name, annotation.kinds[name]] for name in annotation.channels],
        "ions": [
            [ion, round(probability, 4)]
            for ion, probability in sorted(
                annotation.ions.items(), key=lambda item: (-item[1], item[0])
            )
        ],
        "found": annotation.found,
        "scored": annotation.scored,
        "coverage": annotation.coverage,
        "set": annotation.set_size,
        "objective": annotation.objective,
        "choices": {
            goal: [index + 1, candidates[index].name, candidates[index].smiles]
            for goal, index in annotation.choices.items()
        },
        "present": _rounded(annotation.present, 4),
        "confidence": round(annotation.confidence, 4),
        "nearest": _rounded(annotation.nearest, 3),
        "unlike": annotation.unlike,
        "level": [annotation.level.number, annotation.level.reason],
        "notes": list(annotation.notes),
        "badges": badges(annotation),
        "candidates": in_detail,
        "refs": [{**data, "st": structures.add(data["smiles"])} for data in references.data],
        "structures": structures.data,
        "peaks": packed_peaks(spectrum.mz, spectrum.intensities),
    }


def _candidate(annotation: Annotation, candidate: Candidate, index: int) -> dict[str, Any]:
    linked = [text for text in candidate.identifiers if link(text)]
    unlinked = [text for text in candidate.identifiers if not link(text)]
    return {
        "rank": index + 1,
        "name": candidate.name,
        "smiles": candidate.smiles,
        "key": candidate.key,
        "formula": candidate.formula,
        "adduct": candidate.adduct,
        "ppm": _rounded(candidate.error_ppm, 2),
        "p": round(annotation.confidence_of(candidate), 5),
        "in": candidate.in_set,
        "nats": [round(annotation.nats(candidate, kind), 3) for kind in KINDS],
        "parts": [_rounded(part, 3) for part in candidate.parts],
        "explained": _rounded(candidate.explained, 4),
        "count": candidate.peaks_explained,
        "from": list(dict.fromkeys((*candidate.sources, *unlinked)))[:6],
        "links": [[canonical(text), link(text)] for text in linked][:6],
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)


class _Structures:
    """Structures of a feature, each once."""

    def __init__(self) -> None:
        self.data: list[Mapping[str, Any]] = []
        self._indices: dict[str, int | None] = {}

    def add(self, smiles: str, known: Mapping[str, Any] | None = None) -> int | None:
        """Return the index of the structure of a molecule; None where it cannot be drawn."""
        if smiles not in self._indices:
            drawn = known or structure(smiles)
            self._indices[smiles] = None if drawn is None else len(self.data)
            self.data += [] if drawn is None else [drawn]
        return self._indices[smiles]


class _References:
    """Reference spectra of a feature, each once, up to `REFERENCES`."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self._indices: dict[tuple[str, str], int] = {}

    def add(self, reference: Reference | None, *, is_match: bool) -> int | None:
        """Return the index of a reference among those that are shown; None for none."""
        if reference is None:
            return None
        key = reference.library, reference.record
        if key in self._indices or len(self.data) >= REFERENCES:
            return self._indices.get(key)
        self._indices[key] = len(self.data)
        self.data.append(
            {
                "record": reference.record,
                "name": reference.name,
                "smiles": reference.smiles,
                "similarity": _rounded(reference.similarity, 3),
                "count": reference.peaks,
                "likeness": _rounded(reference.tanimoto, 3),
                "contributor": reference.contributor,
                "licence": reference.licence,
                "library": reference.library,
                "adduct": reference.adduct,
                "mz": _rounded(reference.precursor_mz, 5),
                "peaks": packed_peaks(reference.mz, reference.intensities, MAX_REFERENCE_PEAKS),
                "same": is_match,
            }
        )
        return self._indices[key]
