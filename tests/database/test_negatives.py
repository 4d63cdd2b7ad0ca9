from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import DataStructs

from mzseek.core.errors import DatabaseError
from mzseek.database import Database, add_molecules, build_database
from mzseek.database import negatives as module
from mzseek.database.negatives import Mined, Truth, mine
from mzseek.database.sources import file_sources
from mzseek.parallel import LocalEngine

from .conftest import METHANES, NAMELESS, all_rows, write_table

mined_here = partial(mine, engine=LocalEngine(1))


def truth_of(row: dict, number: int) -> Truth:
    return Truth(number, row["mass"], row["formula"], row["key"], row["fingerprint"])


@pytest.fixture(scope="module")
def rows(store: Database) -> list[dict]:
    return all_rows(store)


@pytest.fixture(scope="module")
def truths(rows: list[dict]) -> list[Truth]:
    """Every third molecule, not in the order of masses."""
    wanted = np.random.default_rng(0).permutation(len(rows))[::3]
    return [truth_of(rows[row], number) for number, row in enumerate(wanted)]


def vector(fingerprint: bytes) -> DataStructs.ExplicitBitVect:
    made = DataStructs.ExplicitBitVect(8 * len(fingerprint))
    bits = np.unpackbits(np.frombuffer(fingerprint, np.uint8))
    made.SetBitsFromList(np.flatnonzero(bits).tolist())
    return made


def scanned(rows: list[dict], truth: Truth, by: str, keep: int, ppm: float) -> tuple[list, list]:
    """The negatives by way of RDKit and a stable sort."""
    width = truth.mass * ppm * 1e-6
    fits = [
        n for n, row in enumerate(rows)
        if row["key"] != truth.key
        and (row["formula"] == truth.formula if by == "formula" else
             truth.mass - width <= row["mass"] <= truth.mass + width)
    ]  # fmt: skip
    vectors = [vector(rows[n]["fingerprint"]) for n in fits]
    values = DataStructs.BulkTanimotoSimilarity(vector(truth.fingerprint), vectors)
    order = sorted(range(len(fits)), key=lambda place: -values[place])[:keep]
    return [fits[place] for place in order], [values[place] for place in order]


@settings(max_examples=12, deadline=None)
@given(
    by=st.sampled_from(["mass", "formula"]), keep=st.integers(1, 60),
    ppm=st.sampled_from([1.0, 10.0, 3e4]),
)  # fmt: skip
def test_the_hardest_are_those_that_rdkit_finds(store, rows, truths, by, keep, ppm) -> None:
    found = list(mined_here(store, truths, by=by, keep=keep, ppm=ppm))
    assert sorted(each.number for each in found) == list(range(len(truths)))
    for each in found:
        expected, values = scanned(rows, truths[each.number], by, keep, ppm)
        assert each.rows.tolist() == expected
        assert each.similarities.tolist() == values
        assert each.total >= len(expected)
        assert each.total == len(scanned(rows, truths[each.number], by, len(rows), ppm)[0])


def test_results_come_in_the_order_of_masses(store, truths) -> None:
    masses = [truths[each.number].mass for each in mined_here(store, truths)]
    assert masses == sorted(masses)


def same(one: list[Mined], two: list[Mined]) -> bool:
    return [(m.number, m.rows.tolist(), m.similarities.tolist(), m.total) for m in one] == [
        (m.number, m.rows.tolist(), m.similarities.tolist(), m.total) for m in two
    ]


@pytest.mark.parametrize("kind", ["hardest", "random"])
def test_jobs_and_batches_do_not_matter(store, truths, kind: str, monkeypatch) -> None:
    one = list(mined_here(store, truths, kind=kind, keep=5))
    assert same(list(mine(store, truths, kind=kind, keep=5, engine=LocalEngine(2))), one)
    monkeypatch.setattr(module, "_AT_A_TIME", 7)
    assert same(list(mined_here(store, truths[::-1], kind=kind, keep=5)), one)


def test_random_ones_are_reproducible_and_any(store, rows, truths) -> None:
    ask = partial(mined_here, store, truths, kind="random", keep=4, ppm=3e4)
    first = list(ask(seed=1))
    assert same(first, list(ask(seed=1)))
    assert not same(first, list(ask(seed=2)))
    hardest = {each.number: each for each in mined_here(store, truths, keep=4, ppm=3e4)}
    for each in first:
        allowed, values = scanned(rows, truths[each.number], "mass", len(rows), 3e4)
        assert set(each.rows.tolist()) <= set(allowed)
        assert len(set(each.rows.tolist())) == min(4, len(allowed))
        known = dict(zip(allowed, values, strict=True))
        assert each.similarities.tolist() == [known[row] for row in each.rows.tolist()]
    assert any(
        each.rows.tolist() != hardest[each.number].rows.tolist() for each in first if each.total > 4
    )


