"""From a prepared folder to lists, questions and lessons."""

import numpy as np
import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.evidence.queries import (
    labelled_queries,
    queries_from,
    queries_with_truth,
    sample_molecules,
    sample_spectra,
    spectra_from,
    stable_hash,
    training_set_from,
)


def test_spectra_are_as_they_were_written(small: Prepared, small_set) -> None:
    for spectrum in spectra_from(small, np.arange(10)):
        mz, heights = small_set.peaks[spectrum.identifier]
        assert np.allclose(spectrum.mz, mz)
        assert np.allclose(spectrum.intensities / max(spectrum.intensities),
                           np.array(heights) / max(heights), atol=1e-6)  # fmt: skip
        assert (spectrum.adduct, spectrum.charge) == ("[M+H]+", 1)


def test_lists_are_those_of_the_folder(small: Prepared, small_set) -> None:
    queries = queries_with_truth(small, small.in_fold("train"), "mass", "fingerprint")
    lists, identity = queries_from(small, queries, "mass")
    assert (lists.ragged.sum(identity > 0, int) >= 1).all()
    for place, query in enumerate(queries):
        truth = small_set.smiles[small.identifiers[int(query)]]
        start, count = lists.ragged.starts[place], lists.counts[place]
        named = {lists.molecules.smiles[c] for c in lists.candidates[start : start + count]}
        assert len(named) == len(small_set.lists["mass"][truth])
    rows = lists.molecules.fingerprints(lists.candidates[:5])
    stored = {small.smiles[m]: m for m in range(small.base_molecules)}
    wanted = [stored[lists.molecules.smiles[c]] for c in lists.candidates[:5]]
    assert np.array_equal(rows.toarray(), small.fingerprint_rows(np.array(wanted)).toarray())


def test_fewer_candidates_keep_the_truth_and_no_order_shows(small: Prepared) -> None:
    queries = queries_with_truth(small, small.in_fold("train"), "mass", "fingerprint")
    lists, identity = queries_from(small, queries, "mass", most=4)
    assert lists.counts.max() == 4
    assert lists.ragged.any(identity > 0).all()
    whole, _ = queries_from(small, queries, "mass")
    alone, _ = queries_from(small, queries[::-1][:3], "mass", most=4)
    for place in range(3):
        own = {alone.molecules.smiles[c] for c in _of(alone, place)}
        other = len(queries) - 1 - place
        assert own == {lists.molecules.smiles[c] for c in _of(lists, other)}
        assert own <= {whole.molecules.smiles[c] for c in _of(whole, other)}


def _of(lists, place: int) -> np.ndarray:
    start = lists.ragged.starts[place]
    return lists.candidates[start : start + lists.counts[place]]


def test_spectra_without_their_truth_are_left_out(small: Prepared) -> None:
    queries = small.in_fold("test")
    by_bits = queries_with_truth(small, queries, "mass", "fingerprint")
    by_key = queries_with_truth(small, queries, "mass", "inchikey")
    assert len(by_bits) < len(by_key) < len(queries)  # a tautomer alone; a molecule without a list


def test_few_of_each_molecule(small: Prepared) -> None:
    queries = small.in_fold("train")
    one = sample_spectra(small, queries, 1)
    assert len(one) == len(np.unique(small.molecule[queries])) == len(queries) // 2
    assert np.array_equal(sample_spectra(small, queries[::-1].copy(), 1), one)
    assert np.array_equal(sample_spectra(small, queries, 2), queries)


@pytest.mark.parametrize("identity", ["fingerprint", "inchikey"])
def test_questions_have_answers(small: Prepared, identity: str) -> None:
    asked = labelled_queries(small, small.in_fold("test"), "mass", identity=identity)
    assert asked.ragged.any(asked.labels).all()
    assert len(asked.inchikey14) == len(asked.spectra)


def test_lessons_are_the_spectra_of_a_fold(small: Prepared) -> None:
    queries = small.in_fold("train")
    found = training_set_from(small, queries, labelled_queries(small, queries, "mass"))
    assert len(found.spectra) == len(queries)
    own = [small.smiles[int(m)] for m in small.molecule[queries]]
    assert [found.molecules.smiles[m] for m in found.molecule] == own
    assert np.array_equal(
        found.inchikey14[found.molecule], small.inchikey14[small.molecule[queries]]
    )


def test_chance_is_even() -> None:
    lots = np.array([stable_hash(b"x", str(n).encode()) for n in range(2_000)])
    assert abs((lots < 2**55).mean() - 0.5) < 0.05


def test_some_molecules_come_with_all_their_spectra(small: Prepared) -> None:
    queries = small.in_fold("train")
    some = sample_molecules(small, queries, 3)
    own = np.unique(small.molecule[some])
    assert len(own) == 3
    assert np.array_equal(some, queries[np.isin(small.molecule[queries], own)])
    again = sample_molecules(small, queries[::-1], 3)
    assert set(again.tolist()) == set(some.tolist())
    assert np.array_equal(sample_molecules(small, queries, 10_000), queries)
