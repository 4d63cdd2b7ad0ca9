from pathlib import Path

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.chem.molecules import descriptors
from mzseek.database import Database
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.decoys import pool_of
from mzseek.evidence.prior import prior_features
from mzseek.parallel import LocalEngine

from .conftest import MISSING

ALONE = LocalEngine(1)


@pytest.mark.parametrize(("by", "ppm"), [("mass", 10.0), ("mass", 5e4), ("formula", 10.0)])
def test_pools_hold_the_truth_and_all_that_is_equal_in_mass_or_formula(
    small: Prepared, store: Database, by: str, ppm: float
) -> None:
    pool = pool_of(small, store, by=by, most=1000, ppm=ppm, engine=ALONE)
    columns = ["smiles", "key", "mass", "formula"]
    table = store.rows(np.arange(len(store)), columns).to_pylist()
    keys = fingerprints([each["smiles"] for each in table], "maccs").toarray()
    assert pool.numbers.tolist() == np.unique(small.molecule).tolist()
    starts = pool.lists.ragged.starts
    for n, form in enumerate(pool.forms):
        members = pool.lists.members[starts[n] : starts[n] + pool.lists.counts[n]]
        truth, rivals = int(members[0]), members[1:]
        assert pool.lists.labels[starts[n] : starts[n] + len(members)].tolist() == [
            place == 0 for place in range(len(members))
        ]
        assert (pool.own[n] >= 0) == (form.described.smiles not in MISSING)
        if pool.own[n] >= 0:
            assert pool.rows[truth] == pool.own[n]
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
    pool = pool_of(small, store, by="mass", most=1000, engine=ALONE)
    smiles = store.rows(pool.rows, ["smiles"])["smiles"].to_pylist()
    smiles += [
        form.described.smiles
        for form, own in zip(pool.forms, pool.own.tolist(), strict=True)
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
        pool = pool_of(small, store, by="mass", most=4, ppm=5e4, seed=seed, engine=ALONE)
        assert pool.lists.counts.max() == 5
        return pool.rows[pool.lists.members[~pool.lists.labels]]

    assert drawn(0).tolist() == drawn(0).tolist() != drawn(1).tolist()
