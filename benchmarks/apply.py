"""A trained network applied by torch and by numpy: milliseconds a batch, and how far they differ.

usage: OMP_NUM_THREADS=1 apply.py   (it sets the threads of both)

A batch has the sizes of the MassBank set: 64 spectra of some 60 bins or up to 128 peaks, 200
candidates each, of some 50 bits. The best of five.
"""

import time

import numpy as np
import torch
from scipy.sparse import csr_array

from mzseek.models import ENCODERS, SCORERS, ModelSpec, build
from mzseek.models.applied import TorchNetwork, arrays_of
from mzseek.networks import Network
from mzseek.prepared.slices import PeakSlices

SPECTRA, CANDIDATES, REPEATS = 64, 200, 5
RNG = np.random.default_rng(0)


def rows(count, width, entries, ones):
    sizes = RNG.integers(entries // 2, entries * 3 // 2, count)
    columns = np.concatenate([np.sort(RNG.choice(width, n, replace=False)) for n in sizes])
    values = np.ones(len(columns)) if ones else RNG.random(len(columns))
    borders = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return csr_array((values.astype(np.float32), columns.astype(np.int32), borders), (count, width))


def peaks():
    sizes = RNG.integers(5, 129, SPECTRA)
    real = np.arange(sizes.max()) < sizes[:, None]
    mz, heights = (RNG.random((2, *real.shape)) * real).astype(np.float32)
    return PeakSlices(500 * mz, heights, real, (RNG.random(SPECTRA) * 800).astype(np.float32))


def best(function):
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return 1000 * min(seconds), result


def compare(name, by_torch, by_numpy):
    (slow, wanted), (fast, found) = best(by_torch), best(by_numpy)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    print(f"{name:12s} torch {slow:8.1f} ms   numpy {fast:8.1f} ms   error {error:.0e}", flush=True)


def main():
    print(f"{SPECTRA} spectra, {CANDIDATES} candidates each, {torch.get_num_threads()} thread(s)")
    spectra = {"bins": rows(SPECTRA, 10_050, 60, ones=False), "peaks": peaks()}
    for name, kind in ENCODERS.items():
        spec = ModelSpec.of(name, "fp-cos")
        model = build(spec, seed=0)
        one, two = TorchNetwork(model), Network(spec, arrays_of(model))
        given = spectra[kind.reads]
        compare(name, lambda: one.read(given), lambda: two.read(given))  # noqa: B023
    candidates = rows(SPECTRA * CANDIDATES, 4096, 50, ones=True)
    counts = np.full(SPECTRA, CANDIDATES)
    for name in SCORERS:
        spec = ModelSpec.of("blind", name)
        model = build(spec, seed=0)
        one, two = TorchNetwork(model), Network(spec, arrays_of(model))
        width = spec.bits if spec.predicts_fingerprint else spec.width
        read = RNG.random((SPECTRA, width), dtype=np.float32)
        compare(
            name,
            lambda: one.scores(read, candidates, counts),  # noqa: B023
            lambda: two.scores(read, candidates, counts),  # noqa: B023
        )


if __name__ == "__main__":
    main()
