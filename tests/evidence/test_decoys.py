"""Matched decoys."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mzseek.chem import fingerprints
from mzseek.chem.molecules import descriptors
from mzseek.core.errors import CacheError, DatabaseError, EvidenceError, WriteError
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.bands import set_bands
from mzseek.datasets.extra_lists import add_negatives
from mzseek.datasets.layout import SAME_FINGERPRINT, SAME_INCHIKEY
from mzseek.datasets.prepared import Prepared
from mzseek.evaluation.evaluate import evaluate
from mzseek.evaluation.scored import Scoring
from mzseek.evidence import decoys as module
from mzseek.evidence.decoys import (
    LEFT_OUT,
    MIN_SIZE,
    TOO_FEW,
    TOO_LIKELY,
    DecoyLists,
    ListRoles,
    add_matched,
    cross_fit_scores,
    draw_all,
    draw_list,
    list_size,
    matched_lists,
    pool_of,
    probabilities,
    structure_groups,
    tune_penalty,
)
from mzseek.evidence.prior import prior_features
from mzseek.metrics import hit_rate
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run
from mzseek.similarity import tanimoto_blocks
from mzseek.training.train import train

from ..conftest import SINGLE
from ..molecules import MOLECULES
from .test_prior import random_bits

MISSING = frozenset(SINGLE.values())
ALONE = LocalEngine(1)
HOW = {"ppm": 4e5, "engine": ALONE}
SPREAD = st.floats(0, 3)
SEEDS = st.integers(0, 2**32 - 1)


class Simulated(NamedTuple):
    """Pools, and the score of every candidate by the prior that truths were drawn with."""

    lists: DecoyLists
    prior: np.ndarray


def with_other_truths(lists: DecoyLists, which: np.ndarray) -> DecoyLists:
    """The same lists, where in some of them the next candidate is the truth."""
    labels = lists.labels.copy()
    for start, count in zip(lists.starts[which], lists.counts[which], strict=True):
        labels[start : start + count] = np.roll(labels[start : start + count], 1)
    return replace(lists, labels=labels)


@pytest.fixture
def simulate():
    def make(seed: int = 0, lists: int = 900, size: int = 60, strength: float = 0.5) -> Simulated:
        rng = np.random.default_rng(seed)
        molecules, bits = 5000, 40
        rows = prior_features(random_bits(rng, molecules, bits), rng.poisson(6, (molecules, 1)))
        prior = rows @ np.concatenate([rng.normal(0, strength, bits), [0.0], [0.1]])
        counts = rng.integers(size // 2, size, lists)
        members = np.concatenate([rng.choice(molecules, n, replace=False) for n in counts])
        labels = np.zeros(len(members), bool)
        for end, n in zip(np.cumsum(counts), counts, strict=True):
            here = prior[members[end - n : end]]
            labels[end - n + int((here + rng.gumbel(size=n)).argmax())] = True
        return Simulated(DecoyLists(counts, rows, members, labels), prior[members])

    return make


@pytest.fixture(scope="session")
def store(small_set, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The molecules of the small folder but for two that it measures, and others."""
    own = list(Prepared.open(small_set.folder).smiles)
    others = MOLECULES[:400]
    folder = tmp_path_factory.mktemp("database")
    path = folder / "molecules.smi"
    listed = [each for each in dict.fromkeys([*own, *others]) if each not in MISSING]
    path.write_text("".join(f"{each}\n" for each in listed))
    return build_database(
        file_sources([path]), folder / "store", fingerprint="maccs", engine=LocalEngine(1)
    )


@pytest.fixture
def folder(small_set, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_set.folder, tmp_path / "prepared"))


@pytest.fixture(scope="module")
def with_negatives(small_set, store: Database, tmp_path_factory) -> Prepared:
    """A folder with hard negatives; tests must leave it as it is."""
    copy = shutil.copytree(small_set.folder, tmp_path_factory.mktemp("negatives") / "prepared")
    return add_negatives(Prepared.open(copy), store, keep=4, engine=ALONE)[0]


def some_p(seed: int, spread: float, size: int = 60) -> np.ndarray:
    return probabilities(np.random.default_rng(seed).normal(0, spread, size))


