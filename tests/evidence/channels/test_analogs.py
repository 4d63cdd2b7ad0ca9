"""The analog channel."""

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence.analogs import AnalogOptions, Analogs
from mzseek.evidence.queries import (
    ExcludedAnalogs,
    Molecules,
    Queries,
    ReferenceSpectra,
    TrainingSet,
)
from mzseek.library import Library
from mzseek.library.library import MOLECULE_SCHEMA, RECORD_SCHEMA
from mzseek.library.similarity import PrecursorIons, peak_lists
from mzseek.similarity import tanimoto
from mzseek.spectra import bin_spectra

from ..conftest import lessons_of, questions_of


def test_order_changes_nothing(in_two_orders) -> None:
    _, said, again = in_two_orders(Analogs())
    assert np.allclose(again, said, rtol=1e-3, atol=2e-4)


def cosines(lessons: TrainingSet, spectrum) -> np.ndarray:
    """Mean cosine of peaks and losses in bins of 0.01, by dense arithmetic."""
    sides = (vectors([*lessons.spectra, spectrum], losses) for losses in (False, True))
    return sum(rows[:-1] @ rows[-1] for rows in sides) / 2


def vectors(spectra, losses: bool) -> np.ndarray:
    """Peaks or losses in bins of 0.01, square roots of heights, of length one."""
    moved = [
        type(s)(
            np.sort(s.precursor_mz - s.mz) if losses else s.mz,
            s.intensities[np.argsort(s.precursor_mz - s.mz)] if losses else s.intensities,
            s.precursor_mz, s.adduct, s.charge, s.identifier,
        )
        for s in spectra
    ]  # fmt: skip
    low = 0.5 if losses else 0.0
    found = bin_spectra(moved, width=0.01, low=low, high=2000.0, normalise=False)
    dense = np.sqrt(found.toarray().astype(float))
    size = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(size > 0, size, 1)


def regressed(lessons: TrainingSet, spectrum) -> np.ndarray:
    """Weights of the known molecules, by dense arithmetic on fourth roots of heights."""
    molecules = np.unique(lessons.molecule)
    known, asked = [], []
    for losses in (False, True):
        rows = np.sqrt(vectors([*lessons.spectra, spectrum], losses))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        mean = np.array([rows[:-1][lessons.molecule == m].mean(0) for m in molecules])
        known.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        asked.append(rows[-1])
    kernel = sum(side @ side.T for side in known) / 2
    near = sum(side @ one for side, one in zip(known, asked, strict=True)) / 2
    return np.linalg.solve(kernel + np.eye(len(kernel)), near)


def others(alike, known, listed, kind):
    """Known molecules among those listed lend nothing."""
    rows = fingerprints(listed, kind)
    is_listed = [
        (tanimoto(rows, fingerprints([each] * len(listed), kind)) > 0.9999).any() for each in known
    ]
    return np.where(is_listed, 0.0, alike)


def with_matches(lists: Queries, of_list: bool) -> Queries:
    """Return lists whose known candidates are no analogs of one another, if wanted."""
    if not of_list:
        return lists
    members = np.split(lists.members, lists.pointers[1:-1])
    excluded = [ExcludedAnalogs(lists.molecules, rows) for rows in members]
    return dataclasses.replace(lists, excluded_analogs=excluded)


