"""All that the page shows of a feature, as plain data."""

from pathlib import Path
from typing import Any

from mzseek.annotation.answers import Answer, Candidate, Reference
from mzseek.annotation.writing.links import canonical, link
from mzseek.fragments.match import LEAST, PPM
from mzseek.report.annotations.peaks import (
    MOST_REFERENCE_PEAKS,
    packed_peaks,
    packed_pieces,
    shown_spectrum,
)
from mzseek.report.annotations.structure import structure
from mzseek.report.annotations.words import badges

# Candidates with their pieces; listed with a name and a probability; reference spectra.
IN_FULL = 5
LISTED = 15
REFERENCES = 6
KINDS = ("match", "evidence", "analogy", "prior")


def feature_data(
    answer: Answer, *, in_full: int = IN_FULL, ppm: float = PPM, least: float = LEAST
) -> dict[str, Any]:
    """What the page draws a feature from.

    Parameters
    ----------
    answer : Answer
    in_full : int
        Candidates that are drawn with what they explain. What is decided for is always one.
    ppm, least : float
        Tolerance of peaks, as in `mzseek.fragments.explain`.
    """
    spectrum = shown_spectrum(answer.feature)
    structures, references = _Drawn(), _References(answer)
    shown = _places(answer, in_full)
    candidates = []
    for place in shown:
        candidate = answer.candidates[place]
        candidates.append(
            {
                **_candidate(answer, candidate, place),
                "st": structures.place(candidate.smiles),
                "pieces": packed_pieces(spectrum, candidate, ppm=ppm, least=least),
                "match": references.place(candidate.match),
                "analog": references.place(candidate.analog),
            }
        )
    for reference in answer.matches:
        references.place(reference)
    return {
        **_about(answer),
        **_decided(answer, shown),
        "candidates": candidates,
        "refs": [{**each, "st": structures.place(each["smiles"])} for each in references.data],
        "structures": structures.data,
        "peaks": packed_peaks(spectrum.mz, spectrum.intensities),
    }


def _about(answer: Answer) -> dict[str, Any]:
    """What was measured."""
    feature, spectrum = answer.feature, shown_spectrum(answer.feature)
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


def _decided(answer: Answer, shown: list[int]) -> dict[str, Any]:
    """What is said about it as a whole."""
    others = _others(answer, shown)
    return {
        "best": shown.index(_best_place(answer)) if shown else None,
        "others": others,
        "rest": _rest(answer, shown, others),
        "channels": [[name, answer.kinds[name]] for name in answer.channels],
        "ions": [[ion, round(p, 4)] for ion, p in _falling(dict(answer.ions))],
        "found": answer.found,
        "scored": answer.scored,
        "coverage": answer.coverage,
        "set": answer.set_size,
        "objective": answer.objective,
        "choices": {goal: _choice(answer, place) for goal, place in answer.choices.items()},
        "present": _rounded(answer.present, 4),
        "confidence": round(answer.confidence, 4),
        "nearest": _rounded(answer.nearest, 3),
        "unlike": answer.unlike,
        "level": [answer.level.number, answer.level.reason],
        "notes": list(answer.notes),
        "badges": badges(answer),
    }


def _best_place(answer: Answer) -> int:
    return answer.choices.get(answer.objective, 0)


def _places(answer: Answer, in_full: int) -> list[int]:
    """The most probable, and among them what is decided for."""
    if not answer.candidates:
        return []
    best = _best_place(answer)
    first = [place for place in range(len(answer.candidates)) if place != best]
    return sorted([best, *first[: max(in_full, 1) - 1]])


def _candidate(answer: Answer, candidate: Candidate, place: int) -> dict[str, Any]:
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
        "p": _overall(answer, candidate),
        "in": candidate.in_set,
        "nats": [round(answer.nats(candidate, kind), 3) for kind in KINDS],
        "parts": [_rounded(part, 3) for part in candidate.parts],
        "explained": _rounded(candidate.explained, 4),
        "count": candidate.peaks_explained,
        "from": list(dict.fromkeys((*candidate.sources, *unlinked)))[:6],
        "links": [[canonical(text), link(text)] for text in linked][:6],
    }


def _others(answer: Answer, shown: list[int]) -> list[list[Any]]:
    """Further candidates: rank, name, SMILES, probability, whether in the set."""
    listed = [place for place in range(min(len(answer.candidates), LISTED)) if place not in shown]
    rows = ((place, answer.candidates[place]) for place in listed)
    return [
        [place + 1, each.name, each.smiles, _overall(answer, each), each.in_set]
        for place, each in rows
    ]


def _rest(answer: Answer, shown: list[int], others: list[list[Any]]) -> list[float]:
    """How many candidates are not listed at all, and what probability they have together."""
    listed = sum(answer.candidates[place].probability for place in shown)
    named = {row[0] - 1 for row in others}
    listed += sum(answer.candidates[place].probability for place in named)
    present = 1.0 if answer.present is None else answer.present
    number = max(answer.found - len(shown) - len(others), 0)
    return [number, round(max(0.0, 1.0 - listed) * present, 5) if number else 0.0]


def _overall(answer: Answer, candidate: Candidate) -> float:
    """Probability of a candidate, absence from the database counted in."""
    return round(candidate.probability * (1.0 if answer.present is None else answer.present), 5)


def _choice(answer: Answer, place: int) -> list[Any]:
    candidate = answer.candidates[place]
    return [place + 1, candidate.name, candidate.smiles]


def _falling(values: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(values.items(), key=lambda each: (-each[1], each[0]))


def _rounded(value: float | None, places: int) -> float | None:
    return None if value is None else round(float(value), places)


class _Drawn:
    """Structures of a feature, each once."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self._places: dict[str, int | None] = {}

    def place(self, smiles: str) -> int | None:
        """Where the structure of a molecule stands; None where it cannot be drawn."""
        if smiles not in self._places:
            drawn = structure(smiles)
            self._places[smiles] = None if drawn is None else len(self.data)
            if drawn is not None:
                self.data.append(drawn)
        return self._places[smiles]


class _References:
    """Reference spectra of a feature, each once, up to `REFERENCES`."""

    def __init__(self, answer: Answer) -> None:
        self.data: list[dict[str, Any]] = []
        self._places: dict[tuple[str, str], int] = {}
        self._same = {id(candidate.match) for candidate in answer.candidates}
        self._same |= {id(match) for match in answer.matches}

    def place(self, reference: Reference | None) -> int | None:
        """Where a reference stands among those that are shown; None for none."""
        if reference is None:
            return None
        key = reference.library, reference.record
        if key not in self._places:
            if len(self.data) >= REFERENCES:
                return None
            self._places[key] = len(self.data)
            self.data.append(self._data(reference))
        return self._places[key]

    def _data(self, reference: Reference) -> dict[str, Any]:
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
            "same": id(reference) in self._same,
        }
