"""How long searches in a library take, on the MassBank set: all test spectra against training's.

    python benchmarks/library_search.py massbank.tsv.gz [--oracles] [--copies N] [--kinds …]

``--oracles`` times matchms' CosineGreedy (on a few queries) and ms-entropy's FlashEntropySearch
beside (``pip install matchms ms-entropy``); ``--copies`` repeats the library with noise of 2 mDa.
"""

import argparse
import time

import numpy as np

from mzseek.library.library import KINDS, Index
from mzseek.library.similarity import PeakLists, peak_lists
from mzseek.spectra import read_spectra

TOLERANCE, TOP = 0.02, 30


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--oracles", action="store_true")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    asked = parser.parse_args()
    spectra = list(read_spectra(asked.table, []))
    library = [each for each in spectra if each.metadata["fold"] == "train"] * asked.copies
    queries = [each for each in spectra if each.metadata["fold"] == "test"]
    names = {name: place for place, name in enumerate({s.metadata["smiles"] for s in library})}
    groups = np.array([names[each.metadata["smiles"]] for each in library])
    lists, ions = peak_lists(library)
    noise = np.random.default_rng(0).normal(0, 0.002, len(lists.values)) if asked.copies > 1 else 0
    lists = in_order(lists._replace(values=lists.values + noise))
    wanted = peak_lists(queries)
    print(
        f"{len(queries):,} spectra against {len(library):,}, {len(lists.values):,} peaks, top {TOP}"
    )
    allowed = np.ones(len(library), bool)
    for kind in asked.kinds:
        few, few_ions = peak_lists(queries[:2])
        # Compiled, and loaded, before the clock runs.
        Index(kind, few, few_ions, TOLERANCE).search(
            few, few_ions, TOP, np.arange(2), np.ones(2, bool)
        )
        begin = time.perf_counter()
        index = Index(kind, lists, ions, TOLERANCE)
        ready = time.perf_counter()
        by = groups if kind == "analog" else np.arange(len(library))
        index.search(*wanted, TOP, by, allowed)
        end = time.perf_counter()
        each = 1e3 * (end - ready) / len(queries)
        print(
            f"{kind:9s} index {ready - begin:6.2f} s, search {end - ready:6.2f} s, "
            f"{each:.3f} ms a query"
        )
    if asked.oracles:
        time_matchms(library, queries[:2])
        time_flash(library, queries[:500])


def in_order(lists: PeakLists) -> PeakLists:
    """Peaks rising again within each spectrum, after noise."""
    owners = np.repeat(np.arange(len(lists.pointers) - 1), np.diff(lists.pointers))
    order = np.lexsort((lists.values, owners))
    return lists._replace(values=lists.values[order], weights=lists.weights[order])


def time_matchms(library, queries) -> None:
    import matchms
    from matchms.similarity import CosineGreedy

    def made(each):
        facts = {"precursor_mz": float(each.precursor_mz)}
        return matchms.Spectrum(each.mz.copy(), each.intensities.copy(), metadata=facts)

    score = CosineGreedy(tolerance=TOLERANCE)
    references, asked = [made(each) for each in library], [made(each) for each in queries]
    score.pair(references[0], asked[0])
    begin = time.perf_counter()
    for query in asked:
        for reference in references:
            score.pair(reference, query)
    took = time.perf_counter() - begin
    print(f"matchms CosineGreedy: {1e3 * took / len(asked):,.1f} ms a query ({len(asked)} queries)")


def time_flash(library, queries) -> None:
    from ms_entropy import FlashEntropySearch

    def peaks(each):
        return np.column_stack([each.mz, each.intensities]).astype(np.float32)

    search = FlashEntropySearch(max_ms2_tolerance_in_da=TOLERANCE)
    begin = time.perf_counter()
    search.build_index([{"precursor_mz": s.precursor_mz, "peaks": peaks(s)} for s in library])
    ready = time.perf_counter()
    for query in queries:
        cleaned = search.clean_spectrum_for_search(query.precursor_mz, peaks(query))
        scores = search.open_search(cleaned, ms2_tolerance_in_da=TOLERANCE)
        np.argpartition(scores, -TOP)[-TOP:]
    took = time.perf_counter() - ready
    print(
        f"FlashEntropySearch: index {ready - begin:.2f} s, {1e3 * took / len(queries):.3f} ms a "
        f"query ({len(queries)} queries)"
    )


if __name__ == "__main__":
    main()