@pytest.mark.parametrize("of_list", [False, True])
def test_features_are_those_of_a_plain_loop(
    asked: Queries, lessons: TrainingSet, of_list: bool
) -> None:
    channel = Analogs(AnalogOptions(top=5, likeness="morgan2, rdkit"))
    learned = channel.fit(lessons.without(asked.inchikey14[:2]))
    left = lessons.without(asked.inchikey14[:2])
    lists = with_matches(asked.only(np.array([0])), of_list)
    near = cosines(left, lists.spectra[0])
    best = {m: near[left.molecule == m].max() for m in np.unique(left.molecule)}
    chosen = sorted(best, key=lambda m: -best[m])[:5]
    sims = np.array([best[m] for m in chosen])
    names = [lessons.molecules.smiles[m] for m in chosen]
    said = channel.features(learned, lists)
    assert said.shape[1] == len(channel.feature_names) == 16
    weights = regressed(left, lists.spectra[0])
    known = [left.molecules.smiles[m] for m in np.unique(left.molecule)]
    listed = [lists.molecules.smiles[each] for each in lists.candidates]
    for row, values in enumerate(said):
        smiles = listed[row]
        masked = listed if of_list else [smiles]
        wanted = []
        for kind in ("morgan2", "rdkit"):
            alike = tanimoto(fingerprints([smiles] * 5, kind), fingerprints(names, kind))
            alike = others(alike, names, masked, kind)
            plain = [(sims * alike).max(), sims**2 @ alike / (sims**2).sum(),
                     (sims**3 * alike**2).max()]  # fmt: skip
            wanted += plain + [sims.max() * each for each in plain]
            all_of = fingerprints([smiles] * len(known), kind), fingerprints(known, kind)
            alike = others(tanimoto(*all_of), known, masked, kind)
            wanted += [weights @ alike, weights @ alike**2]
        assert np.allclose(values, wanted, atol=2e-3)


def test_a_spectrum_that_shares_nothing_says_nothing(asked: Queries, lessons: TrainingSet) -> None:
    from dataclasses import replace

    lists = asked.only(np.array([0, 1]))
    odd = replace(lists.spectra[0], mz=np.array([11.1234567]), intensities=np.array([1.0]))
    far = replace(odd, precursor_mz=1800.777777)
    same = Queries([far, lists.spectra[1]], lists.list_of, lists.pointers, lists.members,
                 lists.molecules)  # fmt: skip
    channel = Analogs()
    said = channel.features(channel.fit(lessons), same)
    assert (said[: lists.counts[0]] == 0).all()
    assert (said[lists.counts[0] :] > 0).any()


def test_an_unknown_fingerprint_is_refused() -> None:
    with pytest.raises(
        EvidenceError, match=r"analogs.likeness 'maps' is unknown, expected one of: .*map4"
    ):
        Analogs(AnalogOptions(likeness="morgan2,maps"))


def measured(lessons: TrainingSet) -> ReferenceSpectra:
    peaks, ions = peak_lists(lessons.spectra)
    return ReferenceSpectra(
        peaks, ions, lessons.molecule, lessons.molecules.smiles, lessons.inchikey14
    )


def test_taking_in_is_learning_from_all(asked: Queries, lessons: TrainingSet) -> None:
    channel = Analogs()
    whole = channel.fit(lessons)
    left = lessons.without(lessons.inchikey14[::2])
    part = channel.fit(left)
    made = channel.extend(part, measured(lessons))
    assert made.spectra == len(lessons.spectra) - len(left.spectra)
    assert (made.molecules, made.left_out) == (len(lessons.inchikey14[::2]), 0)
    assert np.array_equal(made.learned.inchikey14, np.unique(lessons.inchikey14))
    said = channel.features(made.learned, asked)
    assert np.allclose(said, channel.features(whole, asked), rtol=1e-3, atol=2e-4)
    again = channel.extend(whole, measured(lessons))
    assert again.states is whole
    assert (again.spectra, again.molecules) == (0, 0)


def test_there_is_room_for_so_many(lessons: TrainingSet, monkeypatch) -> None:
    part = Analogs().fit(lessons.without(lessons.inchikey14[::2]))
    known = len(part.arrays["bit_pointers.morgan2"]) - 1
    monkeypatch.setattr("mzseek.evidence.analogs._MOST", known + 3)
    made = Analogs().extend(part, measured(lessons))
    assert (made.molecules, made.left_out) == (3, len(lessons.inchikey14[::2]) - 3)
    new = np.sort(lessons.inchikey14[::2])[:3]
    assert np.array_equal(made.learned.inchikey14, np.union1d(part.blocks, new))


