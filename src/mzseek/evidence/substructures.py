"""Channel: fingerprint bits that go with peaks and neutral losses.

A peak, or a neutral loss, that many known spectra have goes with some parts of molecules more often
than chance would have it. Each bit of a candidate's fingerprint is scored by how much more often
molecules with that peak have it: the logarithm of a ratio, drawn towards none where few molecules
are known. The bits of a candidate are averaged. Nothing is trained.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import EvidenceError
from mzseek.core.registry import option
from mzseek.evidence.channel import Channel, ChannelState, Features
from mzseek.evidence.queries import Ints, Lists, TrainingSet
from mzseek.library.similarity import PeakLists, PrecursorIons, neutral_losses, peak_lists
from mzseek.parallel.engine import Progress, silent

Floats = npt.NDArray[np.float64]
WIDTH = 0.01
_LEAST_LOSS = 0.5  # nearer to the precursor nothing was lost
_SIDES = ("peaks", "losses")
_AT_ONCE = 500  # spectra whose weights are held at a time


@dataclass(frozen=True)
class SubstructureOptions:
    """Options of the substructure channel."""

    doubt: float = option(2.0, "molecules without a word that every peak begins with", above=0)


class Substructures(Channel):
    """Bits that go with peaks and losses."""

    name: ClassVar[str] = "substructures"
    options_type: ClassVar[type] = SubstructureOptions
    feature_names = tuple(f"{side}, {how}" for side in _SIDES for how in ("mean", "sum"))

    def learn(self, lessons: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Which molecules have each peak and each loss, and the bits of molecules."""
        molecules, molecule_of = np.unique(lessons.molecule, return_inverse=True)
        rows = lessons.molecules.fingerprints(molecules)
        peaks, ions = peak_lists(lessons.spectra)
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
        return ChannelState(arrays, facts, lessons.learned_from)

    def features(self, learned: ChannelState, lists: Lists) -> Features:
        """Mean of a candidate's bits, and their sum over the root of their number."""
        kind = learned.facts["fingerprint"]
        if kind != lists.molecules.fingerprint:
            raise EvidenceError(
                f"substructures are {kind} bits, and candidates {lists.molecules.fingerprint}"
            )
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = peak_lists(lists.spectra)
        rows, starts = lists.molecules.fingerprints, lists.ragged.starts
        for place, side in enumerate(_SIDES):
            owners, bins, shares = _binned(peaks, ions, side)
            ends = np.searchsorted(owners, np.arange(len(lists.spectra) + 1))
            for first in range(0, len(lists.spectra), _AT_ONCE):
                last = min(first + _AT_ONCE, len(lists.spectra))
                own = slice(ends[first], ends[last])
                weights = self._weights(
                    learned, side, owners[own] - first, bins[own], shares[own], last - first
                )
                for spectrum, weight in zip(range(first, last), weights, strict=True):
                    here = slice(starts[spectrum], starts[spectrum] + lists.counts[spectrum])
                    bits = rows(lists.candidates[here])
                    number = np.maximum(np.diff(bits.indptr), 1)
                    total = bits @ weight
                    found[here, 2 * place] = total / number
                    found[here, 2 * place + 1] = total / np.sqrt(number)
        return found

    def _weights(
        self,
        learned: ChannelState,
        side: str,
        owners: Ints,
        bins: Ints,
        shares: Floats,
        spectra: int,
    ) -> Floats:
        """Weights of bits for each spectrum: sums over its bins of share · log ratio.

        The ratio is that of two shares of molecules with the bit: of those with the bin, and of
        all. Only the bins of these spectra are looked up.
        """
        arrays, doubt = learned.arrays, self.options.doubt
        bits = _matrix(arrays["bit_pointers"], arrays["bits"], int(learned.facts["length"]))
        known, place = np.unique(bins[np.isin(bins, arrays[f"{side}.bins"])], return_inverse=True)
        kept = np.isin(bins, known)
        if not len(known):
            return np.zeros((spectra, bits.shape[1]))
        at = np.searchsorted(arrays[f"{side}.bins"], known)
        pointers, molecules = arrays[f"{side}.pointers"], arrays[f"{side}.molecules"]
        holders = _matrix(pointers, molecules, bits.shape[0])[at]
        usual = np.bincount(bits.indices, minlength=bits.shape[1]) / bits.shape[0]
        number = np.diff(holders.indptr)
        # Where no molecule with the bin has the bit, only the doubt is left.
        none = np.log(doubt / (number + doubt))
        times = csr_array(holders @ bits)
        row = np.repeat(np.arange(len(known)), np.diff(times.indptr))
        often = usual[times.indices]
        ratio = (times.data + doubt * often) / ((number[row] + doubt) * often)
        logs = csr_array((np.log(ratio) - none[row], times.indices, times.indptr), times.shape)
        given = csr_array((shares[kept], (owners[kept], place)), shape=(spectra, len(known)))
        return np.asarray((given @ logs).toarray() + (given @ none)[:, None])


def _matrix(pointers: Ints, columns: Ints, width: int) -> csr_array:
    """A matrix of ones."""
    values = np.ones(len(columns), np.float64)
    return csr_array((values, columns, pointers), shape=(len(pointers) - 1, width))


def _binned(peaks: PeakLists, ions: PrecursorIons, side: str) -> tuple[Ints, Ints, Floats]:
    """Peaks or losses of spectra in narrow bins: owner, bin, and share of the roots of heights.

    Bins of negative mode are other bins: its peaks mean other things.
    """
    values = neutral_losses(peaks, ions.precursors).values if side == "losses" else peaks.values
    owners, roots = peaks.list_index, np.sqrt(peaks.weights)
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
