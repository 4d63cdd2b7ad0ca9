"""What it takes to hold candidates against all molecules that the shipped model knows.

    python benchmarks/structure_similarity.py

Molecules of the bundled database are candidates, one thread; once by `ReferenceSimilarity`, which
counts frequent bits in words and rare ones by lists, and once by all words of all pairs.
"""

import time
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from mzseek.bundle import Bundle
from mzseek.chem import fingerprints
from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.similarity.packed import ReferenceSimilarity, pack_words, packed_tanimoto

CANDIDATES, TIMES = 2_000, 5


def main() -> None:
    bundle = Bundle.open()
    place = [channel.name for channel in bundle.fitted.channels].index("analogs")
    channel, arrays = bundle.fitted.channels[place], bundle.fitted.states[place].arrays
    smiles = bundle.molecules.table["smiles"].to_pylist()
    drawn = [smiles[at * len(smiles) // CANDIDATES] for at in range(CANDIDATES)]
    for kind in channel.kinds:
        pointers, bits = arrays[f"bit_pointers.{kind}"], arrays[f"bits.{kind}"]
        shape = len(pointers) - 1, FINGERPRINTS[kind].bits
        known = pack_words(csr_array((np.ones(len(bits), np.int32), bits, pointers), shape=shape))
        rows, prepared = pack_words(fingerprints(drawn, kind)), ReferenceSimilarity(known)
        weights, yes = np.ones((len(known), 1), np.float32), np.ones(len(known), np.bool_)
        ours = microseconds(partial(prepared.to_rows, rows, weights, included=yes, maybe_same=~yes))
        plain = microseconds(partial(packed_tanimoto, rows, known))
        print(
            f"{kind}, {len(known):,} known, a candidate: frequent and rare bits {ours:.1f} µs, "
            f"all words {plain:.1f} µs",
            flush=True,
        )


def microseconds(work) -> float:
    """A candidate, the best of some."""
    work()
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken) / CANDIDATES * 1e6


if __name__ == "__main__":
    main()
