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

from .conftest import METHANES, NAMELESS, all_rows, vector, write_table

mined_here = partial(mine, engine=LocalEngine(1))


def truth_of(row: dict, number: int) -> Truth:
    return Truth(number, row["mass"], row["formula"], row["key"], row["fingerprint"])


@pytest.fixture(scope="module")
def rows(store: Database) -> list[dict]:
    return all_rows(store)


@pytest.fixture(scope="module")
def truths(rows: list[dict]) -> list[Truth]:
    """Every third molecule, not in the order of masses, and one without a key."""
    wanted = np.random.default_rng(0).permutation(len(rows))[::3].tolist()
    nameless = [n for n, row in enumerate(rows) if row["key"].startswith("SMILES=")]
    wanted = list(dict.fromkeys([*wanted, *nameless]))
    return [truth_of(rows[row], number) for number, row in enumerate(wanted)]


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
    seen: list[tuple[str, int, int | None]] = []
    how = {"by": by, "keep": keep, "ppm": ppm, "progress": lambda *step: seen.append(step)}
    found = list(mined_here(store, truths, **how))
    assert seen[-1] == ("mining", len(truths), len(truths))
    assert sorted(each.number for each in found) == list(range(len(truths)))
    masses = [truths[each.number].mass for each in found]
    assert masses == sorted(masses)
    for each in found:
        expected, values = scanned(rows, truths[each.number], by, keep, ppm)
        assert each.rows.tolist() == expected
        assert each.similarities.tolist() == values
        assert each.total >= len(expected)
        assert each.total == len(scanned(rows, truths[each.number], by, len(rows), ppm)[0])


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
