"""Analogs: known molecules with similar spectra lend their likeness to candidates.

The reference spectra nearest to a spectrum (peaks and neutral losses in narrow bins, see
`mzseek.library.analogs`) are of molecules that may be like the one that was measured. A candidate
is credible as far as it is like them, the nearest above all. What "like" means depends on the
fingerprint: one sees the surroundings of atoms, another paths; several together say more than any.
A molecule lends nothing to itself: that would be a library match, another kind of evidence.
Beside the nearest, all known molecules speak, by the weights of a regression
(`mzseek.evidence.regression`). Nothing is trained.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting.registry import FINGERPRINTS
from mzseek.errors import EvidenceError
from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Lessons
from mzseek.evidence.lists import Ints, Lists
from mzseek.evidence.regression import Regression
from mzseek.fragments.match import in_threads
from mzseek.library.lists import Ions, lists_of
from mzseek.library.lists import Lists as PeakLists
from mzseek.registry import check_name, option
from mzseek.similarity.packed import Words, pack_words, packed_tanimoto
from mzseek.work.progress import Progress, silent

_LENT = ("nearest", "mean", "sharp", "nearest × best", "mean × best", "sharp × best")
_OF_ALL = ("regression", "sharp regression")
_NAMES = _LENT + _OF_ALL
_SAME = 0.9999  # Tanimoto similarity from which on two molecules are the same to a fingerprint
_BIN = 0.01  # what the index is told; analogs are found by bins of their own


@dataclass(frozen=True)
class AnalogOptions:
    """Options of the analog channel."""

    top: int = option(30, "molecules that lend their likeness", least=1, most=1000)
    likeness: str = option("morgan2,rdkit4", "fingerprints that likeness is measured by")
    doubt: float = option(1.0, "of the regression: the larger, the plainer", above=0)


class Analogs(Channel):
    """Likeness to molecules whose spectra are similar."""

    name: ClassVar[str] = "analogs"
    options_type: ClassVar[type] = AnalogOptions

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.kinds = tuple(kind.strip() for kind in self.options.likeness.split(","))
        for kind in self.kinds:
            check_name(FINGERPRINTS, kind, "analogs.likeness", EvidenceError)
        self.reads_fingerprints = self.kinds
        self.feature_names = tuple(f"{kind}, {name}" for kind in self.kinds for name in _NAMES)

    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
        """Reference spectra and the fingerprints of their molecules."""
        peaks, ions = lists_of(lessons.spectra)
        molecules, molecule_of = np.unique(lessons.molecule, return_inverse=True)
        arrays: dict[str, npt.NDArray[Any]] = {
            "pointers": peaks.pointers,
            "mz": peaks.values,
            "heights": peaks.weights,
            "precursors": ions.precursors,
            "modes": ions.modes,
            "molecule_of": np.asarray(molecule_of, np.int64),
        }
        for kind in self.kinds:
            rows = lessons.molecules.fingerprints(molecules, kind)
            arrays[f"bit_pointers.{kind}"] = np.asarray(rows.indptr, np.int64)
            arrays[f"bits.{kind}"] = np.asarray(rows.indices, np.int32)
        return Learned(arrays, {}, lessons.learned_from)

    def features(self, learned: Learned, lists: Lists) -> Features:
        """How like a candidate is to the molecules of the nearest spectra, weighted by nearness."""
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = lists_of(lists.spectra)
        near, all_of = self._nearest(learned, peaks, ions), self._regression(learned)
        weights = all_of.weights(peaks, ions)
        by_list = _by_list(lists.list_of)
        work = [(place, spectra) for place in range(len(self.kinds)) for spectra in by_list]
        words = [lists.molecules.words(kind) for kind in self.kinds]
        known = [_words(learned, kind) for kind in self.kinds]

        def one(number: int) -> None:
            place, spectra = work[number]
            each = int(lists.list_of[spectra[0]])
            own = lists.members[lists.pointers[each] : lists.pointers[each + 1]]
            if not len(own):
                return
            mine, of_list = words[place][own], lists.known_are_matches

            def alike(molecules: Ints) -> npt.NDArray[np.float32]:
                return _others(packed_tanimoto(mine, known[place][molecules]), of_list)

            # Those of the other ion mode have no weight.
            heard = np.flatnonzero(weights[:, spectra].any(1))
            by_all = _lent_by_all(alike(all_of.molecule[heard]), weights[np.ix_(heard, spectra)])
            lent_by = _lent_by_nearest(alike, near, spectra, len(own))
            rows = lists.ragged.starts[spectra][:, None] + np.arange(len(own))
            columns = slice(place * len(_NAMES), (place + 1) * len(_NAMES))
            found[rows, columns] = np.concatenate([lent_by, by_all], 2)

        in_threads(one, len(work), None)
        return found

    def _nearest(self, learned: Learned, peaks: PeakLists, ions: Ions) -> "_Near":
        """Molecules of the nearest reference spectra of each spectrum."""
        index, molecule_of = _ready(learned)
        top = min(self.options.top, len(molecule_of))
        allowed = np.ones(len(molecule_of), np.bool_)
        best = index.search(peaks, ions, top, molecule_of, allowed)
        return _Near(np.where(best.records >= 0, molecule_of[best.records], -1), best.scores)

    def _regression(self, learned: Learned) -> Regression:
        """The regression over the reference spectra, solved once."""
        if "regression" not in learned.ready:
            peaks, ions = _references(learned)
            learned.ready["regression"] = Regression.of(
                peaks, ions, learned.arrays["molecule_of"], self.options.doubt
            )
        made: Regression = learned.ready["regression"]
        return made


def _others(alike: npt.NDArray[np.float32], of_list: bool) -> npt.NDArray[np.float32]:
    """Likeness to other known molecules than the candidate: one that is known lends itself nothing.

    In lists that a ranker is fitted on, the truth is never a known molecule, and some decoys are:
    to be known would count against a candidate. With `of_list`, a known molecule that is any of the
    candidates lends nothing to all of them: its spectra are matches, and would lift its isomers.
    """
    same = alike >= _SAME
    if of_list:
        alike[:, same.any(0)] = 0
    else:
        alike[same] = 0
    return alike


class _Near(NamedTuple):
    """Nearest molecules of each spectrum (−1: none), and how near their spectra are."""

    molecules: Ints
    near: npt.NDArray[np.float64]


def _by_list(list_of: Ints) -> list[Ints]:
    """Spectra that share a list, list by list."""
    order = np.argsort(list_of, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(list_of[order])) + 1) if len(order) else []


def _lent_by_nearest(
    alike: Callable[[Ints], npt.NDArray[np.float32]], nearest: _Near, spectra: Ints, candidates: int
) -> npt.NDArray[np.float32]:
    """Features of candidates for each of the spectra: shape (spectra, candidates, features)."""
    found = np.zeros((len(spectra), candidates, len(_LENT)), np.float32)
    for place, spectrum in enumerate(spectra):
        there = nearest.molecules[spectrum] >= 0
        to_them = alike(nearest.molecules[spectrum][there])
        found[place] = lent(to_them.astype(np.float64), nearest.near[spectrum][there])
    return found


def _lent_by_all(
    alike: npt.NDArray[np.float32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Likeness, and its square, to all known by their weights: (spectra, candidates, 2)."""
    return np.stack([alike @ weights, alike**2 @ weights], 2).transpose(1, 0, 2)


