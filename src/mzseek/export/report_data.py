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

# Peaks that are drawn; of more, the strongest.
MOST_PEAKS = 160
# Of a reference spectrum.
MOST_REFERENCE_PEAKS = 80
_PER_MZ = 10_000
_FULL = 1000  # intensity of the strongest


def packed_peaks(mz: Floats, intensities: Floats, most: int = MOST_PEAKS) -> list[list[int]]:
    """The strongest peaks in order of m/z: m/z in 1/10,000, intensity in 1/1,000 of the strongest.

    Examples
    --------
    >>> packed_peaks(np.array([50.0, 60.5]), np.array([1.0, 4.0]))
    [[500000, 605000], [250, 1000]]
    """
    kept = strongest(intensities, most)
    if not len(kept):
        return [[], []]
    relative = intensities[kept] / float(intensities.max())
    return [
        [round(float(each) * _PER_MZ) for each in mz[kept]],
        [max(1, round(float(each) * _FULL)) for each in relative],
    ]


def strongest(intensities: Floats, most: int) -> Floats:
    """Places of the strongest, in rising order; of equals the first."""
    return np.sort(np.argsort(-intensities, kind="stable")[:most])


def packed_fragments(peaks: Sequence[Explanation]) -> list[list[Any]]:
    """Return what a candidate explains of the peaks that are drawn.

    Returns
    -------
    list of list
        Of each explained peak: index among `packed_peaks`, formula, charge, error in 1/10 ppm,
        atoms (a number in hexadecimal whose bits are places in the SMILES), bonds broken, hydrogens
        moved, fragments alike. Empty where the molecule or its ion cannot be taken apart.
    """
    kept = strongest(np.array([peak.intensity for peak in peaks]), MOST_PEAKS)
    return [
        [
            index,
            row.formula,
            row.charge,
            round((row.error_ppm or 0.0) * 10),
            format(sum(1 << atom for atom in row.atoms), "x"),
            row.bonds,
            row.hydrogens,
            row.equivalents,
        ]
        for index, row in enumerate(peaks[int(peak)] for peak in kept)
        if row.formula is not None
    ]


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
MATCH, EVIDENCE, ANALOGY = "library match", "evidence", "analogy"
CAPPED, UNLIKE, GUESSED, NOTHING = (
    "capped list",
    "unlike anything known",
    "ion guessed",
    "no answer",
)
_TELLING = 0.1  # nats


def goals() -> dict[str, str]:
    """Each objective, and what it is for."""
    return {name: GOALS.get(name, utility.label) for name, utility in UTILITIES.items()}


def percentage_words(
    *,
    knows_absence: bool,
    expected: float | None = None,
    objectives: Collection[str] = ("hit",),
    has_prior: bool = False,
) -> list[str]:
    """What the percentages of a page mean, in sentences that are true for its run.

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
    said = [
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
        said.append(
            "It includes the probability that the molecule is in the database at all, which starts "
            f"from the assumption that {share} are (--known)."
        )
        conditions += " and this share is right"
    else:
        said.append(
            "This model does not estimate whether the molecule is in the database: percentages "
            "hold for features whose molecule is."
        )
        whose = ", of features whose molecule is in the database,"
    others = [each for each in sorted(objectives) if each != "hit"]
    if others:
        said.append(
            f"Answers were chosen for {', '.join(others)}, so that another candidate of the "
            "feature may have a higher percentage."
        )
    if has_prior:
        said.append(
            "A prior is applied. Percentages were checked without it: with it they are not rates "
            "of right answers."
        )
    else:
        said.append(f"Of 100 answers with 80 %{whose} about 80 are right, if {conditions}.")
    return said


def badges(annotation: Annotation) -> list[str]:
    """Badges of an annotation, the ground of the best candidate first."""
    found = []
    best = annotation.best
    if best is None:
        found.append(NOTHING)
    elif best.match is not None:
        found.append(MATCH)
    else:
        analogy, evidence = annotation.nats(best, "analogy"), annotation.nats(best, "evidence")
        if evidence >= analogy or analogy < _TELLING:
            found.append(EVIDENCE)
        else:
            found.append(ANALOGY)
    if annotation.scored < annotation.found:
        found.append(CAPPED)
    if annotation.unlike:
        found.append(UNLIKE)
    if best is not None and all(spectrum.adduct is None for spectrum in annotation.feature.spectra):
        found.append(GUESSED)
    return found


_SURE, _FAIR = 0.9, 0.5


class Counts:
    """Numbers of the head of the page.

    Attributes
    ----------
    features, records : int
        Features answered, and spectra in them.
    levels, badges, licences : Counter
        Features by level and by badge; reference spectra that are shown, by licence.
    sure, fair : int
        Features whose annotation has a probability of at least 90 %, and of 50 to 90 %.
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
        self.has_prior = False

    def add(self, signs: Mapping[str, Any]) -> None:
        """Count one more, by what `signs_of` says of it and the reference spectra that are drawn.

        Parameters
        ----------
        signs : mapping
            With ``references``: licence and contributor of each.
        """
        self.features += 1
        self.records += signs["spectra"]
        self.levels[signs["level"]] += 1
        self.badges.update(signs["badges"])
        self.sure += signs["confidence"] >= _SURE
        self.fair += _FAIR <= signs["confidence"] < _SURE
        self.coverages.add(signs["coverage"])
        self.objectives.add(signs["objective"])
        self.knows_absence |= signs["knows_absence"]
        self.has_prior |= signs["has_prior"]
        self.licences.update((licence, whose) for licence, whose in signs["references"])

    def by_level(self) -> list[tuple[str, str, int, float]]:
        """Level, what it means, number of features, and its share in percent; surest first."""
        order = sorted(
            self.levels,
            key=lambda level: (
                list(LEVELS).index(level) if level in LEVELS else len(LEVELS),
                level,
            ),
        )
        total = max(self.features, 1)
        return [
            (level, LEVELS.get(level, ""), self.levels[level], 100 * self.levels[level] / total)
            for level in order
        ]