def test_windows_that_are_much_the_same_are_read_together(monkeypatch) -> None:
    low, high = np.array([0, 5, 10, 900, 905]), np.array([100, 110, 120, 1000, 3000])
    assert list(module._shared_windows(low, high)) == [(0, 3), (3, 4), (4, 5)]
    assert list(module._shared_windows(low[:0], high[:0])) == []
    monkeypatch.setattr(module, "_SHARED", 2)
    assert list(module._shared_windows(low, high)) == [(0, 2), (2, 3), (3, 4), (4, 5)]


def test_a_store_without_its_index_says_so(make_store) -> None:
    store = make_store([("CCO",), ("COC",)], nearest=False)
    with pytest.raises(DatabaseError, match="was built without the index"):
        list(mined_here(store, [truth_of(all_rows(store)[0], 0)]))


def test_a_molecule_that_is_not_in_the_store_has_negatives(store, rows) -> None:
    truth = Truth(7, rows[100]["mass"], rows[100]["formula"], "X" * 14, rows[100]["fingerprint"])
    [found] = mined_here(store, [truth])
    assert found.number == 7
    assert 100 in found.rows.tolist()
    assert found.similarities[0] == 1.0
    assert found.row == -1


@pytest.mark.parametrize("by", ["mass", "formula"])
def test_similarity_is_to_the_form_that_the_store_has(store, rows, truths, by: str) -> None:
    empty = bytes(len(rows[0]["fingerprint"]))
    drawn_otherwise = [truth._replace(fingerprint=empty) for truth in truths]
    expected = list(mined_here(store, truths, by=by))
    for found, same in zip(mined_here(store, drawn_otherwise, by=by), expected, strict=True):
        own = rows[found.row]
        assert (own["key"], own["mass"]) == (truths[found.number].key, truths[found.number].mass)
        assert found.row == same.row
        assert found.rows.tolist() == same.rows.tolist()
        assert found.similarities.tolist() == same.similarities.tolist()


def test_a_labelled_form_of_a_molecule_is_not_itself(store, rows) -> None:
    places = [n for n, row in enumerate(rows) if row["smiles"] in METHANES]
    assert len(places) == len(METHANES)
    wide = {"ppm": 2e5}
    for place in places:
        [found] = mined_here(store, [truth_of(rows[place], 0)], **wide)
        assert found.row == place


def test_labelled_molecules_of_an_equal_formula_are_no_negatives(tmp_path) -> None:
    """Their mass is another, though a search by formula lists them."""
    file = tmp_path / "m.smi"
    file.write_text("CCO\nCOC\n[2H]C([2H])([2H])OC\n")
    store = build_database(file_sources([file]), tmp_path / "db", engine=LocalEngine(1))
    rows = all_rows(store)
    [ethanol] = [row for row in rows if row["smiles"] == "CCO"]
    assert len(store.rows_by_formula("C2H6O")) == 3
    [found] = mined_here(store, [truth_of(ethanol, 0)], by="formula")
    assert [rows[row]["smiles"] for row in found.rows] == ["COC"]


def test_a_mass_where_nothing_is_has_none(store, rows) -> None:
    truth = Truth(0, 5000.0, "C1", "X" * 14, rows[0]["fingerprint"])
    [found] = mined_here(store, [truth])
    assert (len(found.rows), found.total) == (0, 0)
    assert list(mined_here(store, [])) == []


def test_a_molecule_without_a_key_is_not_its_own_negative(store, rows) -> None:
    [place] = [n for n, row in enumerate(rows) if row["key"].startswith("SMILES=")]
    [found] = mined_here(store, [truth_of(rows[place], 0)])
    assert place not in found.rows.tolist()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"by": "colour"}, "negatives by 'colour' is unknown, expected one of: mass, formula"),
        ({"kind": "soft"}, "kind of negatives 'soft' is unknown, expected one of: hardest, random"),
        ({"keep": 0}, "keep is 0, expected at least 1"),
    ],
)
def test_bad_options_are_one_line(store, how: dict, message: str) -> None:
    with pytest.raises(DatabaseError, match=message):
        list(mined_here(store, [], **how))


def test_a_store_that_was_replaced_is_not_mined_by_its_old_rows(make_store, tmp_path) -> None:
    old = make_store([("CCO",), ("COC",), (NAMELESS,)])
    ethanol = truth_of(next(row for row in all_rows(old) if row["smiles"] == "CCO"), 0)
    [before] = mined_here(old, [ethanol])
    assert before.total == 1
    more = write_table(tmp_path / "more.tsv", [("C",), ("[13CH4]",), ("[2H]COC",)])
    new = add_molecules(old, file_sources([more]), engine=LocalEngine(1))
    [after] = mined_here(new, [ethanol])
    assert new.rows(after.rows)["smiles"].to_pylist() == ["COC"]
    with pytest.raises(DatabaseError, match="was replaced since it was opened; open it again"):
        list(mined_here(old, [ethanol]))


def test_progress_ends_at_the_total(store, truths) -> None:
    seen: list[tuple[str, int, int | None]] = []
    list(mined_here(store, truths, progress=lambda *each: seen.append(each)))
    assert seen[-1] == ("mining", len(truths), len(truths))