def lent(alike: npt.NDArray[np.floating], near: npt.NDArray[np.floating]) -> Features:
    """Features of candidates, given their likeness to analogs and how near those spectra are.

    Parameters
    ----------
    alike : array, shape (candidates, analogs)
        Tanimoto similarities of molecules.
    near : array, shape (analogs,)
        Similarities of their spectra.

    Examples
    --------
    >>> lent(np.array([[1.0, 0.5]]), np.array([0.5, 0.5])).tolist()
    [[0.5, 0.75, 0.125, 0.25, 0.375, 0.0625]]
    """
    if not len(near):
        return np.zeros((len(alike), len(_LENT)), np.float32)
    nearest = (near * alike).max(1)
    mean = alike @ near**2 / (near**2).sum()
    sharp = (near**3 * alike**2).max(1)
    plain = np.stack([nearest, mean, sharp], 1)
    return np.hstack([plain, near.max() * plain]).astype(np.float32)


def _ready(learned: Learned) -> tuple[Any, Ints]:
    """The index of the reference spectra, made once."""
    if "index" not in learned.ready:
        from mzseek.library.search import Index  # compiled code, which takes time to load

        learned.ready["index"] = Index("analog", *_references(learned), _BIN)
    return learned.ready["index"], learned.arrays["molecule_of"]


def _references(learned: Learned) -> tuple[PeakLists, Ions]:
    arrays = learned.arrays
    peaks = PeakLists(arrays["pointers"], arrays["mz"], arrays["heights"])
    return peaks, Ions(arrays["precursors"], arrays["modes"])


def _words(learned: Learned, kind: str) -> Words:
    """Fingerprints of the known molecules, packed once."""
    if kind not in learned.ready:
        pointers, bits = learned.arrays[f"bit_pointers.{kind}"], learned.arrays[f"bits.{kind}"]
        shape = (len(pointers) - 1, FINGERPRINTS[kind].bits)
        ones = np.ones(len(bits), np.int32)
        learned.ready[kind] = pack_words(csr_array((ones, bits, pointers), shape=shape))
    words: Words = learned.ready[kind]
    return words
