import numpy as np
import pytest
from hypothesis import given

from mzseek.decision import distribution
from mzseek.decision.decoders import (
    decode_bits,
    decode_cosine,
    decode_f1,
    decode_tanimoto,
    enumerate_tanimoto,
    search_tanimoto,
    tanimoto_bound,
)

from .conftest import candidate_sets, every, expected_by_hand

# That no fingerprint is better than what a decoder returns is tested in test_decide.py.


def test_a_bit_that_half_of_the_probability_has_is_not_set() -> None:
    assert decode_bits(distribution([[1, 1], [0, 1]], [0.5, 0.5])).bits.tolist() == [0, 1]


def test_the_zero_vector_is_decided_for_where_it_is_likely_enough() -> None:
    rows = [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    got = decode_cosine(distribution(rows, [0.4, 0.15, 0.15, 0.15, 0.15]))
    assert (got.bits.any(), got.value) == (False, 0.4)
    # All four bits are worth 4 · 0.175 / 2.
    got = decode_cosine(distribution(rows, [0.3, 0.175, 0.175, 0.175, 0.175]))
    assert (got.bits.tolist(), got.value) == ([1, 1, 1, 1], pytest.approx(0.35))
    got = decode_f1(distribution([[0, 0], [1, 0], [0, 1]], [0.6, 0.2, 0.2]))
    assert (got.bits.tolist(), got.value) == ([0, 0], 0.6)


@given(candidate_sets(bits=10))
def test_enumeration_finds_the_highest_expected_tanimoto(found) -> None:
    rows, p = found
    best = expected_by_hand("tanimoto", every(rows.shape[1]), rows, p).max()
    for decode in (enumerate_tanimoto, decode_tanimoto):
        got = decode(distribution(rows, p))
        assert got.value == pytest.approx(best, abs=1e-9)
        assert expected_by_hand("tanimoto", [got.bits], rows, p) == pytest.approx([best], abs=1e-9)
        assert got.upper_bound == got.value


@given(candidate_sets(bits=10))
def test_the_search_says_what_it_found_and_bounds_what_it_missed(found) -> None:
    rows, p = found
    best = expected_by_hand("tanimoto", every(rows.shape[1]), rows, p).max()
    known = distribution(rows, p)
    got = search_tanimoto(known)
    assert expected_by_hand("tanimoto", [got.bits], rows, p) == pytest.approx([got.value], abs=1e-9)
    assert got.value <= best + 1e-12
    assert best <= got.upper_bound + 1e-12
    assert got.upper_bound <= 1
    # It starts from the candidates, so that it never does worse than the best of them.
    assert got.value >= expected_by_hand("tanimoto", rows, rows, p).max() - 1e-12
    assert search_tanimoto(known, bound=False).upper_bound == pytest.approx(1)


@given(candidate_sets(bits=8))
def test_the_bound_holds_whatever_is_known_to_be_reached(found) -> None:
    rows, p = found
    known = distribution(rows, p)
    values = expected_by_hand("tanimoto", every(rows.shape[1]), rows, p)
    for least in (0.0, np.median(values), values.max()):
        assert tanimoto_bound(known, least) >= values.max() - 1e-12


@given(candidate_sets(bits=6))
def test_no_single_flip_improves_on_what_the_search_found(found) -> None:
    rows, p = found
    got = search_tanimoto(distribution(rows, p))
    flipped = got.bits ^ np.eye(len(got.bits), dtype=np.uint8)
    assert expected_by_hand("tanimoto", flipped, rows, p).max() <= got.value + 1e-9


def test_many_used_bits_are_searched_and_few_enumerated() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((30, 400)) < 0.1).astype(np.uint8)
    got = decode_tanimoto(distribution(rows, np.full(30, 1 / 30)))
    assert got.value < got.upper_bound <= 1
    assert expected_by_hand("tanimoto", [got.bits], rows, np.full(30, 1 / 30)) == pytest.approx(
        [got.value]
    )
    rows[:, 12:] = 0  # wide, but few bits are used
    got = decode_tanimoto(distribution(rows, np.full(30, 1 / 30)))
    assert got.value == got.upper_bound


def test_nothing_to_search_is_the_zero_vector() -> None:
    for decode in (search_tanimoto, enumerate_tanimoto):
        got = decode(distribution(np.zeros((3, 5)), [0.2, 0.3, 0.5]))
        assert (got.bits.any(), got.upper_bound) == (False, got.value)
        assert got.value == pytest.approx(1)


def independent(rng, count: int, width: int) -> np.ndarray:
    return rng.random((count, width)) < rng.choice([0.1, 0.2, 0.35, 0.5, 0.8])


def clustered(rng, count: int, width: int) -> np.ndarray:
    centres = rng.random((3, width)) < 0.4
    return centres[rng.integers(3, size=count)] ^ (rng.random((count, width)) < 0.15)


def skewed(rng, count: int, width: int) -> np.ndarray:
    return rng.random((count, width)) < rng.random(width) ** 2


def of_all_sizes(rng, count: int, width: int) -> np.ndarray:
    return rng.random((count, width)) < rng.random((count, 1))


def nested(rng, count: int, width: int) -> np.ndarray:
    return np.arange(width) < rng.integers(0, width + 1, size=(count, 1))


def of_few_bits(rng, count: int, width: int) -> np.ndarray:
    return rng.random((count, width)).argsort(1) < rng.integers(1, 4)


def in_blocks(rng, count: int, width: int) -> np.ndarray:
    """Clusters that have no bit in common: a search may settle on the wrong one."""
    blocks = rng.integers(2, 5)
    mine = np.arange(width) % blocks == rng.integers(blocks, size=(count, 1))
    return mine & (rng.random((count, width)) < 0.7)


def paired(rng, count: int, width: int) -> np.ndarray:
    """Each bit has a copy, so that one flip alone helps little."""
    half = np.repeat(rng.random((count, (width + 1) // 2)) < 0.4, 2, axis=1)
    return half[:, :width]


def highest_tanimoto(rows: np.ndarray, p: np.ndarray) -> float:
    """By matrix products, for up to 2^16 decisions."""
    decisions = every(rows.shape[1]).astype(np.float32)
    common = decisions @ rows.T.astype(np.float32)
    union = decisions.sum(1)[:, None] + rows.sum(1, dtype=np.float32) - common
    values = np.where(union == 0, 1, common / np.maximum(union, 1)).astype(np.float32)
    near = np.argpartition(-(values @ p.astype(np.float32)), min(50, len(values) - 1))[:50]
    return float(expected_by_hand("tanimoto", decisions[near], rows, p).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [independent, clustered, skewed, of_all_sizes, nested, of_few_bits, in_blocks, paired],
)
def test_the_search_is_nearly_always_optimal(family) -> None:
    rng = np.random.default_rng(5)
    gaps = []
    for peaked in (0.1, 0.5, 1, 1000):  # from one candidate that has it all to equal ones
        for _ in range(50):
            width, count = int(rng.integers(4, 17)), int(rng.integers(1, 31))
            rows = family(rng, count, width).astype(np.uint8)
            rows[: int(rng.random() < 0.15)] = 0
            p = rng.dirichlet(np.full(count, peaked))
            known = distribution(rows, p)
            best = highest_tanimoto(rows, p)
            assert tanimoto_bound(known) >= best - 1e-9
            got = search_tanimoto(known)
            assert got.upper_bound >= best - 1e-9
            gaps.append(best - got.value)
    gaps = np.array(gaps)
    assert gaps.min() > -1e-9
    assert (gaps < 1e-9).mean() >= 0.95
    assert gaps.mean() < 0.002
