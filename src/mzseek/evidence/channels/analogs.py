"""Analogs: known molecules with similar spectra lend their likeness to candidates.

The reference spectra nearest to a spectrum (peaks and neutral losses in narrow bins, see
`mzseek.library.analogs`) are of molecules that may be like the one that was measured. A candidate
is credible as far as it is like them, the nearest above all. Nothing is trained.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.errors import EvidenceError
from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Lessons
from mzseek.evidence.lists import Ints, Lists
from mzseek.library.lists import Ions, lists_of
from mzseek.library.lists import Lists as PeakLists
from mzseek.registry import option
from mzseek.similarity import tanimoto_blocks
from mzseek.work.progress import Progress, silent

_BIN = 0.01  # what the index is told; analogs are found by bins of their own


@dataclass(frozen=True)
class AnalogOptions:
    """Options of the analog channel."""

    top: int = option(30, "molecules that lend their likeness", least=1, most=1000)


class Analogs(Channel):
    """Likeness to molecules whose spectra are similar."""

    name: ClassVar[str] = "analogs"
    options_type: ClassVar[type] = AnalogOptions
    feature_names: ClassVar[tuple[str, ...]] = (
        "nearest",
        "mean",
        "nearest, sharp",
        "nearest × best",
        "mean × best",
        "nearest, sharp × best",
    )

    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
        """Reference spectra and the fingerprints of their molecules."""
        peaks, ions = lists_of(lessons.spectra)
        molecules, molecule_of = np.unique(lessons.molecule, return_inverse=True)
        rows = lessons.molecules.fingerprints(molecules)
        arrays: dict[str, npt.NDArray[Any]] = {
            "pointers": peaks.pointers,
            "mz": peaks.values,
            "heights": peaks.weights,
            "precursors": ions.precursors,
            "modes": ions.modes,
            "molecule_of": np.asarray(molecule_of, np.int64),
            "bit_pointers": np.asarray(rows.indptr, np.int64),
            "bits": np.asarray(rows.indices, np.int32),
        }
        facts = {"fingerprint": lessons.molecules.fingerprint, "length": int(rows.shape[1])}
        return Learned(arrays, facts, lessons.learned_from)

    def features(self, learned: Learned, lists: Lists) -> Features:
        """How like a candidate is to the molecules of the nearest spectra, weighted by nearness."""
        kind = learned.facts["fingerprint"]
        if kind != lists.molecules.fingerprint:
            raise EvidenceError(
                f"analogs have {kind} fingerprints, and candidates {lists.molecules.fingerprint}"
            )
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        molecules, similarities = self._nearest(learned, lists)
        known = _fingerprints(learned)
        starts, owners = lists.ragged.starts, np.argsort(lists.list_of, kind="stable")
        borders = np.flatnonzero(np.diff(lists.list_of[owners])) + 1
        for spectra in np.split(owners, borders) if len(owners) else ():
            each = int(lists.list_of[spectra[0]])
            own = lists.members[lists.pointers[each] : lists.pointers[each + 1]]
            used = np.unique(molecules[spectra])
            used = used[used >= 0]
            if not len(own) or not len(used):
                continue
            alike = _tanimoto(lists.molecules.fingerprints(own), known[used])
            for spectrum in spectra:
                near = molecules[spectrum] >= 0
                columns = np.searchsorted(used, molecules[spectrum][near])
                here = slice(starts[spectrum], starts[spectrum] + len(own))
                found[here] = lent(alike[:, columns], similarities[spectrum][near])
        return found

    def _nearest(self, learned: Learned, lists: Lists) -> tuple[Ints, npt.NDArray[np.float64]]:
        """Molecules of the nearest reference spectra of each spectrum (−1: none), and how near."""
        index, molecule_of = _ready(learned)
        top = min(self.options.top, len(molecule_of))
        peaks, ions = lists_of(lists.spectra)
        allowed = np.ones(len(molecule_of), np.bool_)
        best = index.search(peaks, ions, top, molecule_of, allowed)
        return np.where(best.records >= 0, molecule_of[best.records], -1), best.scores


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
    >>> lent(np.array([[1.0, 0.5]]), np.array([0.5, 0.5])).round(3).tolist()
    [[0.5, 0.75, 0.125, 0.25, 0.375, 0.0625]]
    """
    if not len(near):
        return np.zeros((len(alike), 6), np.float32)
    nearest = (near * alike).max(1)
    mean = alike @ near**2 / (near**2).sum()
    sharp = (near**3 * alike**2).max(1)
    plain = np.stack([nearest, mean, sharp], 1)
    return np.hstack([plain, near.max() * plain]).astype(np.float32)


def _ready(learned: Learned) -> tuple[Any, Ints]:
    """The index of the reference spectra, made once."""
    if "index" not in learned.ready:
        from mzseek.library.search import Index  # compiled code, which takes time to load

        arrays = learned.arrays
        peaks = PeakLists(arrays["pointers"], arrays["mz"], arrays["heights"])
        ions = Ions(arrays["precursors"], arrays["modes"])
        learned.ready["index"] = Index("analog", peaks, ions, _BIN)
    return learned.ready["index"], learned.arrays["molecule_of"]


def _fingerprints(learned: Learned) -> csr_array:
    pointers, bits = learned.arrays["bit_pointers"], learned.arrays["bits"]
    shape = (len(pointers) - 1, int(learned.facts["length"]))
    return csr_array((np.ones(len(bits), np.int32), bits, pointers), shape=shape)


def _tanimoto(rows: csr_array, others: csr_array) -> npt.NDArray[np.float64]:
    blocks = [block for _, block in tanimoto_blocks(rows, others)]
    return np.concatenate(blocks).astype(np.float64)