def test_a_known_molecule_in_another_form_is_left_out(lessons: TrainingSet) -> None:
    """Of the block of a known one, with fingerprints of none: it would lend twice."""
    learned = Analogs().fit(lessons)
    more = measured(lessons)
    odd = dataclasses.replace(more, smiles=["C" * 40, *more.smiles[1:]])
    moved = PrecursorIons(more.ions.precursors + 1, more.ions.modes)
    made = Analogs().extend(learned, dataclasses.replace(odd, ions=moved))
    assert (made.molecules, made.left_out) == (0, 1)
    assert made.spectra == int((lessons.molecule != 0).sum())


def test_molecules_of_another_table_can_be_no_analogs(asked: Queries, lessons: TrainingSet) -> None:
    channel = Analogs()
    learned = channel.fit(lessons)
    lists = asked.only(np.array([0]))
    everyone = channel.features(learned, lists)
    known = Molecules([lessons.molecules.smiles[m] for m in np.unique(lessons.molecule)], jobs=1)
    none = ExcludedAnalogs(known, np.zeros(0, np.int64))
    lists_of_none = dataclasses.replace(lists, excluded_analogs=[none] * (len(lists.pointers) - 1))
    assert np.array_equal(channel.features(learned, lists_of_none), everyone)
    every = ExcludedAnalogs(known, np.arange(len(known)))
    lists_of_every = dataclasses.replace(
        lists, excluded_analogs=[every] * (len(lists.pointers) - 1)
    )
    assert not channel.features(learned, lists_of_every).any()
    assert everyone.any()


CHAINS = ["CCCCCCCCCCCCO", "CCCCCCCCCCCCCCO", "CCCCCCCCCCCCCC(C)O"]


@pytest.mark.parametrize("of_list", [False, True])
def test_a_longer_chain_is_an_analog_and_no_match(of_list: bool) -> None:
    """No fingerprint tells the first from the second, which weighs more: it lends its likeness."""
    known = lessons_of(questions_of(CHAINS[1:], [CHAINS[1:]] * 2))
    asked = questions_of(CHAINS[:1], [[CHAINS[0], "CCCCCCOCCCCCC"]], each=1)
    lists = with_matches(asked, of_list)
    channel = Analogs()
    learned = channel.fit(known)
    said = channel.features(learned, lists)
    assert (said[0] > said[1]).all()
    assert said[0, 0] > 0.5
    # The known molecule itself is a match, which lends nothing; not even where its mass is odd.
    itself = questions_of(CHAINS[1:2], [[CHAINS[1], "CCCCCCOCCCCCC"]], each=1).lists
    for spectra in (itself.spectra, lists.spectra):
        of_known = with_matches(dataclasses.replace(itself, spectra=spectra), of_list)
        assert channel.features(learned, of_known)[0, 0] < said[0, 0]


def test_an_index_is_shared_with_a_library_of_the_same_spectra(
    asked: Queries, lessons: TrainingSet
) -> None:
    channel, peaks_and_ions = Analogs(), peak_lists(lessons.spectra)
    said = channel.features(channel.fit(lessons), asked)
    for moved, is_shared in ((0.0, True), (1.0, False)):
        learned = channel.fit(lessons)
        library = library_of(lessons, peaks_and_ions, moved)
        channel.use_library(learned, library)
        assert np.array_equal(channel.features(learned, asked), said)
        assert (learned.ready["index"] is library.index("analog")) == is_shared


def library_of(lessons: TrainingSet, peaks_and_ions, moved: float) -> Library:
    """The lessons as a library, all precursors moved."""
    peaks, ions = peaks_and_ions
    ions = PrecursorIons(ions.precursors + moved, ions.modes)
    records = pa.Table.from_pylist([{}] * len(lessons.spectra), RECORD_SCHEMA)
    molecules = pa.Table.from_pylist([{}] * len(lessons.molecules), MOLECULE_SCHEMA)
    return Library.from_arrays(Path("nowhere"), peaks, ions, lessons.molecule, records, molecules)