def signs_of(annotation: Annotation) -> dict[str, Any]:
    """What is counted of an annotation, as plain data: all that is kept of one that has gone by."""
    return {
        "spectra": len(annotation.feature.spectra),
        "level": annotation.level.number,
        "badges": list(badges(annotation)),
        "confidence": annotation.confidence,
        "coverage": annotation.coverage,
        "objective": annotation.objective,
        # Without candidates the molecule is not among them, whatever a model can estimate.
        "knows_absence": annotation.present is not None and annotation.best is not None,
        "has_prior": "prior" in annotation.kinds.values(),
    }


_LOWER = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


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
        "formula": "" if best is None else lowered(best.formula),
        "adduct": "" if best is None else best.adduct,
        "confidence": annotation.confidence,
        "width": round(100 * min(max(annotation.confidence, 0.0), 1.0), 1),
        "set_size": annotation.set_size,
        "level": annotation.level.number,
        "badges": [(each, each.replace(" ", "-")) for each in badges(annotation)],
    }


def lowered(formula: str) -> str:
    """A formula with its numbers below the line.

    Examples
    --------
    >>> lowered("C8H10N4O2")
    'C₈H₁₀N₄O₂'
    """
    return re.sub(r"(?<=[A-Za-z)\]])\d+", lambda found: found[0].translate(_LOWER), formula)


# Candidates with their fragments; listed with a name and a probability; reference spectra.
IN_FULL = 5
LISTED = 15
REFERENCES = 6
KINDS = ("match", "evidence", "analogy", "prior")


def feature_data(annotation: Annotation, *, in_full: int = IN_FULL) -> dict[str, Any]:
    """What the page draws a feature from.

    Parameters
    ----------
    annotation : Annotation
    in_full : int
        Candidates that are drawn with what they explain. What is decided for is always one.
    """
    drawn = annotation.feature.representative
    spectrum = annotation.feature.spectra[drawn]
    structures, references = _Drawn(), _References()
    shown = _places(annotation, in_full)
    candidates = []
    for place in shown:
        candidate = annotation.candidates[place]
        candidates.append(
            {
                **_candidate(annotation, candidate, place),
                "st": structures.place(candidate.smiles, candidate.structure),
                "pieces": packed_fragments(annotation.peaks_of(candidate)[drawn]),
                "match": references.place(candidate.match, is_match=True),
                "analog": references.place(candidate.analog, is_match=False),
            }
        )
    for reference in annotation.matches:
        references.place(reference, is_match=True)
    return {
        **_about(annotation),
        **_decided(annotation, shown),
        "candidates": candidates,
        "refs": [{**each, "st": structures.place(each["smiles"])} for each in references.data],
        "structures": structures.data,
        "peaks": packed_peaks(spectrum.mz, spectrum.intensities),
    }


def _about(annotation: Annotation) -> dict[str, Any]:
    """What was measured."""
    feature, spectrum = (
        annotation.feature,
        annotation.feature.spectra[annotation.feature.representative],
    )
    energy = spectrum.metadata.get("collision_energy", "")
    instrument = spectrum.metadata.get("instrument") or spectrum.metadata.get("instrument_type")
    return {
        "name": feature.name,
        "by": feature.named_by,
        "where": Path(feature.where).name,
        "mz": round(feature.precursor_mz, 5),
        "rt": _rounded(feature.retention_time, 1),
        "spectra": len(feature.spectra),
        "all": len(spectrum),
        "precursor": round(spectrum.precursor_mz, 5),
        "about": [each for each in (energy and f"collision energy {energy}", instrument) if each],
    }


def _decided(annotation: Annotation, shown: list[int]) -> dict[str, Any]:
    """What is said about it as a whole."""
    others = _others(annotation, shown)
    return {
        "best": shown.index(_best_place(annotation)) if shown else None,
        "others": others,
        "rest": _rest(annotation, shown, others),
        "channels": [[name, annotation.kinds[name]] for name in annotation.channels],
        "ions": [[ion, round(p, 4)] for ion, p in _falling(dict(annotation.ions))],
        "found": annotation.found,
        "scored": annotation.scored,
        "coverage": annotation.coverage,
        "set": annotation.set_size,
        "objective": annotation.objective,
        "choices": {goal: _choice(annotation, place) for goal, place in annotation.choices.items()},
        "present": _rounded(annotation.present, 4),
        "confidence": round(annotation.confidence, 4),
        "nearest": _rounded(annotation.nearest, 3),
        "unlike": annotation.unlike,
        "level": [annotation.level.number, annotation.level.reason],
        "notes": list(annotation.notes),
        "badges": badges(annotation),
    }