def test_probabilities_are_a_softmax() -> None:
    assert probabilities([0.0, np.log(3)]) == pytest.approx([0.25, 0.75])
    assert probabilities([1000.0, 1000.0, -1000.0]) == pytest.approx([0.5, 0.5, 0])


@given(SEEDS, SPREAD, st.integers(1, 200))
def test_no_longer_than_what_is_left_is_worth(seed: int, spread: float, pool: int) -> None:
    p = np.sort(some_p(seed, spread, pool))[::-1]
    size, skipped = list_size(p)
    left = p[skipped:] / p[skipped:].sum()
    assert p[:skipped].sum() <= LEFT_OUT + 1e-9
    assert size * left[0] <= 1 + 1e-6  # every one can be drawn as often as it must
    assert 1 <= size <= min(1 / (left @ left) + 1e-6, len(left))
    whole, _ = list_size(p, enough=1)
    assert whole <= size  # leaving out likely ones never makes lists shorter


@settings(max_examples=200)
@given(SEEDS, SPREAD, st.integers(5, 40))
def test_a_list_has_the_truth_once_and_no_more_than_asked_for(
    seed: int, spread: float, most: int
) -> None:
    p, rng = some_p(seed, spread), np.random.default_rng(seed)
    truth = int(rng.integers(len(p)))
    found = draw_list(p, truth, rng, most)
    if isinstance(found, str):
        assert found in (TOO_FEW, TOO_LIKELY)
        return
    assert truth in found
    assert len(set(found.tolist())) == len(found)
    size = min(list_size(np.sort(p)[::-1])[0], most)
    assert size - 1 <= len(found) <= size  # one less where two ends of a row meet


@pytest.mark.parametrize("spread", [0.0, 0.7, 1.2])
@pytest.mark.parametrize("most", [8, 100])
def test_each_member_of_a_list_is_as_likely_the_truth(spread: float, most: int) -> None:
    """Truths drawn by p, lists by p: what knows p finds the truth as often as chance."""
    rng = np.random.default_rng(7)
    p = some_p(11, spread, 50)
    hits, chance, place = [], [], []
    for _ in range(6000):
        truth = int(rng.choice(len(p), p=p))
        found = draw_list(p, truth, rng, most, enough=10)
        if isinstance(found, str):
            assert found == TOO_LIKELY
            continue
        best = p[found] == p[found].max()
        hits.append(best[found == truth].sum() / best.sum())
        chance.append(1 / len(found))
        place.append(float(np.flatnonzero(found == truth)[0]) / (len(found) - 1))
    error = np.std(hits) / np.sqrt(len(hits))
    assert len(hits) > 3000
    assert np.mean(hits) == pytest.approx(np.mean(chance), abs=3.5 * error + 1e-9)
    assert np.mean(place) == pytest.approx(0.5, abs=0.02)


def test_members_are_there_as_often_as_they_are_likely() -> None:
    rng = np.random.default_rng(9)
    p = some_p(12, 0.8, 40)
    seen = np.zeros(len(p))
    for _ in range(8000):
        found = draw_list(p, int(rng.choice(len(p), p=p)), rng, max_size=6, enough=1)
        assert not isinstance(found, str)
        seen[found] += 1
    assert seen / 8000 == pytest.approx(6 * p, abs=0.025)


def test_a_truth_that_stands_out_has_no_list() -> None:
    rng = np.random.default_rng(0)
    p = probabilities([4.0] + [0.0] * 300)
    assert list_size(np.sort(p)[::-1]) == (300, 1)
    assert draw_list(p, 0, rng, 20) == TOO_LIKELY
    assert not isinstance(draw_list(p, 5, rng, 20), str)
    assert 0 not in draw_list(p, 5, rng, 300)
    assert draw_list(probabilities([9.0] + [0.0] * 300), 0, rng, 20) == TOO_FEW
    assert draw_list(np.ones(MIN_SIZE - 1) / (MIN_SIZE - 1), 0, rng, 20) == TOO_FEW
    assert len(draw_list(np.ones(MIN_SIZE) / MIN_SIZE, 0, rng, 20)) == MIN_SIZE


