"""Substructures: what known molecules with the same peaks and losses have in common.

A peak, or a neutral loss, that many known spectra have goes with some parts of molecules more often
than chance would have it. Each bit of a candidate's fingerprint is scored by how much more often
molecules with that peak have it: the logarithm of a ratio, drawn towards none where few molecules
are known. The bits of a candidate are averaged. Nothing is trained.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mzseek.errors import EvidenceError
from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Lessons
from mzseek.evidence.lists import Ints, Lists
from mzseek.library.lists import Ions, lists_of, losses_of, owners_of
from mzseek.library.lists import Lists as PeakLists
from mzseek.ragged import spans
from mzseek.registry import option
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
WIDTH = 0.01
_LEAST_LOSS = 0.5  # nearer to the precursor nothing was lost
_SIDES = ("peaks", "losses")


@dataclass(frozen=True)
class SubstructureOptions:
    """Options of the substructure channel."""

    doubt: float = option(2.0, "molecules without a word that every peak begins with", above=0)


class Substructures(Channel):
    """Bits that go with peaks and losses."""

    name: ClassVar[str] = "substructures"
    options_type: ClassVar[type] = SubstructureOptions
    feature_names = tuple(f"{side}, {how}" for side in _SIDES for how in ("mean", "sum"))

    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
        """Which molecules have each peak and each loss, and the bits of molecules."""
        molecules, molecule_of = np.unique(lessons.molecule, return_inverse=True)
        rows = lessons.molecules.fingerprints(molecules)
        peaks, ions = lists_of(lessons.spectra)
        arrays: dict[str, npt.NDArray[Any]] = {
            "bit_pointers": np.asarray(rows.indptr, np.int64),
            "bits": np.asarray(rows.indices, np.int32),
        }
        for side in _SIDES:
            owners, bins, _ = _binned(peaks, ions, side)
            pairs = np.unique(np.stack([bins, np.asarray(molecule_of)[owners]], 1), axis=0)
            names, starts = np.unique(pairs[:, 0], return_index=True)
            arrays[f"{side}.bins"] = names
            arrays[f"{side}.pointers"] = np.append(starts, len(pairs)).astype(np.int64)
            arrays[f"{side}.molecules"] = pairs[:, 1].astype(np.int32)
        facts = {"fingerprint": lessons.molecules.fingerprint, "length": int(rows.shape[1])}
        return Learned(arrays, facts, lessons.learned_from)

    def features(self, learned: Learned, lists: Lists) -> Features:
        """Mean of a candidate's bits, and their sum over the root of their number."""
        kind = learned.facts["fingerprint"]
        if kind != lists.molecules.fingerprint:
            raise EvidenceError(
                f"substructures are {kind} bits, and candidates {lists.molecules.fingerprint}"
            )
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = lists_of(lists.spectra)
        rows, starts = lists.molecules.fingerprints, lists.ragged.starts
        for place, side in enumerate(_SIDES):
            weigher = _Weigher(learned, side, self.options.doubt)
            owners, bins, shares = _binned(peaks, ions, side)
            ends = np.searchsorted(owners, np.arange(len(lists.spectra) + 1))
            for spectrum, count in enumerate(lists.counts):
                own = slice(ends[spectrum], ends[spectrum + 1])
                weights = weigher.of(bins[own], shares[own])
                here = slice(starts[spectrum], starts[spectrum] + count)
                bits = rows(lists.candidates[here])
                number = np.maximum(np.diff(bits.indptr), 1)
                total = bits @ weights
                found[here, 2 * place] = total / number
                found[here, 2 * place + 1] = total / np.sqrt(number)
        return found


class _Weigher:
    """Weights of fingerprint bits, given the peaks or losses of a spectrum."""

    def __init__(self, learned: Learned, side: str, doubt: float) -> None:
        arrays = learned.arrays
        self._bins, self._pointers = arrays[f"{side}.bins"], arrays[f"{side}.pointers"]
        self._molecules = arrays[f"{side}.molecules"]
        self._bit_pointers, self._bits = arrays["bit_pointers"], arrays["bits"]
        self._doubt = doubt
        length, molecules = int(learned.facts["length"]), len(self._bit_pointers) - 1
        # A bit that no known molecule has says nothing: its share is never read.
        self._usual = np.bincount(self._bits, minlength=length) / max(molecules, 1)

    def of(self, bins: Ints, shares: Floats) -> Floats:
        """Sum over bins of share · log(share of molecules with the bit / usual share)."""
        length = len(self._usual)
        weights = np.zeros(length)
        if not len(self._bins) or not len(bins):
            return weights
        at = np.minimum(np.searchsorted(self._bins, bins), len(self._bins) - 1)
        known = self._bins[at] == bins
        for place, share in zip(at[known], shares[known], strict=True):
            molecules = self._molecules[self._pointers[place] : self._pointers[place + 1]]
            starts, ends = self._bit_pointers[molecules], self._bit_pointers[molecules + 1]
            bits = self._bits[spans(starts, ends)[1]]
            among, none = len(molecules), np.log(self._doubt / (len(molecules) + self._doubt))
            seen, times = np.unique(bits, return_counts=True)
            usual = self._usual[seen]
            ratio = (times + self._doubt * usual) / ((among + self._doubt) * usual)
            weights += share * none
            weights[seen] += share * (np.log(ratio) - none)
        return weights


def _binned(peaks: PeakLists, ions: Ions, side: str) -> tuple[Ints, Ints, Floats]:
    """Peaks or losses of spectra in narrow bins: owner, bin, and share of the roots of heights.

    Bins of negative mode are other bins: its peaks mean other things.
    """
    values = losses_of(peaks, ions.precursors).values if side == "losses" else peaks.values
    owners, roots = owners_of(peaks), np.sqrt(peaks.weights)
    kept = values > (_LEAST_LOSS if side == "losses" else 0.0)
    owners, roots = owners[kept], roots[kept]
    bins = 2 * np.floor(values[kept] / WIDTH).astype(np.int64) + (ions.modes[owners] < 0)
    order = np.lexsort((bins, owners))
    owners, bins, roots = owners[order], bins[order], roots[order]
    totals = np.bincount(owners, roots, minlength=len(ions.modes))
    first = np.flatnonzero(
        np.append(True, (np.diff(owners) != 0) | (np.diff(bins) != 0)) if len(bins) else []
    )
    if not len(first):
        return owners[:0], bins[:0], roots[:0]
    summed = np.add.reduceat(roots, first)
    return owners[first], bins[first], summed / totals[owners[first]]
