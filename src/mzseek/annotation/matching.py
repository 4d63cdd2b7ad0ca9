"""What a library match is worth: how much more often the same molecule has such a spectrum.

Where the library has spectra of a candidate itself, at the feature's precursor m/z, their
similarity is evidence of its own kind. Its worth is measured in the library: how similar spectra
of one molecule are that different contributors have measured, against spectra of other molecules
of the same m/z.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.errors import BundleError
from mzseek.files.json_file import check_fields
from mzseek.fragments.match import AT_PRECURSOR
from mzseek.library import Library
from mzseek.library.found import Matches
from mzseek.library.lists import Lists, owners_of
from mzseek.ragged import pointers
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
BINS = 10
PPM = 20.0  # precursors of one m/z
_FIELDS = {"nats": [float], "same": int, "other": int}
_SAMPLE, _TOP, _FEW = 1_500, 100, 50
_MOST = 5.0  # nats: a few hundred pairs say no more


@dataclass(frozen=True, eq=False)
class MatchOdds:
    """Log-odds of similarities, in bins of equal width from 0 to 1; rising.

    Attributes
    ----------
    nats : float64 array, shape (bins,)
    same, other : int
        Pairs that they were measured on: of one molecule by different contributors, and of
        different molecules.
    """

    nats: Floats
    same: int
    other: int

    def of(self, similarities: npt.ArrayLike) -> Floats:
        """Nats of candidates whose own reference spectra are so similar.

        Between the middles of bins they rise evenly.

        Examples
        --------
        >>> MatchOdds(np.array([-1.0, 2.0]), 100, 100).of([0.0, 0.25, 0.5, 1.0]).tolist()
        [-1.0, -1.0, 0.5, 2.0]
        """
        middles = (np.arange(len(self.nats)) + 0.5) / len(self.nats)
        return np.interp(np.asarray(similarities, np.float64), middles, self.nats)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"nats": self.nats.tolist(), "same": self.same, "other": self.other}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], where: object = "match") -> "MatchOdds":
        """From plain data; raises `BundleError`."""
        check_fields(facts, _FIELDS, where, BundleError)
        if not facts["nats"]:
            raise BundleError(f"{where}: has no nats")
        return cls(np.array(facts["nats"], np.float64), facts["same"], facts["other"])


def without_precursor(spectrum: Spectrum) -> Spectrum:
    """A spectrum less its precursor's peaks: every spectrum of that m/z has those in common.

    One that has no others stays as it is.
    """
    far = np.abs(spectrum.mz - spectrum.precursor_mz) > AT_PRECURSOR
    if far.all() or not far.any():
        return spectrum
    return replace(spectrum, mz=spectrum.mz[far], intensities=spectrum.intensities[far])


def library_without_precursors(library: Library) -> Library:
    """The same library, its spectra less the peaks of their precursors."""
    peaks = library.peaks
    owner = owners_of(peaks)
    values, weights = np.asarray(peaks.values), np.asarray(peaks.weights)
    far = np.abs(values - np.asarray(library.ions.precursors)[owner]) > AT_PRECURSOR
    counts = np.bincount(owner[far], minlength=len(library))
    far |= counts[owner] == 0
    kept = Lists(
        pointers(np.bincount(owner[far], minlength=len(library))), values[far], weights[far]
    )
    return Library.held(
        library.folder, kept, library.ions, library.molecule_of, library.records, library.molecules
    )


def fit_match_odds(library: Library, mode: int) -> MatchOdds | None:
    """Measure what similarities are worth in a library.

    Parameters
    ----------
    library : Library
        With contributors.
    mode : int
        1 for positive, −1 for negative.

    Returns
    -------
    MatchOdds or None
        None where too few molecules have spectra of two contributors.
    """
    chosen = _sample(np.flatnonzero(np.asarray(library.ions.modes) == mode))
    if not len(chosen):
        return None
    spectra = [without_precursor(_spectrum(library, int(record))) for record in chosen]
    found = library_without_precursors(library).search(spectra, "cosine", _TOP, precursor_ppm=PPM)
    same, others = _best_of_pairs(library, chosen, found)
    if len(same) < _FEW or len(others) < _FEW:
        return None
    return MatchOdds(_odds(same, others), len(same), len(others))


def _best_of_pairs(
    library: Library, chosen: npt.NDArray[np.int64], found: Matches
) -> tuple[Floats, Floats]:
    """Best similarities of each spectrum with its own molecule, and with others of its m/z.

    Pairs without a peak in common have 0. Of its own molecule only records of other contributors
    count: those of one laboratory are more alike, and the user's is another one.
    """
    whose = np.array(library.records["contributor"].to_pylist(), object)
    molecule, precursors = np.asarray(library.molecule_of), np.asarray(library.ions.precursors)
    modes = np.asarray(library.ions.modes)
    scores = {
        (query, record): score
        for query, record, score in zip(
            found.queries.tolist(), found.records.tolist(), found.scores.tolist(), strict=True
        )
    }
    order = np.argsort(precursors, kind="stable")
    width = PPM * 1e-6 * precursors[chosen]
    low = np.searchsorted(precursors[order], precursors[chosen] - width)
    high = np.searchsorted(precursors[order], precursors[chosen] + width, side="right")
    best: tuple[dict[tuple[int, int], float], ...] = ({}, {})
    for query, record in enumerate(chosen.tolist()):
        for other in order[low[query] : high[query]].tolist():
            own = bool(molecule[other] == molecule[record])
            if modes[other] != modes[record] or (own and whose[other] == whose[record]):
                continue
            key = (query, int(molecule[other]))
            kept = best[0 if own else 1]
            kept[key] = max(kept.get(key, 0.0), scores.get((query, other), 0.0))
    same, others = (np.array(list(each.values()), np.float64) for each in best)
    return same, others


def _odds(same: Floats, others: Floats) -> Floats:
    """Log of the ratio of two histograms, one added to each bin, made to rise, and bounded."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = [np.histogram(np.minimum(each, 1.0), edges)[0] + 1.0 for each in (same, others)]
    nats = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    return np.clip(_rising(nats, counts[0] + counts[1]), -_MOST, _MOST)


def _rising(values: Floats, weights: Floats) -> Floats:
    """The nearest rising values: neighbours that fall are pooled."""
    blocks: list[list[float]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (v1, w1, n1), (v2, w2, n2) = blocks[-2:]
            blocks[-2:] = [[(v1 * w1 + v2 * w2) / (w1 + w2), w1 + w2, n1 + n2]]
    return np.array([value for value, _, number in blocks for _ in range(int(number))])


def _sample(records: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """At most so many, evenly spaced."""
    step = max(len(records) // _SAMPLE, 1)
    return np.asarray(records[::step][:_SAMPLE], np.int64)


def _spectrum(library: Library, record: int) -> Spectrum:
    own = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    return Spectrum(
        np.array(library.peaks.values[own]), np.array(library.peaks.weights[own]),
        float(library.ions.precursors[record]), None, int(library.ions.modes[record]) or None,
        str(record),
    )  # fmt: skip
