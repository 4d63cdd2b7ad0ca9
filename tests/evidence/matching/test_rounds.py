import numpy as np
import pytest

from mzseek.evidence import decoys as lists_module
from mzseek.evidence.decoys import DecoyLists, ListRoles, draw_all, matched_lists, tune_penalty
from mzseek.metrics import hit_rate

from .conftest import with_other_truths


def some_roles(lists: int) -> ListRoles:
    """Two thirds teach, in five groups; penalties are chosen on half of the others."""
    place = np.arange(lists)
    teaches = place % 3 > 0
    groups = np.where(teaches, place % 5, -1)
    return ListRoles.of(groups, teaches, ~teaches & (place % 2 == 0))


def over_chance(lists: DecoyLists, scores: np.ndarray) -> tuple[float, float]:
    """HR@1 by scores, in units of chance, and its standard error."""
    hits, chance = hit_rate(scores, lists.counts, lists.labels, 1), (1 / lists.counts).mean()
    return hits.mean() / chance, hits.std() / np.sqrt(len(hits)) / chance


def test_what_knows_the_prior_finds_no_truth_in_matched_lists(simulate) -> None:
    simulated = simulate(0, lists=2400, size=100)
    pool, roles = simulated.lists, some_roles(2400)
    matched = matched_lists(pool, roles, np.arange(2400))
    before, _ = over_chance(pool, simulated.prior)
    assert before > 3
    lists, prior = matched.lists, simulated.prior[matched.drawn.candidates]
    after, error = over_chance(lists, prior)
    assert after < 1.3
    assert after == pytest.approx(1, abs=4 * error + 0.1)
    assert lists.counts.mean() > 8
    # A scorer that is trained on them, as anybody would, learns nothing that holds for others.
    others = lists.only(np.flatnonzero((roles.groups < 0)[matched.drawn.which]))
    found, error = over_chance(others, others.scores(matched.fresh))
    assert found == pytest.approx(1, abs=4 * error + 0.1)


def test_scores_recover_the_prior(simulate) -> None:
    simulated = simulate(1, lists=3000)
    matched = matched_lists(simulated.lists, some_roles(3000), np.arange(3000))
    assert np.corrcoef(matched.scores, simulated.prior)[0, 1] > 0.95


def test_a_scorer_that_was_held_back_is_made_up_for(simulate, monkeypatch) -> None:
    """One that learns too little leaves what a second round finds; without it, truths show."""
    simulated = simulate(2, lists=2500)
    roles, tuned = some_roles(2500), ListRoles.tuned
    calls: list[float] = []

    def held_back(self, lists, which, progress=lambda *_: None):
        calls.append(1)
        return lists.only(np.flatnonzero(self.teaches[which])).fit(3.0) if len(calls) == 1 else (
            tuned(self, lists, which)
        )  # fmt: skip

    monkeypatch.setattr(ListRoles, "tuned", held_back)
    matched = matched_lists(simulated.lists, roles, np.arange(2500))
    assert matched.rounds > 1
    calls.clear()
    monkeypatch.setattr("mzseek.evidence.decoys.MOST_ROUNDS", 1)
    once = matched_lists(simulated.lists, roles, np.arange(2500))
    assert once.rounds == 1

    def told(found) -> float:
        return over_chance(found.lists, simulated.prior[found.drawn.candidates])[0]

    assert told(matched) < told(once)
    assert told(once) > 1.5


def test_lists_depend_on_those_that_teach_alone(simulate) -> None:
    """Other truths among those that teach nothing change their own lists, and no others."""
    pool, roles = simulate(3, lists=300).lists, some_roles(300)
    quiet = np.flatnonzero(~roles.teaches & ~roles.held_out)
    changed = with_other_truths(pool, quiet)
    one = matched_lists(pool, roles, np.arange(300))
    other = matched_lists(changed, roles, np.arange(300))
    assert (one.scores == other.scores).all()
    owner = pool.ragged.list_index
    same = ~np.isin(owner[one.drawn.candidates], quiet)
    kept = ~np.isin(owner[other.drawn.candidates], quiet)
    assert (one.drawn.candidates[same] == other.drawn.candidates[kept]).all()


def test_the_same_again_is_the_same_and_another_seed_another(simulate) -> None:
    pool, roles = simulate(4, lists=150).lists, some_roles(150)
    one, again, other = (
        matched_lists(pool, roles, np.arange(150), seed=seed).drawn for seed in (0, 0, 1)
    )
    assert (one.candidates == again.candidates).all()
    assert one.candidates.tolist() != other.candidates.tolist()


def test_where_none_is_held_out_a_group_is(simulate) -> None:
    pool = simulate(5, lists=120).lists
    groups, teaches = np.arange(120) % 4, np.ones(120, bool)
    roles = ListRoles.of(groups, teaches, np.zeros(120, bool))
    assert (roles.held_out == (groups == 0)).all()
    matched = matched_lists(pool, roles, np.arange(120))
    assert matched.fresh is not None
    # The scorers of all groups have the penalty that was chosen; group 0 taught the others, too.
    chosen = tune_penalty(
        pool.only(np.flatnonzero(groups > 0)), pool.only(np.flatnonzero(groups == 0))
    )
    assert matched.l2 == chosen.l2
    assert matched.l2 in lists_module.PENALTIES


def test_every_molecule_has_a_list_or_a_reason(simulate) -> None:
    simulated = simulate(6, lists=200, size=80, strength=0.6)
    drawn = draw_all(simulated.lists, simulated.prior, np.arange(200), 0, 10)
    assert len(drawn.which) + sum(drawn.reasons.values()) == 200
    assert len(drawn.reasons) == 2
    found = simulated.lists.only(drawn.which, drawn.candidates)
    assert (found.ragged.sum(found.labels, np.int64) == 1).all()
    assert found.counts.max() <= 10
    whole = simulated.lists.ragged.list_index[drawn.candidates]
    assert (np.unique(whole) == drawn.which).all()
