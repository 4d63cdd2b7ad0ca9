import itertools

import numpy as np
import pytest

from mzseek.core.errors import RunError
from mzseek.datasets.prepared import Prepared
from mzseek.decision import UTILITIES
from mzseek.evaluation.posteriors import Posterior, calibrate
from mzseek.evaluation.regrets import FoldRegrets, fold_regrets, regrets_of
from mzseek.evaluation.scored import Scoring

SIMILARITIES = ("tanimoto", "cosine", "bits")


def lists_of(posterior: Posterior, prepared: Prepared):
    """Distinct fingerprints of each list as tuples of bits, with their probabilities."""
    for end, count in zip(np.cumsum(posterior.counts), posterior.counts, strict=True):
        rows = prepared.fingerprint_rows(posterior.candidates[end - count : end]).toarray()
        known: dict[tuple[int, ...], float] = {}
        p = posterior.probabilities[end - count : end]
        for row, probability in zip(rows.astype(int).tolist(), p, strict=True):
            known[tuple(row)] = known.get(tuple(row), 0.0) + float(probability)
        yield known


def alike(similarity: str, a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """From its definition, bit by bit."""
    both = sum(x and y for x, y in zip(a, b, strict=True))
    if similarity == "bits":
        return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)
    if similarity == "cosine":
        return both / (sum(a) * sum(b)) ** 0.5
    return both / (sum(a) + sum(b) - both)


@pytest.fixture(scope="module", params=["bce", "emb-cos"])
def posterior(request, trained) -> Posterior:
    return calibrate(trained(request.param)).evaluated


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_regrets_and_bounds_are_those_of_a_plain_loop(similarity, posterior, small) -> None:
    found = fold_regrets(posterior, small, [similarity])[similarity]
    lists = list(lists_of(posterior, small))
    assert len(lists) == len(found.low) > 10
    for place, known in enumerate(lists):
        p_star = max(known.values())
        modes = {bits for bits, p in known.items() if p == p_star}
        worth = {a: sum(alike(similarity, a, b) * p for b, p in known.items()) for a in known}
        best = max(worth, key=worth.__getitem__)
        assert found.p_star[place] == pytest.approx(p_star)
        lost = {round(max(worth.values()) - worth[mode], 9) for mode in modes}
        assert round(found.similarity_lost[place], 9) in lost
        ties = [p for bits, p in known.items() if worth[bits] > worth[best] - 1e-12]
        assert round(found.hit_lost[place], 9) in {round(p_star - p, 9) for p in ties}
        if len(known) == 1:
            assert np.isnan(found.width[place])
            assert found.similarity_bound[place] == found.hit_bound[place] == 0
            assert found.guaranteed[place]
            continue
        pairs = [alike(similarity, a, b) for a, b in itertools.combinations(known, 2)]
        low, high = min(pairs), max(pairs)
        assert (found.low[place], found.high[place]) == pytest.approx((low, high))
        p_sim = p_star - found.hit_lost[place]
        wanted = (high - low) * (1 - p_star - p_sim) - (1 - high) * (p_star - p_sim)
        assert found.similarity_bound[place] == pytest.approx(max(wanted, 0))
        ratio = (high - low) / (1 - high) * (1 - p_star)
        assert found.hit_bound[place] == pytest.approx(min(p_star, ratio))
        second = sorted(known.values())[-2]
        if abs(p_star - second - ratio) > 1e-9:
            assert found.guaranteed[place] == (p_star - second >= ratio)


def test_no_list_exceeds_a_bound_and_some_decisions_differ(posterior, small) -> None:
    found = fold_regrets(posterior, small)
    assert set(found) == set(UTILITIES) - {"hit"}
    for each in found.values():
        assert not each.exceeded.any()
        assert (each.similarity_lost >= 0).all()
        assert (each.hit_lost >= 0).all()
        assert not (each.guaranteed & ~each.agreed).any()
    assert not found["tanimoto"].agreed.all()


def test_a_theorem_that_fails_is_counted() -> None:
    one, none, no = np.array([0.3]), np.array([0.1]), np.array([False])
    kept = {"low": none, "high": one, "p_star": one, "guaranteed": no}
    fair = {"similarity_lost": none, "similarity_bound": one, "hit_lost": none, "hit_bound": one}
    assert not FoldRegrets(**kept, **fair).exceeded.any()
    assert FoldRegrets(**kept, **fair | {"similarity_bound": 0 * one}).exceeded.all()
    assert FoldRegrets(**kept, **fair | {"hit_bound": 0 * one}).exceeded.all()
    assert FoldRegrets(**kept | {"guaranteed": ~no}, **fair).exceeded.all()


def test_processes_change_nothing(trained, small, monkeypatch) -> None:
    posterior = calibrate(trained("bce"), Scoring(fold="train")).evaluated
    alone = fold_regrets(posterior, small, processes=1)
    monkeypatch.setattr("mzseek.evaluation.posterior_report._LISTS_AT_A_TIME", 7)
    shared = fold_regrets(posterior, small, processes=2)
    for name, each in alone.items():
        assert each.similarity_lost.tolist() == shared[name].similarity_lost.tolist()
        assert each.hit_bound.tolist() == shared[name].hit_bound.tolist()


def test_what_is_no_similarity_is_refused(posterior, small) -> None:
    with pytest.raises(RunError, match="similarity 'hit' is unknown"):
        fold_regrets(posterior, small, ["hit"])


def test_those_of_a_run_are_those_of_its_calibrated_posterior(trained, small) -> None:
    run, how = trained("emb-cos"), Scoring("test", "formula")
    found = regrets_of(run, how)
    expected = fold_regrets(calibrate(run, how).evaluated, small)
    assert set(found) == set(expected)
    for name, own in found.items():
        np.testing.assert_array_equal(own.hit_lost, expected[name].hit_lost)
        np.testing.assert_array_equal(own.similarity_bound, expected[name].similarity_bound)
