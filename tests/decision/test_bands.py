import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.core.errors import DecisionError
from mzseek.decision import BAND_SIMILARITIES, Bands, bands_of_lists, distribution, similarity_band
from mzseek.decision.bounds import band_of

from .conftest import FORMS, SIMILARITIES, candidate_sets, worth

ROWS = [[1, 1, 0], [1, 0, 0], [0, 1, 1]]


@settings(max_examples=200)
@given(
    candidate_sets(least=2),
    st.sampled_from(SIMILARITIES),
    st.sampled_from(sorted(FORMS)),
    st.data(),
)
def test_a_band_is_the_least_and_most_alike_pair(found, name: str, form: str, data) -> None:
    rows, _ = found
    values = worth(name, rows, rows)
    pairs = values[np.triu_indices(len(rows), 1)]
    band = similarity_band(FORMS[form](rows), name)
    assert (band.low, band.high) == pytest.approx((pairs.min(), pairs.max()), abs=1e-12)
    reference = data.draw(st.integers(0, len(rows) - 1))
    others = np.delete(values[reference], reference)
    band = similarity_band(FORMS[form](rows), name, reference)
    assert (band.low, band.high) == pytest.approx((others.min(), others.max()), abs=1e-12)


def test_twins_reach_exactly_one() -> None:
    rows = np.array([[1, 1, 0, 1, 1, 0, 1], [1, 0, 0, 0, 0, 0, 0], [1, 1, 0, 1, 1, 0, 1]])
    for name in SIMILARITIES:
        assert similarity_band(rows, name).high == 1
        assert similarity_band(rows, name, reference=0).high == 1
        assert band_of(distribution(rows, [0.3, 0.3, 0.4]), name).high < 1, "merged there"


@pytest.mark.parametrize("name", SIMILARITIES)
def test_sparse_rows_have_the_bands_of_dense_ones(name: str) -> None:
    rng = np.random.default_rng(1)
    many = (rng.random((1025, 40)) < 0.5).astype(int)  # more than are compared at a time
    values = worth(name, many, many)[np.triu_indices(len(many), 1)]
    band = similarity_band(csr_array(many), name)
    assert (band.low, band.high) == pytest.approx((values.min(), values.max()))
    rows = (rng.random((60, 4096)) < rng.uniform(0.002, 0.03, (60, 1))).astype(np.uint8)
    values = worth(name, rows, rows)
    pairs = values[np.triu_indices(len(rows), 1)]
    for band in (similarity_band(csr_array(rows), name),
                 band_of(distribution(csr_array(rows), np.full(60, 1 / 60)), name)):  # fmt: skip
        assert (band.low, band.high) == pytest.approx((pairs.min(), pairs.max()), abs=1e-15)
    lists, counts = np.arange(60), np.array([25, 35])
    got = bands_of_lists(csr_array(rows), lists, counts, np.array([3, 7]), name)
    for place, (mine, here) in enumerate([(3, lists[:25]), (7, lists[25:])]):
        wanted = values[mine, here[here != mine]]
        found = got.low[place], got.high[place]
        assert found == pytest.approx((wanted.min(), wanted.max()), abs=1e-15)


@st.composite
def lists_of_candidates(draw):
    """Molecules, lists of different ones, and a reference for each list, in it or not."""
    rows, _ = draw(candidate_sets(bits=5, rows=8))
    place = st.integers(0, len(rows) - 1)
    lists = draw(st.lists(st.lists(place, max_size=6, unique=True), min_size=1, max_size=5))
    return rows, lists, [draw(place) for _ in lists]


@settings(max_examples=200)
@given(lists_of_candidates(), st.sampled_from(SIMILARITIES))
def test_bands_of_lists_are_the_bands_of_each(found, name: str) -> None:
    rows, lists, references = found
    flat = np.array([row for each in lists for row in each], np.int64)
    counts = np.array([len(each) for each in lists])
    got = bands_of_lists(csr_array(rows), flat, counts, None, name)
    for each, low, high, usable in zip(lists, got.low, got.high, got.usable, strict=True):
        assert usable == (len(each) > 1)
        if usable:
            band = similarity_band(rows[each], name)
            assert (low, high) == pytest.approx((band.low, band.high), abs=1e-12)
    got = bands_of_lists(csr_array(rows), flat, counts, np.array(references), name)
    for each, mine, low, high in zip(lists, references, got.low, got.high, strict=True):
        others = [row for row in each if row != mine]
        assert np.isnan(low) == np.isnan(high) == (not others)
        if others:
            band = similarity_band(rows[[mine, *others]], name, reference=0)
            assert (low, high) == pytest.approx((band.low, band.high), abs=1e-12)


def test_medians_are_over_the_lists_that_can_be_compared() -> None:
    bands = Bands(np.array([0.1, np.nan, 0.3, 0.2]), np.array([0.5, np.nan, 0.4, 0.9]))
    wanted = {"low": 0.2, "high": 0.5, "width": 0.4}
    assert bands.medians() == pytest.approx(wanted)
    with pytest.raises(DecisionError, match="no list has two candidates"):
        Bands(np.array([np.nan]), np.array([np.nan])).medians()


@pytest.mark.parametrize("name", ["hit", "dice"])
def test_what_is_no_similarity_is_refused_with_those_there_are(name: str) -> None:
    assert sorted(BAND_SIMILARITIES) == sorted(SIMILARITIES)
    reason = f"similarity '{name}' is unknown, expected one of: bits, tanimoto, cosine, f1"
    with pytest.raises(DecisionError, match=reason):
        similarity_band(ROWS, name)
    with pytest.raises(DecisionError, match=reason):
        bands_of_lists(csr_array(ROWS), np.arange(3), np.array([3]), None, name)
    with pytest.raises(DecisionError, match=reason):
        band_of(distribution(ROWS, [0.2, 0.3, 0.5]), name)


@pytest.mark.parametrize(
    ("rows", "reference", "reason"),
    [
        ([[1, 0]], None, "at least two candidates, got 1"),
        (np.zeros((0, 2)), None, "no candidates"),
        (ROWS, 3, "reference is 3, expected a row from 0 to 2"),
        (ROWS, -1, "reference is -1, expected a row from 0 to 2"),
        ([[1, 2], [0, 1]], None, "hold 2, expected 0 or 1"),
        ([[1, np.nan], [0, 1]], 0, "hold nan, expected 0 or 1"),
    ],
)
def test_what_has_no_band_is_refused(rows, reference, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        similarity_band(rows, reference=reference)


@pytest.mark.parametrize(
    ("candidates", "counts", "references", "reason"),
    [
        ([0, 1], [3], None, "counts sum to 3, but there are 2 candidates"),
        ([0, 3], [2], None, "a row from 0 to 2"),
        ([0, -1], [2], [0], "a row from 0 to 2"),
        ([0, 1], [2], [3], "a row from 0 to 2"),
        ([0, 1], [2], [-1], "a row from 0 to 2"),
        ([0, 1], [2], [0, 1], "references have shape"),
    ],
)
def test_lists_of_rows_that_are_not_there_are_refused(
    candidates, counts, references, reason: str
) -> None:
    references = None if references is None else np.array(references)
    with pytest.raises(DecisionError, match=reason):
        bands_of_lists(csr_array(ROWS), np.array(candidates), np.array(counts), references)
