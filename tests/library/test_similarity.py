"""Similarities of pairs against matchms and ms-entropy; the index against all pairs."""

import dataclasses
import json
from pathlib import Path

import matchms
import numpy as np
import pytest
from matchms.similarity import CosineGreedy, ModifiedCosineGreedy

from mzseek.core.errors import SpectrumError
from mzseek.library.library import KINDS, MIN_LOSS, WIDTH, Index, analog_lists
from mzseek.library.similarity import (
    PeakLists,
    _matches,
    entropy_lists,
    entropy_similarity,
    greedy_cosine,
    peak_lists,
)
from mzseek.spectra import Spectrum
from mzseek.spectra.binning import bin_index

# `benchmarks/entropy_oracle.py` made the file.
ORACLE = json.loads((Path(__file__).parent / "ms_entropy.json").read_text())


def spectrum(mz: list[float], **more: object) -> Spectrum:
    fields = {"precursor_mz": 300.0, "adduct": None, "charge": None, "identifier": "q"} | more
    return Spectrum(np.array(mz), np.arange(1.0, len(mz) + 1), **fields)


def test_the_order_of_peaks_leaves_no_trace() -> None:
    one = spectrum([50.0, 70.0, 60.0])
    other = dataclasses.replace(one, mz=one.mz[::-1], intensities=one.intensities[::-1])
    lists, ions = peak_lists([one, other])
    assert lists.values.tolist() == [50, 60, 70] * 2
    assert lists.weights.tolist() == [1, 3, 2] * 2
    assert ions.precursors.tolist() == [300, 300]


def test_polarity_is_that_of_the_charge_or_of_the_record() -> None:
    assert spectrum([50.0], charge=-2).polarity == -1
    assert spectrum([50.0], metadata={"ionmode": "positive"}).polarity == 1
    assert spectrum([50.0]).polarity == 0


def test_what_has_no_peaks_or_precursor_is_refused_by_name() -> None:
    with pytest.raises(SpectrumError, match=r"^q: has no peaks$"):
        peak_lists([spectrum([])])
    with pytest.raises(SpectrumError, match=r"^q: has no precursor m/z$"):
        peak_lists([spectrum([50.0], precursor_mz=float("nan"))])


