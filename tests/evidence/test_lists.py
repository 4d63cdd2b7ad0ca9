"""Spectra with candidates, from anywhere."""

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError
from mzseek.evidence.queries import Queries, mode_of
from mzseek.spectra import Spectrum


def spectrum(adduct: str | None = "[M+H]+", charge: int | None = None, **more: str) -> Spectrum:
    return Spectrum(np.array([50.0]), np.array([1.0]), 100.0, adduct, charge, "x", more)


def three_lists() -> Queries:
    return Queries.of([spectrum()] * 3, [["CCO", "COC"], ["CCC"], ["COC", "CCN", "CCO"]])


def test_rows_are_the_candidates_of_each_spectrum_in_turn() -> None:
    lists = three_lists()
    named = [lists.molecules.smiles[each] for each in lists.candidates]
    assert named == ["CCO", "COC", "CCC", "COC", "CCN", "CCO"]
    assert lists.counts.tolist() == [2, 1, 3]
    some = lists.only(np.array([2, 0]))
    named = [lists.molecules.smiles[each] for each in some.candidates]
    assert named == ["COC", "CCN", "CCO", "CCO", "COC"]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 100])
def test_parts_are_the_whole(rows: int) -> None:
    lists = three_lists()
    parts = list(lists.in_parts(rows))
    assert [c for _, part in parts for c in part.candidates] == lists.candidates.tolist()
    for here, part in parts:
        assert lists.candidates[here].tolist() == part.candidates.tolist()


def test_nothing_has_no_parts() -> None:
    lists = three_lists().only(np.empty(0, np.int64))
    assert list(lists.in_parts()) == []
    assert lists.ragged.total == 0


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (spectrum("[M+Na]+"), 1), (spectrum("[M-H]-"), -1), (spectrum(None, -1), -1),
        (spectrum(None), 0), (spectrum(None, ionmode="negative"), -1),
    ],
)  # fmt: skip
def test_modes(given: Spectrum, mode: int) -> None:
    assert mode_of(given) == mode


def test_what_does_not_fit_is_refused() -> None:
    lists = three_lists()
    with pytest.raises(EvidenceError, match="2 lists for 3 spectra"):
        Queries(lists.spectra, lists.list_of[:2], lists.pointers, lists.members, lists.molecules)
    with pytest.raises(EvidenceError, match="places in a table of 4"):
        Queries(lists.spectra, lists.list_of, lists.pointers, lists.members + 9, lists.molecules)
