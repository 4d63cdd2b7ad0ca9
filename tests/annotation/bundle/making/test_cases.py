"""Lists with and without their truth."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.annotation.absence import NAMES, RAW
from mzseek.annotation.bundle.making.cases import (
    Signs,
    cases_of,
    modes_of,
    only,
    signs_of,
)
from mzseek.annotation.bundle.making.confident import usable_lists
from mzseek.annotation.bundle.making.references import references_from
from mzseek.decision import Calibration, Pooling
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.fitting.swapped import groups_from
from mzseek.prepared.reader import Prepared
from mzseek.runs.predictions import ListScores
from mzseek.runs.run import Run


def some_lists() -> ListScores:
    """A molecule with two spectra, and one with one whose list is itself alone."""
    return ListScores(
        queries=np.array([0, 1, 2]),
        molecule=np.array([5, 5, 6], np.int32),
        counts=np.array([3, 3, 1]),
        candidates=np.array([5, 7, 8, 5, 7, 8, 6], np.int32),
        identity=np.array([1, 0, 0, 1, 0, 0, 1], np.uint8),
        scores=np.array([2.0, 1.0, 0.0, 4.0, 0.0, 0.0, 1.0], np.float32),
    )


def test_every_list_is_there_with_and_without_its_truth() -> None:
    raw = np.arange(7.0 * len(RAW)).reshape(7, -1)
    signs = Signs(some_lists(), raw, np.array([0.1, 0.7, 0.2]), np.ones(3, np.int8))
    found = cases_of(signs, np.ones(3, np.bool_), Calibration(1.0), Pooling(0.5))
    assert found.present.tolist() == [True, False] * 3  # two spectra alone, and together
    assert found.molecule.tolist() == [5] * 6
    at = {name: place for place, name in enumerate(NAMES)}
    assert (
        np.exp(found.features[:, at["log candidates"]]).round().tolist() == [2, 2] * 3
    )  # another one is left out
    assert np.exp(found.features[:, at["log spectra"]]).round().tolist() == [1] * 4 + [2] * 2
    assert found.features[:, at["nearest"]].tolist() == [0.1] * 2 + [0.7] * 4
    worth = found.features[:, at["worth"]]
    assert worth[:2].tolist() == [raw[0, 1], raw[1, 1]]  # the first, then the next best
    assert worth[4] == raw[[0, 3], 1].mean()
    p = 1 / (1 + np.exp(-found.features[1, at["log-odds"]]))
    assert p == pytest.approx(np.e / (np.e + 1))  # of scores 1 and 0


def test_only_some_lists() -> None:
    kept = only(some_lists(), np.array([2, 0]))
    assert kept.queries.tolist() == [2, 0]
    assert kept.scores.tolist() == [1.0, 2.0, 1.0, 0.0]


def test_signs_are_of_molecules_that_no_channel_has_seen(fitted_run: Run, small: Prepared) -> None:
    lists = usable_lists(fitted_run, small, "val", "mass")
    known = np.unique(small.molecule[small.fold >= 0])
    groups = groups_from(small, known, 5)
    fitted = Fitted.open(fitted_run)
    library = references_from(small, small.in_fold("train"), {}).library(Path("here"))
    signs = signs_of(lists, small, fitted, library, groups, "mass", jobs=1)
    blocks = small.blocks[signs.lists.molecule]
    assert len(blocks)
    for learned in fitted.learned:
        assert not groups.seen(learned, blocks).any()
    assert signs.raw.shape == (signs.lists.counts.sum(), len(RAW))
    assert signs.raw[:, list(RAW).index("lent")].any()
    assert ((signs.nearest >= 0) & (signs.nearest <= 1)).all()
    assert signs.nearest.any()
    assert signs.modes.tolist() == [1] * len(blocks)
    assert modes_of(small, lists.queries).tolist() == [1] * len(lists.queries)