def test_equal_ones_stand_in_no_order() -> None:
    """Of many that are equally likely some are left out: any of them, the truth included."""
    p = probabilities([3.0, 3.0] + [0.0] * 120)
    left = [
        isinstance(draw_list(p, 0, np.random.default_rng(seed), 20, enough=40), str)
        for seed in range(300)
    ]
    _, skipped = list_size(np.sort(p)[::-1], enough=40)
    assert np.mean(left) == pytest.approx(skipped / 2, abs=0.1)


def taken_apart(lists: DecoyLists) -> list[list[tuple[list[float], bool]]]:
    """Features and label of each candidate, list by list, by a plain loop."""
    found, place = [], 0
    for count in lists.counts.tolist():
        span = range(place, place + count)
        found.append(
            [(lists.rows[[lists.members[n]]].toarray()[0].tolist(), bool(lists.labels[n]))
             for n in span]
        )  # fmt: skip
        place += count
    return found


def small_lists() -> DecoyLists:
    rows = csr_array(np.arange(12.0).reshape(6, 2))
    members, labels = np.array([0, 1, 2, 3, 1, 5, 0]), np.array([1, 0, 0, 1, 0, 0, 1], bool)
    return DecoyLists(np.array([3, 3, 1]), rows, members, labels)


def test_some_lists_and_candidates_are_what_they_were() -> None:
    lists = small_lists()
    whole = taken_apart(lists)
    for which in map(np.array, ([0, 1, 2], [1], [2, 0], np.empty(0, np.int64))):
        found = lists.only(which)
        assert taken_apart(found) == [whole[n] for n in which]
        assert found.rows.shape[0] == len(np.unique(lists.members[lists.candidates(which)]))
    found = lists.only(np.array([1, 0]), np.array([5, 3, 0, 2]))
    assert taken_apart(found) == [[whole[1][2], whole[1][0]], [whole[0][0], whole[0][2]]]


def test_cut_lists_keep_their_truths(simulate) -> None:
    lists = simulate(0, lists=50).lists
    cut = lists.at_most(8, 0)
    assert cut.counts.tolist() == [8] * 50
    assert (cut.sum(cut.labels, np.int64) == 1).all()
    assert lists.at_most(1000, 0).counts.tolist() == lists.counts.tolist()
    before, after = taken_apart(lists), taken_apart(cut)
    assert all(each in all_of for all_of, some in zip(before, after, strict=True) for each in some)
    assert taken_apart(lists.at_most(8, 0)) == after != taken_apart(lists.at_most(8, 1))


def test_the_penalty_is_the_best_for_others(simulate) -> None:
    lists = simulate(2, lists=200).lists
    crossfitted, others = lists.only(np.arange(80)), lists.only(np.arange(80, 200))
    penalties = (1.0, 0.1, 0.01, 1e-3, 1e-4)
    values = [others.log_p(crossfitted.fit(l2)).mean() for l2 in penalties]
    assert 0 < int(np.argmax(values)) < len(penalties) - 1
    assert tune_penalty(crossfitted, others, penalties).l2 == penalties[int(np.argmax(values))]
    with pytest.raises(EvidenceError, match="no penalty"):
        tune_penalty(crossfitted, others, ())


def test_no_list_is_scored_by_what_learned_from_its_group(simulate) -> None:
    """Other truths in a group change no score of that group's lists, and change all others."""
    lists = simulate(3, lists=60).lists
    groups = np.repeat([-1, 0, 1, 2], 15)
    crossfitted = lists.only(np.arange(15, 60))

    def scores(changed: int | None) -> np.ndarray:
        given = with_other_truths(crossfitted, np.flatnonzero(groups[15:] == changed))
        return cross_fit_scores(lists, groups, given, groups[15:], given.fit(0.03))

    plain, owner = scores(None), groups[lists.list_index]
    for group in (0, 1, 2):
        other = scores(group)
        assert (other[owner == group] == plain[owner == group]).all()
        for rest in {-1, 0, 1, 2} - {group}:
            assert not np.allclose(other[owner == rest], plain[owner == rest])


def test_groups_part_no_two_that_are_alike() -> None:
    rows = fingerprints(MOLECULES[:300], "morgan2")
    in_training = np.arange(300) % 3 > 0
    groups = structure_groups(rows, in_training)
    alike = np.vstack([block for _, block in tanimoto_blocks(rows, rows)]) >= 0.6
    assert alike[~np.eye(300, dtype=bool)].any()
    for one, other in zip(*np.nonzero(alike), strict=True):
        assert groups[one] == groups[other]
    assert set(groups[in_training].tolist()) == {0, 1, 2, 3, 4}
    assert (groups[~in_training] == -1).any()
    # A molecule that in_training nothing itself may be like one that does.
    near = alike[:, in_training].any(axis=1)
    assert ((groups >= 0) >= near).all()


