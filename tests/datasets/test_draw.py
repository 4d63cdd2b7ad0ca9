"""Draws from a database, against a plain loop over all its molecules."""

from pathlib import Path

import pytest

from mzseek.chem.molecules import describe_structure
from mzseek.core.errors import DatabaseError, DatasetError
from mzseek.core.registry import EQUAL_IN
from mzseek.database import Database, build_database
from mzseek.database.sources import file_sources
from mzseek.datasets.build import BuildOptions, check_drawable, draw_candidates
from mzseek.parallel import LocalEngine

from ..molecules import MOLECULES

LABELLED = ["[2H]CO", "[13CH3]O", "CO"]


def store_of(folder: Path, smiles: list[str], name: str = "db", **options) -> Database:
    rows = [f"{text}\t{('a', 'b', 'c')[n % 3]}\n" for n, text in enumerate(smiles)]
    path = folder / f"{name}.tsv"
    path.write_text("smiles\tsource\n" + "".join(rows))
    return build_database(
        file_sources([path]), folder / name, engine=LocalEngine(1), nearest=False, **options
    )


@pytest.fixture(scope="module")
def pool() -> list[str]:
    return MOLECULES[:400]


@pytest.fixture(scope="module")
def store(pool: list[str], tmp_path_factory: pytest.TempPathFactory) -> Database:
    return store_of(tmp_path_factory.mktemp("draw"), [*pool, *LABELLED])


def drawn(store: Database, truths: list[str], setting: str, **options) -> dict[str, list[str]]:
    described = [describe_structure(text) for text in truths]
    return {
        truth.smiles: draw_candidates(truth, store, setting, BuildOptions(**options))
        for truth in described
    }


@pytest.mark.parametrize("setting", EQUAL_IN)
def test_lists_without_a_cap_hold_all_that_fits(setting: str, store: Database, pool) -> None:
    every = [describe_structure(text) for text in pool]
    for truth in every[::23]:
        lists = drawn(store, [truth.smiles], setting, candidate_ppm=20.0, max_candidates=10_000)
        expected = {
            other.smiles
            for other in every
            if (
                other.formula == truth.formula
                if setting == "formula"
                else abs(other.mass - truth.mass) <= truth.mass * 20e-6
            )
        }
        assert sorted(lists[truth.smiles]) == sorted(expected)


@pytest.mark.parametrize("setting", EQUAL_IN)
def test_full_lists_are_a_draw_with_the_truth_in(setting: str, store: Database, pool) -> None:
    whole = drawn(store, pool[:60], setting, max_candidates=10_000)
    for most in (1, 2, 5):
        for truth, candidates in drawn(store, pool[:60], setting, max_candidates=most).items():
            assert len(candidates) == min(most, len(whole[truth]))
            assert len(set(candidates)) == len(candidates)
            assert truth in candidates
            assert set(candidates) <= set(whole[truth])
    one, other = (drawn(store, pool[:60], setting, max_candidates=5, seed=seed) for seed in (1, 2))
    assert one == drawn(store, pool[:60], setting, max_candidates=5, seed=1)
    assert one != other


def test_a_list_knows_nothing_of_other_truths(store: Database, pool) -> None:
    together = drawn(store, pool[:40], "mass", max_candidates=5)
    for truth in pool[:40:7]:
        alone = drawn(store, [truth], "mass", max_candidates=5)
        assert alone[truth] == together[truth]


def test_the_order_of_the_files_changes_nothing(tmp_path: Path, store: Database, pool) -> None:
    turned = store_of(tmp_path, [*LABELLED, *reversed(pool)])
    for setting in EQUAL_IN:
        one, other = (drawn(s, pool[:40], setting, max_candidates=6) for s in (turned, store))
        assert one == other


def test_wanted_sources_come_first(store: Database, pool) -> None:
    source_of = {
        row["smiles"]: row["sources"][0] for batch in store.batches() for row in batch.to_pylist()
    }
    whole = drawn(store, pool[:60], "formula", max_candidates=10_000)
    preferred = drawn(store, pool[:60], "formula", max_candidates=6, priorities=("c", "a"))
    is_told_apart = 0
    for truth, candidates in preferred.items():
        taken = [source_of[c] for c in candidates if c != truth]
        there = [source_of[c] for c in whole[truth] if c != truth]
        ranked = sorted(there, key=lambda name: "cab".index(name))
        assert sorted(taken) == sorted(ranked[:5])
        is_told_apart += len(set(there)) > 1 and len(there) > 5
    assert is_told_apart > 5


def test_a_labelled_form_of_the_truth_is_no_candidate(store: Database) -> None:
    for truth in LABELLED:
        described = describe_structure(truth)
        found = draw_candidates(described, store, "formula", BuildOptions())
        assert found == [described.smiles]


def test_a_molecule_without_inchikey_is_a_candidate_like_others(tmp_path: Path) -> None:
    nameless = ["[U]" + "(F)" * 21, "[U]" + "(F)" * 20 + "Cl"]
    store = store_of(tmp_path, nameless)
    truth, other = (describe_structure(text) for text in nameless)
    assert truth.inchikey14 == other.inchikey14 == ""
    found = draw_candidates(truth, store, "mass", BuildOptions(candidate_ppm=5e4))
    assert sorted(found) == sorted([truth.smiles, other.smiles])


def test_forms_that_give_the_truth_away_are_refused(tmp_path: Path, store: Database) -> None:
    with_stereo = store_of(tmp_path, ["C[C@H](N)C(=O)O"], keep_stereo=True)
    check_drawable(with_stereo, BuildOptions(keep_stereo=True))
    check_drawable(store, BuildOptions())
    with pytest.raises(DatasetError, match="has stereo in its SMILES"):
        check_drawable(with_stereo, BuildOptions())
    with pytest.raises(DatasetError, match="has no stereo in its SMILES"):
        check_drawable(store, BuildOptions(keep_stereo=True))


def test_a_source_that_is_not_there_is_refused(store: Database) -> None:
    check_drawable(store, BuildOptions(priorities=("b",)))
    with pytest.raises(DatabaseError, match=r"priority 'd' is no source of .*: it has a, b, c"):
        check_drawable(store, BuildOptions(priorities=("a", "d")))