@pytest.mark.parametrize("tolerance", [0.005, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("oracle", [CosineGreedy, ModifiedCosineGreedy])
def test_every_pair_scores_as_in_matchms(draw, oracle, tolerance: float) -> None:
    drawn = draw(24)
    theirs = oracle(tolerance=tolerance)
    of_matchms = [
        matchms.Spectrum(s.mz.copy(), s.intensities.copy(), {"precursor_mz": s.precursor_mz})
        for s in drawn
    ]
    partial = 0
    for one, reference in zip(drawn, of_matchms, strict=True):
        for other, query in zip(drawn, of_matchms, strict=True):
            shift = one.precursor_mz - other.precursor_mz if oracle is ModifiedCosineGreedy else 0.0
            score, matches = greedy_cosine(
                one.mz, one.intensities, other.mz, other.intensities, tolerance, shift
            )
            expected = theirs.pair(reference, query)
            assert score == pytest.approx(float(expected["score"]), abs=1e-12)
            assert matches == int(expected["matches"])
            partial += 0 < score < 0.999
    assert partial > 100


def test_machine_code_and_python_score_to_the_same_bits(draw, monkeypatch) -> None:
    pairs = [(one, other) for one in draw(12) for other in draw(12)]
    arguments = [(a.mz, a.intensities, b.mz, b.intensities, 0.1, 0.0) for a, b in pairs]
    compiled = [greedy_cosine(*pair) for pair in arguments]
    monkeypatch.setattr("mzseek.library.similarity._matches", _matches.py_func)
    assert [greedy_cosine.py_func(*pair) for pair in arguments] == compiled


@pytest.mark.parametrize("tolerance", sorted(ORACLE["scores"]))
def test_every_pair_scores_as_in_ms_entropy(tolerance: str) -> None:
    peaks = [np.array(sorted(map(tuple, rows))) for rows in ORACLE["spectra"]]
    mz, intensities = np.concatenate(peaks).T.copy()
    lists = PeakLists(np.cumsum([0, *map(len, peaks)]).astype(np.int64), mz, intensities)
    ready = entropy_lists(lists, float(tolerance))
    spectra = [
        (ready.values[start:end], ready.weights[start:end])
        for start, end in zip(ready.pointers[:-1], ready.pointers[1:], strict=True)
    ]
    found = [
        [entropy_similarity(*one, *other, float(tolerance))[0] for other in spectra]
        for one in spectra
    ]
    expected = np.array(ORACLE["scores"][tolerance])
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert ((expected > 0.05) & (expected < 0.95)).sum() > 50


def all_scores(kind: str, references, spectra, tolerance: float = 0.02) -> np.ndarray:
    """Score of each query with each reference, as the index finds it."""
    count = len(references)
    index = Index(kind, *peak_lists(references), tolerance)
    best = index.search(*peak_lists(spectra), count, np.arange(count), np.ones(count, bool))
    scores = np.zeros((len(spectra), count))
    query, rank = np.nonzero(best.records >= 0)
    scores[query, best.records[query, rank]] = best.scores[query, rank]
    return scores


@pytest.mark.parametrize("tolerance", [0.02, 0.3])
@pytest.mark.parametrize("kind", ["cosine", "modified"])
def test_the_index_finds_what_all_pairs_score(draw, kind: str, tolerance: float) -> None:
    references, spectra = draw(50), draw(20, seed=3)
    expected = np.zeros((20, 50))
    for query, one in enumerate(spectra):
        for record, other in enumerate(references):
            shift = other.precursor_mz - one.precursor_mz if kind == "modified" else 0.0
            expected[query, record], _ = greedy_cosine(
                other.mz, other.intensities, one.mz, one.intensities, tolerance, shift
            )
    np.testing.assert_array_equal(all_scores(kind, references, spectra, tolerance), expected)


def dense(spectrum: Spectrum) -> np.ndarray:
    """Vectors of peaks and of losses, each of length 1, side by side."""
    sides = []
    for values, low in ((spectrum.mz, 0.0), (spectrum.precursor_mz - spectrum.mz, MIN_LOSS)):
        vector = np.zeros(40_000)
        inside = values >= low
        np.add.at(vector, bin_index(values[inside], WIDTH, 400.0), spectrum.intensities[inside])
        sides.append(np.sqrt(vector) / np.sqrt(vector.sum()))
    return np.concatenate(sides)


def test_analog_scores_are_the_mean_of_two_cosines(draw) -> None:
    references, spectra = draw(50), draw(20, seed=4)
    expected = np.stack([dense(s) for s in spectra]) @ np.stack([dense(r) for r in references]).T
    np.testing.assert_allclose(all_scores("analog", references, spectra), expected / 2, atol=1e-6)
    assert (expected > 0.2).sum() > 100


def test_analogs_match_bins_and_the_precursor_is_no_loss(draw) -> None:
    one = peak_lists(draw(1))
    best = Index("analog", *one, 0.02).search(*one, 1, np.arange(1), np.ones(1, bool))
    assert best.matches.tolist() == [[len(analog_lists(*one)[0].values)]]
    alone = Spectrum(np.array([100.0, 300.0]), np.ones(2), 300.0, None, 1, "q")
    assert analog_lists(*peak_lists([alone]))[1].values.tolist() == [20_000]


def test_equal_scores_come_in_the_order_of_the_library(draw) -> None:
    one = draw(1)
    index = Index("cosine", *peak_lists(one * 5), 0.02)
    best = index.search(*peak_lists(one), 3, np.arange(5), np.ones(5, bool))
    assert best.records.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_few_are_the_first_of_all_whatever_the_threads(draw, kind: str) -> None:
    queries, index = peak_lists(draw(40, seed=1)), Index(kind, *peak_lists(draw(60)), 0.02)
    groups, allowed = np.arange(60), np.ones(60, bool)
    every = index.search(*queries, 60, groups, allowed, threads=1)
    few = index.search(*queries, 5, groups, allowed, threads=3)
    for part, whole in zip(few, every, strict=True):
        np.testing.assert_array_equal(part, whole[:, :5])
    assert (np.diff(every.scores) <= 0).all()
    assert (every.scores[:, 0] > 0).all()
    assert every.scores.max() <= 1 + 1e-9
    # Of each group the best alone.
    of_groups = index.search(*queries, 3, groups % 7, allowed)
    for query in range(40):
        found = [record for record in every.records[query].tolist() if record >= 0]
        best = {record % 7: record for record in reversed(found)}
        expected = [record for record in found if best[record % 7] == record][:3]
        assert [record for record in of_groups.records[query] if record >= 0] == expected


def test_what_is_not_allowed_or_far_in_mass_is_not_found(draw) -> None:
    library, queries = peak_lists(draw(60)), peak_lists(draw(20, seed=1))
    best = Index("cosine", *library, 0.02).search(
        *queries, 60, np.arange(60), np.arange(60) % 2 == 0, ppm=10
    )
    assert (best.records >= 0).any()
    for records, precursor in zip(best.records, queries[1].precursors, strict=True):
        found = records[records >= 0]
        assert (found % 2 == 0).all()
        assert (np.abs(library[1].precursors[found] - precursor) <= 10e-6 * precursor).all()