def _best_place(annotation: Annotation) -> int:
    return annotation.choices.get(annotation.objective, 0)


def _places(annotation: Annotation, in_full: int) -> list[int]:
    """The most probable, and among them what is decided for."""
    if not annotation.candidates:
        return []
    best = _best_place(annotation)
    first = [place for place in range(len(annotation.candidates)) if place != best]
    return sorted([best, *first[: max(in_full, 1) - 1]])


def _candidate(annotation: Annotation, candidate: Candidate, place: int) -> dict[str, Any]:
    linked = [text for text in candidate.identifiers if link(text)]
    unlinked = [text for text in candidate.identifiers if not link(text)]
    return {
        "rank": place + 1,
        "name": candidate.name,
        "smiles": candidate.smiles,
        "key": candidate.key,
        "formula": candidate.formula,
        "adduct": candidate.adduct,
        "ppm": _rounded(candidate.error_ppm, 2),
        "p": _overall(annotation, candidate),
        "in": candidate.in_set,
        "nats": [round(annotation.nats(candidate, kind), 3) for kind in KINDS],
        "parts": [_rounded(part, 3) for part in candidate.parts],
        "explained": _rounded(candidate.explained, 4),
        "count": candidate.peaks_explained,
        "from": list(dict.fromkeys((*candidate.sources, *unlinked)))[:6],
        "links": [[canonical(text), link(text)] for text in linked][:6],
    }


def _others(annotation: Annotation, shown: list[int]) -> list[list[Any]]:
    """Further candidates: rank, name, SMILES, probability, whether in the set."""
    listed = [
        place for place in range(min(len(annotation.candidates), LISTED)) if place not in shown
    ]
    rows = ((place, annotation.candidates[place]) for place in listed)
    return [
        [place + 1, each.name, each.smiles, _overall(annotation, each), each.in_set]
        for place, each in rows
    ]


def _rest(annotation: Annotation, shown: list[int], others: list[list[Any]]) -> list[float]:
    """How many candidates are not listed at all, and what probability they have together."""
    listed = sum(annotation.candidates[place].probability for place in shown)
    named = {row[0] - 1 for row in others}
    listed += sum(annotation.candidates[place].probability for place in named)
    present = 1.0 if annotation.present is None else annotation.present
    number = max(annotation.found - len(shown) - len(others), 0)
    return [number, round(max(0.0, 1.0 - listed) * present, 5) if number else 0.0]


def _overall(annotation: Annotation, candidate: Candidate) -> float:
    """Probability of a candidate, absence from the database counted in."""
    return round(
        candidate.probability * (1.0 if annotation.present is None else annotation.present), 5
    )


def _choice(annotation: Annotation, place: int) -> list[Any]:
    candidate = annotation.candidates[place]
    return [place + 1, candidate.name, candidate.smiles]


def _falling(values: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda each: (-each[1], each[0]))


def _rounded(value: float | None, places: int) -> float | None:
    return None if value is None else round(float(value), places)


class _Drawn:
    """Structures of a feature, each once."""

    def __init__(self) -> None:
        self.data: list[Mapping[str, Any]] = []
        self._places: dict[str, int | None] = {}

    def place(self, smiles: str, known: Mapping[str, Any] | None = None) -> int | None:
        """Return where the structure of a molecule stands; None where it cannot be drawn."""
        if smiles not in self._places:
            drawn = known or structure(smiles)
            self._places[smiles] = None if drawn is None else len(self.data)
            if drawn is not None:
                self.data.append(drawn)
        return self._places[smiles]


class _References:
    """Reference spectra of a feature, each once, up to `REFERENCES`."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self._places: dict[tuple[str, str], int] = {}

    def place(self, reference: Reference | None, *, is_match: bool) -> int | None:
        """Where a reference stands among those that are shown; None for none."""
        if reference is None:
            return None
        key = reference.library, reference.record
        if key not in self._places:
            if len(self.data) >= REFERENCES:
                return None
            self._places[key] = len(self.data)
            self.data.append(self._data(reference, is_match))
        return self._places[key]

    def _data(self, reference: Reference, is_match: bool) -> dict[str, Any]:
        return {
            "record": reference.record,
            "name": reference.name,
            "smiles": reference.smiles,
            "similarity": _rounded(reference.similarity, 3),
            "count": reference.peaks,
            "likeness": _rounded(reference.likeness, 3),
            "contributor": reference.contributor,
            "licence": reference.licence,
            "library": reference.library,
            "adduct": reference.adduct,
            "mz": _rounded(reference.precursor_mz, 5),
            "peaks": packed_peaks(reference.mz, reference.intensities, MOST_REFERENCE_PEAKS),
            "same": is_match,
        }