def test_what_is_all_alike_cannot_be_parted() -> None:
    rows = csr_array(np.ones((4, 8), np.int32))
    with pytest.raises(EvidenceError, match="4 molecules to learn from, in 1 structure cluster"):
        structure_groups(rows, np.ones(4, bool))
    with pytest.raises(EvidenceError, match="0 molecules to learn from"):
        structure_groups(rows, np.zeros(4, bool))
    two = csr_array(np.array([[1, 1, 0, 0], [0, 0, 1, 1]], np.int32))
    assert sorted(structure_groups(two, np.ones(2, bool)).tolist()) == [0, 1]


def some_roles(lists: int) -> ListRoles:
    """Two thirds teach, in five groups; penalties are chosen on half of the others."""
    place = np.arange(lists)
    in_training = place % 3 > 0
    groups = np.where(in_training, place % 5, -1)
    return ListRoles.of(groups, in_training, ~in_training & (place % 2 == 0))


def over_chance(lists: DecoyLists, scores: np.ndarray) -> tuple[float, float]:
    """HR@1 by scores, in units of chance, and its standard error."""
    hits, chance = hit_rate(scores, lists.counts, lists.labels, 1), (1 / lists.counts).mean()
    return hits.mean() / chance, hits.std() / np.sqrt(len(hits)) / chance


def test_what_knows_the_prior_finds_no_truth_in_matched_lists(simulate) -> None:
    simulated = simulate(0, lists=2400, size=100)
    pool, roles = simulated.lists, some_roles(2400)
    matched = matched_lists(pool, roles, np.arange(2400))
    assert np.corrcoef(matched.scores, simulated.prior)[0, 1] > 0.95
    before, _ = over_chance(pool, simulated.prior)
    assert before > 3
    lists, prior = matched.lists, simulated.prior[matched.candidates]
    after, error = over_chance(lists, prior)
    assert after < 1.3
    assert after == pytest.approx(1, abs=4 * error + 0.1)
    assert lists.counts.mean() > 8
    # A scorer that is trained on them, as anybody would, learns nothing that holds for others.
    others = lists.only(np.flatnonzero((roles.groups < 0)[matched.which]))
    found, error = over_chance(others, others.scores(matched.blind))
    assert found == pytest.approx(1, abs=4 * error + 0.1)


@pytest.mark.slow
def test_a_scorer_that_was_held_back_is_made_up_for(simulate, monkeypatch) -> None:
    """One that learns too little leaves what a second round finds; without it, truths show."""
    simulated = simulate(2, lists=2500)
    roles, tuned = some_roles(2500), ListRoles.tune
    calls: list[float] = []

    def held_back(self, lists, which, progress=lambda *_: None):
        calls.append(1)
        if len(calls) > 1:
            return tuned(self, lists, which)
        return lists.only(np.flatnonzero(self.in_training[which])).fit(3.0)

    monkeypatch.setattr(ListRoles, "tune", held_back)
    matched = matched_lists(simulated.lists, roles, np.arange(2500))
    assert matched.rounds > 1
    calls.clear()
    monkeypatch.setattr("mzseek.evidence.decoys.MAX_ROUNDS", 1)
    once = matched_lists(simulated.lists, roles, np.arange(2500))
    assert once.rounds == 1

    def told(found) -> float:
        return over_chance(found.lists, simulated.prior[found.candidates])[0]

    assert told(matched) < told(once)
    assert told(once) > 1.5


def test_lists_depend_on_those_that_teach_alone(simulate) -> None:
    """Other truths among those that teach nothing change their own lists, and no others."""
    pool, roles = simulate(3, lists=300).lists, some_roles(300)
    quiet = np.flatnonzero(~roles.in_training & ~roles.held_out)
    changed = with_other_truths(pool, quiet)
    one = matched_lists(pool, roles, np.arange(300))
    other = matched_lists(changed, roles, np.arange(300))
    assert (one.scores == other.scores).all()
    owner = pool.list_index
    same = ~np.isin(owner[one.candidates], quiet)
    kept = ~np.isin(owner[other.candidates], quiet)
    assert (one.candidates[same] == other.candidates[kept]).all()


