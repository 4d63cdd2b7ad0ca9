"""Queries, molecule tables and training sets."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.chem import fingerprints
from mzseek.chem.molecules import DESCRIPTORS, descriptors
from mzseek.core.errors import EvidenceError, MoleculeError
from mzseek.datasets.prepared import Prepared
from mzseek.evidence import queries as module
from mzseek.evidence.prepared_queries import (
    labelled_queries,
    queries_from,
    queries_with_truth,
    sample_molecules,
    sample_spectra,
    spectra_from,
    training_set_from,
)
from mzseek.evidence.queries import Molecules, Queries, ReferenceSpectra, TrainingSet
from mzseek.fragments import fragment_table
from mzseek.io import stable_hash
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.spectra import Spectrum

from .conftest import shuffled

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "[Na+].[Cl-]", "CCCCC"]


def spectrum(adduct: str | None = "[M+H]+", charge: int | None = None, **more: str) -> Spectrum:
    return Spectrum(np.array([50.0]), np.array([1.0]), 100.0, adduct, charge, "x", more)


@pytest.fixture
def three() -> Queries:
    return Queries.of([spectrum()] * 3, [["CCO", "COC"], ["CCC"], ["COC", "CCN", "CCO"]])


def named(queries: Queries, spectra: list[int]) -> list[str]:
    rows = queries.rows(np.array(spectra, np.int64))
    return [queries.molecules.smiles[row] for row in queries.candidates[rows]]


def test_rows_are_the_candidates_of_each_spectrum(three: Queries) -> None:
    assert named(three, [0, 1, 2]) == ["CCO", "COC", "CCC", "COC", "CCN", "CCO"]
    assert three.counts.tolist() == [2, 1, 3]
    assert named(three.only(np.array([2, 0])), [0, 1]) == ["COC", "CCN", "CCO", "CCO", "COC"]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 100])
def test_parts_are_the_whole(three: Queries, rows: int) -> None:
    parts = list(three.in_parts(rows))
    assert [c for _, part in parts for c in part.candidates] == three.candidates.tolist()
    for inside, part in parts:
        assert three.candidates[inside].tolist() == part.candidates.tolist()
    nothing = three.only(np.empty(0, np.int64))
    assert list(nothing.in_parts()) == []
    assert nothing.ragged.total == 0


def test_ion_modes() -> None:
    spectra = [
        spectrum("[M+Na]+"), spectrum("[M-H]-"), spectrum(None, -1), spectrum(None),
        spectrum(None, ionmode="negative"),
    ]  # fmt: skip
    assert Queries.of(spectra, [["C"]] * 5).modes.tolist() == [1, -1, -1, 0, -1]


def test_arrays_that_do_not_fit_are_refused(three: Queries) -> None:
    with pytest.raises(EvidenceError, match="2 lists for 3 spectra"):
        replace(three, list_of=three.list_of[:2])
    with pytest.raises(EvidenceError, match="rows of a table of 4"):
        replace(three, members=three.members + 9)


def test_some_queries_keep_their_labels(queries: Queries) -> None:
    wanted = np.array([5, 2, 7])
    some = queries.only(wanted)
    assert np.array_equal(some.inchikey14, queries.inchikey14[wanted])
    assert np.array_equal(some.candidates, queries.candidates[queries.rows(wanted)])
    assert np.array_equal(some.labels, queries.labels[queries.rows(wanted)])
    assert some.ragged.sum(some.labels, int).tolist() == [1, 1, 1]
    # Two spectra of one molecule, one of another.
    assert queries.only(np.array([0, 1, 2])).molecule_weights().tolist() == [0.5, 0.5, 1.0]


def test_any_order_becomes_the_canonical_one(queries: Queries) -> None:
    first, other = queries.in_canonical_order(), shuffled(queries)[0].in_canonical_order()
    assert [s.identifier for s in first.spectra] == [s.identifier for s in other.spectra]
    for name in ("inchikey14", "labels", "candidates"):
        assert np.array_equal(getattr(first, name), getattr(other, name))
    keys = {s.identifier: key for s, key in zip(queries.spectra, queries.inchikey14, strict=True)}
    assert [keys[s.identifier] for s in first.spectra] == first.inchikey14.tolist()
    assert len(first) == len(queries)
    assert sorted(named(first, range(len(first)))) == sorted(named(queries, range(len(queries))))
    truths, before = (
        set(np.array(each.molecules.smiles)[each.candidates][each.labels])
        for each in (first, queries)
    )
    assert truths == before


def test_a_training_set_without_molecules_has_no_trace_of_them(training_set: TrainingSet) -> None:
    gone = training_set.inchikey14[:5]
    left = training_set.without(gone)
    assert not np.isin(left.molecules_used, gone).any()
    assert len(left.molecules_used) == len(training_set.molecules_used) - 5
    assert len(left.spectra) == len(training_set.spectra) - 10
    assert len(left.queries) == len(training_set.queries) - 10
    pairs = zip(training_set.spectra, training_set.molecule, strict=True)
    removed = {each.identifier for each, molecule in pairs if molecule < 5}
    assert not {each.identifier for each in left.spectra} & removed


def test_reference_spectra_have_a_canonical_order() -> None:
    """Molecules of one block are one, equal spectra are one, and no order shows."""
    values, weights = np.array([50.0, 60.0, 50.0, 60.0, 70.0]), np.array([1.0, 0.5, 1.0, 0.5, 1.0])
    ions = PrecursorIons(np.array([100.0, 100.0, 90.0]), np.array([1, 1, 1], np.int8))
    peaks = PeakLists(np.array([0, 2, 4, 5]), values, weights)
    smiles, keys = ["OCC", "CCO", "CC", "C"], np.array([b"B", b"B", b"A", b"Z"], "S14")
    given = ReferenceSpectra(peaks, ions, np.array([0, 1, 2]), smiles, keys)
    found = given.in_canonical_order()
    assert (found.inchikey14.tolist(), list(found.smiles)) == ([b"A", b"B"], ["CC", "CCO"])
    assert found.molecule.tolist() == [0, 1]
    assert found.peaks.values.tolist() == [70.0, 50.0, 60.0]
    assert found.peaks.pointers.tolist() == [0, 1, 3]
    assert found.ions.precursors.tolist() == [90.0, 100.0]
    again = given.only(np.array([2, 1, 0])).in_canonical_order()
    assert again.contents() == found.contents()
    assert len(given.only(np.zeros(0, np.int64)).in_canonical_order()) == 0


@pytest.mark.parametrize("batch", [2, 100])
def test_computing_at_once_is_computing_apart(batch: int, monkeypatch) -> None:
    monkeypatch.setattr(module, "_BATCH", batch)
    table = Molecules(SMILES, jobs=1)
    table.compute(["morgan2", "maccs", "rdkit"], fragments=True)
    rows = np.array([4, 0, 0])
    for kind in ("morgan2", "maccs", "rdkit", "morgan4"):  # the last was not computed beforehand
        expected = fingerprints([SMILES[row] for row in rows], kind).toarray()
        assert np.array_equal(table.fingerprints(rows, kind).toarray(), expected)
    expected_fragments = fragment_table(SMILES, jobs=1)
    for name in ("starts", "masses", "codes"):
        assert np.array_equal(getattr(table.fragments, name), getattr(expected_fragments, name))


def test_nothing_is_computed_twice(monkeypatch) -> None:
    parsed, described = [], []
    parse = module.parse_molecule
    monkeypatch.setattr(module, "parse_molecule", lambda text: parsed.append(text) or parse(text))
    monkeypatch.setattr(
        module, "descriptors", lambda texts: described.extend(texts) or descriptors(texts)
    )
    table = Molecules(SMILES, jobs=1)
    table.compute(["morgan4", "rdkit", "rdkit"], fragments=True)
    table.compute(["rdkit"], fragments=True)
    assert table.fragments is table.fragments
    table.words("morgan4")
    assert parsed == SMILES
    for rows in ([1, 0, 1], [2, 1]):
        assert np.array_equal(table.descriptors(np.array(rows)), descriptors(SMILES)[rows])
    assert described == ["c1ccccc1", "CCO", "CC(=O)O"]
    assert table.descriptors(np.empty(0, np.int64)).shape == (0, len(DESCRIPTORS))


def test_stored_fingerprints_are_looked_up_once() -> None:
    stored, calls = fingerprints(SMILES, "maccs"), []
    table = Molecules(SMILES, "maccs", lambda rows: calls.append(rows) or stored[rows], 1)
    table.compute(["maccs"])
    rows = np.array([2, 1])
    assert np.array_equal(table.fingerprints(rows).toarray(), stored[rows].toarray())
    assert table.words("maccs").shape == (5, 3)
    assert len(calls) == 1


def test_empty_tables_and_unreadable_molecules() -> None:
    table = Molecules([], jobs=1)
    table.compute(["rdkit"], fragments=True)
    assert table.words("rdkit").shape == (0, 64)
    assert len(table.fragments) == 0
    assert table.fingerprints(np.empty(0, np.int64)).shape == (0, 4096)
    with pytest.raises(MoleculeError, match="SMILES 'nothing'"):
        Molecules(["CCO", "nothing"], jobs=1).compute(["rdkit"])


def test_spectra_are_as_they_were_written(small: Prepared, small_set) -> None:
    for found in spectra_from(small, np.arange(10)):
        mz, heights = small_set.peaks[found.identifier]
        relative = np.array(heights) / max(heights)
        assert np.allclose(found.mz, mz)
        assert np.allclose(found.intensities / max(found.intensities), relative, atol=1e-6)
        assert (found.adduct, found.charge) == ("[M+H]+", 1)


def test_lists_are_those_of_the_folder(small: Prepared, small_set) -> None:
    spectra = queries_with_truth(small, small.in_fold("train"), "mass", "fingerprint")
    found, identity = queries_from(small, spectra, "mass")
    assert (found.ragged.sum(identity > 0, int) >= 1).all()
    for number, own in enumerate(spectra):
        truth = small_set.smiles[small.identifiers[int(own)]]
        assert len(set(named(found, [number]))) == len(small_set.lists["mass"][truth])
    stored = {small.smiles[m]: m for m in range(small.base_molecules)}
    wanted = [stored[found.molecules.smiles[c]] for c in found.candidates[:5]]
    rows = found.molecules.fingerprints(found.candidates[:5])
    assert np.array_equal(rows.toarray(), small.fingerprint_rows(np.array(wanted)).toarray())


def test_fewer_candidates_keep_the_truth_and_no_order_shows(small: Prepared) -> None:
    spectra = queries_with_truth(small, small.in_fold("train"), "mass", "fingerprint")
    few, identity = queries_from(small, spectra, "mass", max_candidates=4)
    assert few.counts.max() == 4
    assert few.ragged.any(identity > 0).all()
    whole, _ = queries_from(small, spectra, "mass")
    alone, _ = queries_from(small, spectra[::-1][:3], "mass", max_candidates=4)
    for number in range(3):
        own, other = set(named(alone, [number])), len(spectra) - 1 - number
        assert own == set(named(few, [other]))
        assert own <= set(named(whole, [other]))


def test_spectra_without_their_truth_are_left_out(small: Prepared) -> None:
    spectra = small.in_fold("test")
    by_bits = queries_with_truth(small, spectra, "mass", "fingerprint")
    by_key = queries_with_truth(small, spectra, "mass", "inchikey")
    assert len(by_bits) < len(by_key) < len(spectra)  # a tautomer alone; a molecule without a list
    for identity, usable in (("fingerprint", by_bits), ("inchikey", by_key)):
        found = labelled_queries(small, spectra, "mass", identity=identity)
        assert found.ragged.any(found.labels).all()
        assert len(found) == len(found.inchikey14) == len(usable)


def test_samples_do_not_depend_on_the_order(small: Prepared) -> None:
    spectra = small.in_fold("train")
    one = sample_spectra(small, spectra, 1)
    assert len(one) == len(np.unique(small.molecule[spectra])) == len(spectra) // 2
    assert np.array_equal(sample_spectra(small, spectra[::-1].copy(), 1), one)
    assert np.array_equal(sample_spectra(small, spectra, 2), spectra)
    some = sample_molecules(small, spectra, 3)
    own = np.unique(small.molecule[some])
    assert len(own) == 3
    assert np.array_equal(some, spectra[np.isin(small.molecule[spectra], own)])
    assert set(sample_molecules(small, spectra[::-1], 3).tolist()) == set(some.tolist())
    assert np.array_equal(sample_molecules(small, spectra, 10_000), spectra)


def test_a_training_set_has_the_spectra_of_a_fold(small: Prepared) -> None:
    spectra = small.in_fold("train")
    found = training_set_from(small, spectra, labelled_queries(small, spectra, "mass"))
    molecule = small.molecule[spectra]
    assert len(found.spectra) == len(spectra)
    assert [found.molecules.smiles[m] for m in found.molecule] == [
        small.smiles[m] for m in molecule
    ]
    assert np.array_equal(found.inchikey14[found.molecule], small.inchikey14[molecule])


def test_hashes_are_uniform() -> None:
    hashes = np.array([stable_hash(b"x", str(n).encode()) for n in range(2_000)])
    assert abs((hashes < 2**55).mean() - 0.5) < 0.05
