"""Channel: fingerprint bits that co-occur with peaks and neutral losses.

A peak, or a neutral loss, that many known spectra have goes with some substructures more often than
chance. Each bit of a candidate's fingerprint is scored by the log ratio of how often molecules with
that peak have it to how often all have, shrunk towards 0 where few molecules are known. The bits of
a candidate are averaged. Nothing is trained.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.core.errors import EvidenceError
from mzseek.core.registry import option
from mzseek.evidence.model import Channel, ChannelState, Features
from mzseek.evidence.queries import Ints, Queries, TrainingSet
from mzseek.library.similarity import PeakLists, PrecursorIons, neutral_losses, peak_lists
from mzseek.parallel.engine import Progress, silent

Floats = npt.NDArray[np.float64]
WIDTH = 0.01
_MIN_LOSS = 0.5  # nearer to the precursor nothing was lost
_SIDES = ("peaks", "losses")
_BATCH = 500  # spectra whose weights are held at a time


@dataclass(frozen=True)
class SubstructureOptions:
    """Options of the substructure channel."""

    doubt: float = option(2.0, "pseudo-count of molecules for every peak", above=0)


class Substructures(Channel):
    """Bits that co-occur with peaks and losses."""

    name: ClassVar[str] = "substructures"
    options_type: ClassVar[type] = SubstructureOptions
    feature_names = tuple(f"{side}, {how}" for side in _SIDES for how in ("mean", "sum"))

    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Store which molecules have each peak and each loss, and the bits of molecules."""
        molecules, molecule_of = np.unique(training_set.molecule, return_inverse=True)
        rows = training_set.molecules.fingerprints(molecules)
        peaks, ions = peak_lists(training_set.spectra)
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
        metadata = {"fingerprint": training_set.molecules.fingerprint, "length": int(rows.shape[1])}
        return ChannelState(arrays, metadata, training_set.molecules_used)

    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Mean log ratio of a candidate's bits, and their sum over the root of their number."""
        kind = state.metadata["fingerprint"]
        if kind != queries.molecules.fingerprint:
            raise EvidenceError(
                f"substructures are {kind} bits, and candidates {queries.molecules.fingerprint}"
            )
        values = np.zeros((queries.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = peak_lists(queries.spectra)
        rows, starts = queries.molecules.fingerprints, queries.ragged.starts
        for number, side in enumerate(_SIDES):
            owners, bins, shares = _binned(peaks, ions, side)
            ends = np.searchsorted(owners, np.arange(len(queries.spectra) + 1))
            for first in range(0, len(queries.spectra), _BATCH):
                last = min(first + _BATCH, len(queries.spectra))
                inside = slice(ends[first], ends[last])
                weights = self._weights(
                    state, side, owners[inside] - first, bins[inside], shares[inside], last - first
                )
                for spectrum, weight in zip(range(first, last), weights, strict=True):
                    here = slice(starts[spectrum], starts[spectrum] + queries.counts[spectrum])
                    bits = rows(queries.candidates[here])
                    set_bits = np.maximum(np.diff(bits.indptr), 1)
                    total = bits @ weight
                    values[here, 2 * number] = total / set_bits
                    values[here, 2 * number + 1] = total / np.sqrt(set_bits)
        return values

    def _weights(
        self,
        state: ChannelState,
        side: str,
        owners: Ints,
        bins: Ints,
        shares: Floats,
        spectra: int,
    ) -> Floats:
        """Weights of bits for each spectrum: sums over its bins of share · log ratio.

        The ratio is the share of molecules with the bit among those with the bin, over that among
        all. Only the bins of these spectra are looked up.
        """
        arrays, pseudo_count = state.arrays, self.options.doubt
        bits = _matrix(arrays["bit_pointers"], arrays["bits"], int(state.metadata["length"]))
        known, index = np.unique(bins[np.isin(bins, arrays[f"{side}.bins"])], return_inverse=True)
        inside = np.isin(bins, known)
        if not len(known):
            return np.zeros((spectra, bits.shape[1]))
        at = np.searchsorted(arrays[f"{side}.bins"], known)
        pointers, molecules = arrays[f"{side}.pointers"], arrays[f"{side}.molecules"]
        holders = _matrix(pointers, molecules, bits.shape[0])[at]
        usual = np.bincount(bits.indices, minlength=bits.shape[1]) / bits.shape[0]
        number = np.diff(holders.indptr)
        # Where no molecule with the bin has the bit, only the pseudo-count is left.
        none = np.log(pseudo_count / (number + pseudo_count))
        times = csr_array(holders @ bits)
        row = np.repeat(np.arange(len(known)), np.diff(times.indptr))
        often = usual[times.indices]
        ratio = (times.data + pseudo_count * often) / ((number[row] + pseudo_count) * often)
        logs = csr_array((np.log(ratio) - none[row], times.indices, times.indptr), times.shape)
        binned = csr_array((shares[inside], (owners[inside], index)), shape=(spectra, len(known)))
        return np.asarray((binned @ logs).toarray() + (binned @ none)[:, None])


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
    inside = values > (_MIN_LOSS if side == "losses" else 0.0)
    owners, roots = owners[inside], roots[inside]
    bins = 2 * np.floor(values[inside] / WIDTH).astype(np.int64) + (ions.modes[owners] < 0)
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