def test_where_none_is_held_out_a_group_is(simulate) -> None:
    pool = simulate(5, lists=120).lists
    groups, in_training = np.arange(120) % 4, np.ones(120, bool)
    roles = ListRoles.of(groups, in_training, np.zeros(120, bool))
    assert (roles.held_out == (groups == 0)).all()
    matched = matched_lists(pool, roles, np.arange(120))
    assert matched.blind is not None
    # The priors of all groups have the penalty that was chosen; group 0 is in the others.
    chosen = tune_penalty(
        pool.only(np.flatnonzero(groups > 0)), pool.only(np.flatnonzero(groups == 0))
    )
    assert matched.l2 == chosen.l2
    assert matched.l2 in module.PENALTIES


def test_every_molecule_has_a_list_or_a_reason(simulate) -> None:
    simulated = simulate(6, lists=200, size=80, strength=0.6)
    which, candidates, reasons = draw_all(simulated.lists, simulated.prior, np.arange(200), 0, 10)
    assert len(which) + sum(reasons.values()) == 200
    assert len(reasons) == 2
    found = simulated.lists.only(which, candidates)
    assert (found.sum(found.labels, np.int64) == 1).all()
    assert found.counts.max() <= 10
    assert (np.unique(simulated.lists.list_index[candidates]) == which).all()


@pytest.mark.parametrize(("by", "ppm"), [("mass", 10.0), ("mass", 5e4), ("formula", 10.0)])
def test_pools_hold_the_truth_and_all_that_is_equal_in_mass_or_formula(
    small: Prepared, store: Database, by: str, ppm: float
) -> None:
    pool = pool_of(small, store, by=by, max_decoys=1000, ppm=ppm, engine=ALONE)
    columns = ["smiles", "key", "mass", "formula"]
    table = store.rows(np.arange(len(store)), columns).to_pylist()
    keys = fingerprints([each["smiles"] for each in table], "maccs").toarray()
    assert pool.molecules.tolist() == np.unique(small.molecule).tolist()
    starts = pool.lists.starts
    for n, form in enumerate(pool.forms):
        members = pool.lists.members[starts[n] : starts[n] + pool.lists.counts[n]]
        truth, rivals = int(members[0]), members[1:]
        assert pool.lists.labels[starts[n] : starts[n] + len(members)].tolist() == [
            place == 0 for place in range(len(members))
        ]
        assert (pool.database_rows[n] >= 0) == (form.described.smiles not in MISSING)
        if pool.database_rows[n] >= 0:
            assert pool.rows[truth] == pool.database_rows[n]
        else:
            assert truth >= len(pool.rows)
        own = fingerprints([form.described.smiles], "maccs").toarray()[0]
        width = form.described.mass * ppm * 1e-6
        expected = {
            row for row, each in enumerate(table)
            if (each["formula"] == form.described.formula if by == "formula"
                else abs(each["mass"] - form.described.mass) <= width)
            and each["key"] != form.described.key and (keys[row] != own).any()
        }  # fmt: skip
        assert set(pool.rows[rivals].tolist()) == expected
        assert len(rivals) == len(expected)


def test_rows_describe_the_molecules(small: Prepared, store: Database) -> None:
    pool = pool_of(small, store, by="mass", max_decoys=1000, engine=ALONE)
    smiles = store.rows(pool.rows, ["smiles"])["smiles"].to_pylist()
    smiles += [
        form.described.smiles
        for form, own in zip(pool.forms, pool.database_rows.tolist(), strict=True)
        if own < 0
    ]
    assert set(smiles[len(pool.rows) :]) == MISSING
    expected = prior_features(fingerprints(smiles, "maccs"), descriptors(smiles))
    assert (pool.lists.rows != expected).nnz == 0
    written = [form.described.smiles for form in pool.forms]
    truths = pool.lists.members[pool.lists.labels].tolist()
    assert [smiles[place] for place in truths] == written
    assert (pool.structures != fingerprints(written, "morgan2")).nnz == 0


