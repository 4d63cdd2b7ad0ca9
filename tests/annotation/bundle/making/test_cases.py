"""Validation lists with and without their molecule."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.bundle.making.cases import (
    BUNDLED,
    SIZES,
    WHOLE,
    ScoredQuery,
    cases_of,
    modes_of,
    only,
    scored_queries,
)
from mzseek.annotation.bundle.making.references import references_from
from mzseek.annotation.bundle.molecules import BoxedMolecules, molecule_table
from mzseek.annotation.in_database import NAMES, ListEvidence
from mzseek.decision import Calibration
from mzseek.evidence.fitted import Fitted
from mzseek.prepared.reader import Prepared
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run

NONE = np.zeros(0, np.int64)


def some_lists() -> ListScores:
    return ListScores(
        queries=np.array([0, 1, 2]),
        molecule=np.array([5, 5, 6], np.int32),
        counts=np.array([3, 3, 1]),
        candidates=np.array([5, 7, 8, 5, 7, 8, 6], np.int32),
        identity=np.array([1, 0, 0, 1, 0, 0, 1], np.uint8),
        scores=np.array([2.0, 1.0, 0.0, 4.0, 0.0, 0.0, 1.0], np.float32),
    )


def a_query(candidates: int) -> ScoredQuery:
    """The true molecule has the highest score, and explains most."""
    scores = np.arange(candidates, dtype=float)
    is_true = scores == candidates - 1
    evidence = ListEvidence(
        scores,
        scores / candidates,
        np.zeros((candidates, 2)),
        np.arange(32.0),
        np.zeros(32),
        0.3,
        9.0,
        0,
    )
    keys = np.array([f"K{at}" for at in range(candidates)])
    others = np.array([f"B{at}" for at in range(32)])
    every = np.ones(candidates, np.bool_)
    bundled = np.arange(candidates) % 2 == 0
    return ScoredQuery(4, 1, 1, is_true, every, bundled, keys, others, np.arange(32) < 3, evidence)


def test_the_background_is_what_annotate_would_take() -> None:
    query = a_query(40)
    lone = query.thinned(np.arange(1), NONE)
    assert lone.background.tolist() == list(range(31))
    assert lone.same_mass == 3
    for length in (30, 40):
        part = query.thinned(np.arange(length), NONE)
        assert part.background.tolist() == [0, 1, 2]  # of the same mass
    listed = replace(query, background_keys=np.array(["K0", *query.background_keys[1:]]))
    assert listed.thinned(np.arange(1), NONE).background.tolist() == list(range(1, 32))
    assert listed.thinned(np.arange(1, 31), NONE).background.tolist() == [0, 1, 2]


def test_lists_are_thinned_to_each_length_with_and_without_their_molecule() -> None:
    cases = cases_of([a_query(31)], Calibration(1.0))
    sizes = [*(size for size in SIZES if size <= 30), WHOLE, BUNDLED]
    assert cases.size.tolist() == [size for size in sizes for _ in (0, 1)]
    assert cases.present.tolist() == [True, False] * len(sizes)
    assert cases.is_right.tolist() == cases.present.tolist()
    length = cases.features[:, NAMES.index("log candidates")]
    assert length[::2].tolist() == length[1::2].tolist()  # which tells nothing
    bundled = replace(a_query(31), background_keys=np.array([f"K{at}" for at in range(32)]))
    same = cases_of([bundled], Calibration(1.0)).features[:, NAMES.index("log same mass")]
    assert same[::2].tolist() == same[1::2].tolist()
    assert (cases.margin[::2] > cases.margin[1::2]).all()
    assert cases.explained[0] == pytest.approx(30 / 31)


def test_a_list_of_its_molecule_alone_gives_no_case() -> None:
    assert len(cases_of([a_query(1)], Calibration(1.0)).present) == 0


def test_queries_are_scored_with_a_background_that_lacks_their_molecule(
    fitted_run: Run, small: Prepared, bundle
) -> None:
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    rows = [
        {"key": small.blocks[at].decode(), "smiles": small.smiles[at], "formula": "",
         "mass": float(small.masses[at]), "sources": [], "identifiers": [], "names": []}
        for at in range(small.own_molecules)
    ]  # fmt: skip
    molecules = BoxedMolecules(molecule_table(rows))
    queries = scored_queries(
        small, "val", "mass", Fitted.open(fitted_run), bundle.confidence, library, molecules
    )
    assert {query.molecule for query in queries} <= set(small.molecule[small.in_fold("val")])
    for query in queries:
        assert query.is_true.sum() == 1
        assert len(query.evidence.scores) == len(query.is_true)
        assert 0 < len(query.evidence.background) <= 64
        assert len(query.background_keys) == len(query.evidence.background)
        assert query.keys[query.is_true][0] not in query.background_keys
        assert 0 <= query.evidence.nearest <= 1
        assert np.isfinite(query.evidence.features(Calibration(1.0))).all()


def test_only_some_lists() -> None:
    kept = only(some_lists(), np.array([2, 0]))
    assert kept.queries.tolist() == [2, 0]
    assert kept.scores.tolist() == [1.0, 2.0, 1.0, 0.0]


def test_modes_follow_adducts(small: Prepared) -> None:
    assert set(modes_of(small, np.arange(5)).tolist()) == {1}
