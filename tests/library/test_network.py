"""Networks of spectra: edges as by matchms over all pairs, filters, component sizes."""

import dataclasses
from itertools import combinations

import matchms
import numpy as np
import pytest
from matchms.similarity import ModifiedCosineGreedy

from mzseek.core.errors import LibraryError
from mzseek.library.network import network_of
from mzseek.library.options import NetworkOptions
from mzseek.spectra import Spectrum

ALL = NetworkOptions(
    min_similarity=0.05, min_peaks=2, neighbours=100, mutual=False, max_component=0
)


def edges(network) -> dict[tuple[int, int], tuple[float, int]]:
    rows = zip(
        network.ends.tolist(), network.similarities.tolist(), network.matched_peaks.tolist(),
        strict=True,
    )  # fmt: skip
    return {tuple(ends): (score, matched) for ends, score, matched in rows}


def chain(heights: list[float]) -> Spectrum:
    mz = np.arange(1.0, len(heights) + 1) * 50
    return Spectrum(mz, np.array(heights), 400.0, "[M+H]+", 1, "")


@pytest.mark.parametrize(("least", "peaks"), [(0.05, 2), (0.3, 2), (0.3, 4)])
def test_edges_are_those_of_matchms(draw, least: float, peaks: int) -> None:
    drawn = draw(30)
    options = dataclasses.replace(ALL, min_similarity=least, min_peaks=peaks)
    theirs = ModifiedCosineGreedy(tolerance=options.tolerance)
    of_matchms = [
        matchms.Spectrum(s.mz.copy(), s.intensities.copy(), {"precursor_mz": s.precursor_mz})
        for s in drawn
    ]
    expected = {}
    for first, second in combinations(range(len(drawn)), 2):
        pair = theirs.pair(of_matchms[first], of_matchms[second])
        is_same_mode = drawn[first].polarity * drawn[second].polarity >= 0
        if is_same_mode and pair["score"] >= least and pair["matches"] >= peaks:
            expected[first, second] = float(pair["score"])
    found = edges(network_of(drawn, options))
    assert len(expected) > 3
    assert found.keys() == expected.keys()
    assert [found[ends][0] for ends in sorted(found)] == pytest.approx(
        [expected[ends] for ends in sorted(expected)], abs=1e-8
    )


def test_neighbours_are_limited_and_mutual(draw) -> None:
    drawn = draw(30)
    every = edges(network_of(drawn, ALL))
    best = {
        node: {
            ends
            for ends, _ in sorted(
                ((ends, score) for ends, (score, _) in every.items() if node in ends),
                key=lambda edge: -edge[1],
            )[:2]
        }
        for node in range(len(drawn))
    }
    few = dataclasses.replace(ALL, neighbours=2)
    either = {ends for ends in every if any(ends in best[node] for node in ends)}
    both = {ends for ends in every if all(ends in best[node] for node in ends)}
    assert edges(network_of(drawn, few)).keys() == either
    assert edges(network_of(drawn, dataclasses.replace(few, mutual=True))).keys() == both
    assert both < either < every.keys()


@pytest.mark.parametrize("similarity", ["modified", "cosine", "entropy"])
def test_no_component_is_larger_than_allowed(draw, similarity: str) -> None:
    drawn = draw(40)
    options = dataclasses.replace(ALL, similarity=similarity)
    whole = network_of(drawn, options)
    limited = network_of(drawn, dataclasses.replace(options, max_component=5))
    assert max(whole.sizes) > 5 >= max(limited.sizes)
    assert edges(limited).items() <= edges(whole).items()
    assert limited.sizes == sorted(limited.sizes, reverse=True)
    for first, second in limited.ends.tolist():
        assert limited.components[first] == limited.components[second] > 0


def test_the_weakest_edge_to_a_full_component_goes() -> None:
    nodes = [chain([1, 0.0001]), chain([1, 0.3]), chain([1, 0.7]), chain([1, 1.2])]
    options = dataclasses.replace(ALL, min_similarity=0.9, max_component=2)
    assert list(edges(network_of(nodes, options))) == [(0, 1), (2, 3)]


def test_ion_modes_are_not_connected() -> None:
    one = chain([1, 2, 3])
    other = dataclasses.replace(one, adduct="[M-H]-", charge=-1)
    assert len(network_of([one, one], ALL).ends) == 1
    assert len(network_of([one, other], ALL).ends) == 0


def test_threads_and_order_do_not_matter(draw) -> None:
    drawn = draw(30)
    forward, again = network_of(drawn, ALL, threads=1), network_of(drawn, ALL, threads=3)
    assert edges(forward) == edges(again)
    last = len(drawn) - 1
    turned = {
        (last - second, last - first): value
        for (first, second), value in edges(network_of(drawn[::-1], ALL)).items()
    }
    assert turned == edges(forward)


def test_nothing_gives_nothing() -> None:
    assert network_of([]).sizes == []
    assert network_of([chain([1, 2])]).components.tolist() == [0]


@pytest.mark.parametrize(
    "bad",
    [{"similarity": "analog"}, {"min_similarity": 0.0}, {"min_similarity": 1.5}, {"min_peaks": 0},
     {"neighbours": 0}, {"max_component": -1}, {"tolerance": 0.0}],
)  # fmt: skip
def test_values_that_cannot_be_used_are_refused(bad) -> None:
    with pytest.raises(LibraryError):
        NetworkOptions(**bad)