def test_of_many_rivals_some_are_drawn(small: Prepared, store: Database, tmp_path: Path) -> None:
    def drawn(seed: int) -> np.ndarray:
        pool = pool_of(small, store, by="mass", max_decoys=4, ppm=5e4, seed=seed, engine=ALONE)
        assert pool.lists.counts.max() == 5
        return pool.rows[pool.lists.members[~pool.lists.labels]]

    assert drawn(0).tolist() == drawn(0).tolist() != drawn(1).tolist()


def listed(prepared: Prepared, name: str) -> dict[int, tuple[list[int], list[int]]]:
    """Members and marks of each measured molecule that has a list."""
    lists, found = prepared.candidates(name), {}
    for molecule in np.unique(prepared.molecule).tolist():
        number = int(lists.list_of[molecule])
        if number >= 0:
            here = slice(int(lists.indptr[number]), int(lists.indptr[number + 1]))
            found[molecule] = lists.molecules[here].tolist(), lists.identity[here].tolist()
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_lists_have_the_truth_once_among_others_of_its_mass(folder: Path, store: Database) -> None:
    prepared, facts = add_matched(Prepared.open(folder), store, **HOW)
    Prepared.open(folder, verify=True).check_arrays()
    found = listed(prepared, "matched")
    assert found
    places = []
    for molecule, (members, marks) in found.items():
        assert sorted(marks) == [0] * (len(marks) - 1) + [SAME_FINGERPRINT | SAME_INCHIKEY]
        truth = members[int(np.argmax(marks))]
        assert truth == molecule  # all are written as the store writes them
        assert len(set(members)) == len(members) >= 5
        mass = prepared.masses[molecule]
        assert (abs(prepared.masses[members] - mass) <= 0.4 * mass).all()
        bits = prepared.fingerprint_rows(np.array(members)).toarray()
        alike = (bits == bits[int(np.argmax(marks))]).all(axis=1)
        assert alike.sum() == 1
        blocks = prepared.inchikey14[members].tolist()
        assert len(set(blocks)) == len(blocks)
        places.append(np.argmax(marks) / (len(marks) - 1))
    assert 0.3 < np.mean(places) < 0.7
    assert any(prepared.smiles[molecule] in MISSING for molecule in found)
    bands = set_bands(prepared, "matched", fold=None, jobs=1)
    assert len(bands.high) == len(found)
    assert (bands.high < 1).all()  # none is its own decoy
    sizes = prepared.candidates("matched").sizes
    assert (facts["lists"], facts["mean"]) == (len(sizes), pytest.approx(sizes.mean()))
    measured = prepared.manifest["counts"]["measured_molecules"]
    assert facts["lists"] + sum(facts["set_aside"].values()) == measured
    assert facts["molecules_without"] == measured - facts["lists"]
    assert set(facts["matched"]["blind"]) == {"val", "test"}
    val = np.unique(prepared.molecule[prepared.in_fold("val")])
    chance = np.mean([1 / len(found[n][0]) for n in val.tolist() if n in found])
    assert facts["matched"]["blind"]["val"]["random"] == pytest.approx(chance)


def test_what_was_there_stays_and_lists_live_side_by_side(folder: Path, store: Database) -> None:
    before = contents(folder)
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    prepared, facts = add_matched(prepared, store, by="formula", name="other", **HOW | {"pool": 9})
    after = contents(folder)
    assert {name: after[name] for name in before if name != "manifest.json"} == {
        name: content for name, content in before.items() if name != "manifest.json"
    }
    assert (
        prepared.settings == prepared.measured_settings == ["formula", "mass", "matched", "other"]
    )
    assert facts["name"] == "other"
    assert prepared.measured_on("matched") == "matched"
    assert prepared.drawn_by("matched")["by"] == "mass"
    for molecule, (members, _) in listed(prepared, "other").items():
        assert {prepared.formulas[each] for each in members} == {prepared.formulas[molecule]}


def test_the_same_again_is_the_same_and_replaces_it(folder: Path, store: Database) -> None:
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    first, files = listed(prepared, "matched"), len(contents(folder))
    again, _ = add_matched(prepared, store, **HOW)
    assert listed(again, "matched") == first
    other, _ = add_matched(again, store, seed=1, keep=6, **HOW)
    assert listed(other, "matched") != first
    assert max(len(members) for members, _ in listed(other, "matched").values()) <= 6
    assert other.settings == ["formula", "mass", "matched"]
    Prepared.open(folder, verify=True)
    assert len(contents(folder)) >= files


@pytest.mark.slow
def test_runs_are_trained_and_measured_on_them(
    folder: Path, store: Database, small_options, tmp_path: Path
) -> None:
    prepared, _ = add_matched(Prepared.open(folder), store, **HOW)
    run = train(prepared, small_options("emb-cos", candidates="matched"), tmp_path / "run")
    assert run.measured_on == "matched"
    assert {"hit_rate@1/matched", "hit_rate@1/mass"} <= set(run.best)
    found = evaluate(run, Scoring(candidates="matched"), data=folder)
    with_list = listed(prepared, "matched")
    queries = [n for n in prepared.in_fold("test") if int(prepared.molecule[n]) in with_list]
    assert len(found.values["hit_rate@1"]) == len(queries) > 0
    assert found.without_list == len(prepared.in_fold("test")) - len(queries)
    again, _ = add_matched(prepared, store, seed=1, **HOW)
    other = train(again, small_options("emb-cos", candidates="matched"), tmp_path / "other")
    assert other.identity != run.identity


@pytest.mark.slow
def test_a_run_from_before_is_measured_on_lists_drawn_since(
    folder: Path, store: Database, trained, tmp_path: Path
) -> None:
    """Also where predictions were saved: of no such lists, or of others of that name."""
    run = Run.open(shutil.copytree(trained("bce").folder, tmp_path / "run"))
    evaluate(run, Scoring(candidates="mass"), data=folder)
    prepared = Prepared.open(folder)
    for seed in (0, 1):
        prepared, _ = add_matched(prepared, store, seed=seed, **HOW)
        found = evaluate(run, Scoring(candidates="matched"), data=folder)
        fresh = Run.open(shutil.copytree(trained("bce").folder, tmp_path / f"fresh{seed}"))
        shutil.rmtree(fresh.folder / "predictions")
        expected = evaluate(fresh, Scoring(candidates="matched"), data=folder)
        assert found.to_dict() | {"run": ""} == expected.to_dict() | {"run": ""}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"by": "colour"}, DatabaseError, "matched lists by 'colour'"),
        ({"keep": 4}, DatabaseError, "lists of 4 molecules, expected at least 5"),
        ({"pool": 3}, DatabaseError, "lists of 3 molecules, expected at least 5"),
        ({"name": "mass"}, CacheError, "has lists 'mass' that are no matched ones"),
        ({"name": "hard-mass-4"}, CacheError, "has lists 'hard-mass-4' that are no matched"),
        ({"name": "../out"}, CacheError, "expected small letters"),
        ({"name": ""}, CacheError, "expected small letters"),
    ],
)
def test_bad_arguments_are_refused_and_change_nothing(
    with_negatives: Prepared, store: Database, changes, error, message: str
) -> None:
    before = contents(with_negatives.folder)
    with pytest.raises(error, match=message):
        add_matched(with_negatives, store, **HOW | changes)
    assert contents(with_negatives.folder) == before


def test_the_reason_is_stated_where_no_list_can_be_drawn(
    folder: Path, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "draw_list", lambda *_: TOO_FEW)
    before = contents(folder)
    with pytest.raises(CacheError, match=r"no list can be drawn, 44: fewer than 5 candidates"):
        add_matched(Prepared.open(folder), store, **HOW)
    assert contents(folder) == before


def test_a_failed_write_leaves_the_folder_as_it_was(
    folder: Path, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    before = contents(folder)
    monkeypatch.setattr("mzseek.datasets.prepare.measured", full)
    with pytest.raises(WriteError, match=r"prepared: cannot be written \(No space left"):
        add_matched(Prepared.open(folder), store, **HOW)
    assert contents(folder) == before


def test_a_folder_without_folds_learns_from_all(folder: Path, store: Database, resign) -> None:
    path = folder / "spectra.fold.npy"
    np.save(path, np.full_like(np.load(path), -1))
    prepared, facts = add_matched(Prepared.open(resign(folder)), store, **HOW)
    assert facts["lists"] == len(listed(prepared, "matched")) > 0
    assert facts["matched"]["blind"] == {}
