"""The analog channel and its regression."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from mzseek.chem import fingerprints
from mzseek.core.errors import EvidenceError
from mzseek.evidence import analogs as module
from mzseek.evidence.analogs import (
    AnalogOptions,
    Analogs,
    Regression,
    _mirrored,
    _solve,
    _solve_by_rows,
)
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
from mzseek.spectra import Spectrum, bin_spectra

from .conftest import queries_of, training_set_of


def cosines(training_set: TrainingSet, spectrum) -> np.ndarray:
    """Mean cosine of peaks and losses in bins of 0.01, by dense arithmetic."""
    sides = (vectors([*training_set.spectra, spectrum], losses) for losses in (False, True))
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
    dense = np.sqrt(found[:, np.unique(found.indices)].toarray().astype(float))
    size = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(size > 0, size, 1)


def regressed(training_set: TrainingSet, spectrum) -> np.ndarray:
    """Weights of the known molecules, by dense arithmetic on fourth roots of heights."""
    molecules = np.unique(training_set.molecule)
    known, queries = [], []
    for losses in (False, True):
        rows = np.sqrt(vectors([*training_set.spectra, spectrum], losses))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        mean = np.array([rows[:-1][training_set.molecule == m].mean(0) for m in molecules])
        known.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
        queries.append(rows[-1])
    kernel = sum(side @ side.T for side in known) / 2
    near = sum(side @ one for side, one in zip(known, queries, strict=True)) / 2
    return np.linalg.solve(kernel + np.eye(len(kernel)), near)


def others(alike, known, listed, kind):
    """Known molecules among those listed do not count."""
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
    return replace(lists, excluded_analogs=excluded)


@pytest.mark.slow
@pytest.mark.parametrize("of_list", [False, True])
def test_features_are_those_of_a_plain_loop(
    queries: Queries, training_set: TrainingSet, of_list: bool
) -> None:
    channel = Analogs(AnalogOptions(top=5, likeness="morgan2, rdkit"))
    left = training_set.without(queries.inchikey14[:2])
    state = channel.fit(left)
    lists = with_matches(queries.only(np.array([0])), of_list)
    near = cosines(left, lists.spectra[0])
    best = {m: near[left.molecule == m].max() for m in np.unique(left.molecule)}
    chosen = sorted(best, key=lambda m: -best[m])[:5]
    sims = np.array([best[m] for m in chosen])
    names = [training_set.molecules.smiles[m] for m in chosen]
    features = channel.features(state, lists)
    assert features.shape[1] == len(channel.feature_names) == 16
    weights = regressed(left, lists.spectra[0])
    known = [left.molecules.smiles[m] for m in np.unique(left.molecule)]
    listed = [lists.molecules.smiles[each] for each in lists.candidates]
    for row, values in enumerate(features):
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


def test_a_spectrum_that_shares_nothing_scores_nothing(
    queries: Queries, training_set: TrainingSet
) -> None:
    some = queries.only(np.array([0, 1]))
    far = replace(
        some.spectra[0], mz=np.array([11.1234567]), intensities=np.array([1.0]),
        precursor_mz=1800.777777,
    )  # fmt: skip
    channel = Analogs()
    features = channel.features(
        channel.fit(training_set), replace(some, spectra=[far, some.spectra[1]])
    )
    assert (features[: some.counts[0]] == 0).all()
    assert (features[some.counts[0] :] > 0).any()


def test_an_unknown_fingerprint_is_refused() -> None:
    with pytest.raises(
        EvidenceError, match=r"analogs.likeness 'maps' is unknown, expected one of: .*map4"
    ):
        Analogs(AnalogOptions(likeness="morgan2,maps"))


def references_of(training_set: TrainingSet) -> ReferenceSpectra:
    peaks, ions = peak_lists(training_set.spectra)
    smiles = training_set.molecules.smiles
    return ReferenceSpectra(peaks, ions, training_set.molecule, smiles, training_set.inchikey14)


def test_extending_is_fitting_on_all(queries: Queries, training_set: TrainingSet) -> None:
    channel, half = Analogs(), training_set.inchikey14[::2]
    whole = channel.fit(training_set)
    left = training_set.without(half)
    extended = channel.extend(channel.fit(left), references_of(training_set))
    assert extended.spectra == len(training_set.spectra) - len(left.spectra)
    assert (extended.molecules, extended.left_out) == (len(half), 0)
    assert np.array_equal(extended.state.inchikey14, np.unique(training_set.inchikey14))
    features = channel.features(extended.state, queries)
    assert np.allclose(features, channel.features(whole, queries), rtol=1e-3, atol=2e-4)
    again = channel.extend(whole, references_of(training_set))
    assert again.state is whole
    assert (again.spectra, again.molecules) == (0, 0)


def test_molecules_that_are_added_are_limited(training_set: TrainingSet, monkeypatch) -> None:
    half = training_set.inchikey14[::2]
    part = Analogs().fit(training_set.without(half))
    known = len(part.arrays["bit_pointers.morgan2"]) - 1
    monkeypatch.setattr(module, "_MAX_MOLECULES", known + 3)
    extended = Analogs().extend(part, references_of(training_set))
    assert (extended.molecules, extended.left_out) == (3, len(half) - 3)
    expected = np.union1d(part.inchikey14, np.sort(half)[:3])
    assert np.array_equal(extended.state.inchikey14, expected)


def test_a_known_molecule_in_another_form_is_left_out(training_set: TrainingSet) -> None:
    """Of the block of a known one, with fingerprints of none: it would count twice."""
    more = references_of(training_set)
    odd = replace(
        more, smiles=["C" * 40, *more.smiles[1:]],
        ions=PrecursorIons(more.ions.precursors + 1, more.ions.modes),
    )  # fmt: skip
    extended = Analogs().extend(Analogs().fit(training_set), odd)
    assert (extended.molecules, extended.left_out) == (0, 1)
    assert extended.spectra == int((training_set.molecule != 0).sum())


def test_molecules_of_another_table_can_be_excluded(
    queries: Queries, training_set: TrainingSet
) -> None:
    channel, some = Analogs(), queries.only(np.array([0]))
    state = channel.fit(training_set)
    smiles = [training_set.molecules.smiles[m] for m in np.unique(training_set.molecule)]
    known = Molecules(smiles, jobs=1)

    def without(rows: np.ndarray) -> np.ndarray:
        excluded = [ExcludedAnalogs(known, rows)] * (len(some.pointers) - 1)
        return channel.features(state, replace(some, excluded_analogs=excluded))

    features = channel.features(state, some)
    assert features.any()
    assert np.array_equal(without(np.zeros(0, np.int64)), features)
    assert not without(np.arange(len(known))).any()


CHAINS = ["CCCCCCCCCCCCO", "CCCCCCCCCCCCCCO", "CCCCCCCCCCCCCC(C)O"]


@pytest.mark.parametrize("of_list", [False, True])
def test_a_longer_chain_is_an_analog_and_no_match(of_list: bool) -> None:
    """No fingerprint tells the first from the second, which weighs more: that is an analog."""
    known = training_set_of(queries_of(CHAINS[1:], [CHAINS[1:]] * 2))
    queries = queries_of(CHAINS[:1], [[CHAINS[0], "CCCCCCOCCCCCC"]], each=1)
    lists = with_matches(queries, of_list)
    channel = Analogs()
    state = channel.fit(known)
    features = channel.features(state, lists)
    assert (features[0] > features[1]).all()
    assert features[0, 0] > 0.5
    # The known molecule itself is a match and no analog, whatever the precursor.
    itself = queries_of(CHAINS[1:2], [[CHAINS[1], "CCCCCCOCCCCCC"]], each=1)
    for spectra in (itself.spectra, lists.spectra):
        of_known = with_matches(replace(itself, spectra=spectra), of_list)
        assert channel.features(state, of_known)[0, 0] < features[0, 0]


@pytest.mark.slow
def test_an_index_is_shared_with_a_library_of_the_same_spectra(
    queries: Queries, training_set: TrainingSet
) -> None:
    channel, (peaks, ions) = Analogs(), peak_lists(training_set.spectra)
    features = channel.features(channel.fit(training_set), queries)
    records = pa.Table.from_pylist([{}] * len(training_set.spectra), RECORD_SCHEMA)
    molecules = pa.Table.from_pylist([{}] * len(training_set.molecules), MOLECULE_SCHEMA)
    for shift, is_shared in ((0.0, True), (1.0, False)):
        shifted = PrecursorIons(ions.precursors + shift, ions.modes)
        library = Library.from_arrays(
            Path("nowhere"), peaks, shifted, training_set.molecule, records, molecules
        )
        state = channel.fit(training_set)
        channel.use_library(state, library)
        assert np.array_equal(channel.features(state, queries), features)
        assert (state.cache["index"] is library.index("analog")) == is_shared


def test_modes_do_not_mix(training_set: TrainingSet) -> None:
    turned = [replace(each, adduct="[M-H]-", charge=-1) for each in training_set.spectra[:4]]
    peaks, ions = peak_lists(training_set.spectra)
    made = Regression.of(peaks, ions, training_set.molecule, 1.0)
    assert (made.weights(*peak_lists(turned)) == 0).all()
    both, signs = peak_lists([*training_set.spectra, *turned])
    molecule = np.append(training_set.molecule, training_set.molecule[:4])
    more = Regression.of(both, signs, molecule, 1.0)
    assert len(more.molecule) == len(made.molecule) + len(np.unique(training_set.molecule[:4]))
    weights = more.weights(*peak_lists(turned))
    assert (np.count_nonzero(weights, axis=0) <= len(np.unique(training_set.molecule[:4]))).all()
    assert weights.max() > 0.1


@pytest.mark.slow
def test_the_weights_of_a_spectrum_are_the_same_bits_whatever_is_solved_beside_it(
    training_set: TrainingSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = peak_lists(training_set.spectra)

    def weights(spectra: list[Spectrum]) -> np.ndarray:
        """By a regression that has kept nothing."""
        return Regression.of(*known, training_set.molecule, 1.0).weights(*peak_lists(spectra))

    together = weights(training_set.spectra)
    with threadpool_limits(1):
        assert np.array_equal(weights(training_set.spectra), together)
    for place in (0, 7, len(training_set.spectra) - 1):
        assert np.array_equal(
            weights(training_set.spectra[place : place + 1])[:, 0], together[:, place]
        )
    monkeypatch.setattr(module, "is_plain", lambda: True)
    assert np.array_equal(weights(training_set.spectra), together)


def test_weights_that_are_kept_are_those_of_the_same_spectrum(training_set: TrainingSet) -> None:
    made = Regression.of(*peak_lists(training_set.spectra), training_set.molecule, 1.0)
    together = made.weights(*peak_lists(training_set.spectra))
    turned = [training_set.spectra[place] for place in (5, 2, 5)]
    assert np.array_equal(made.weights(*peak_lists(turned)), together[:, [5, 2, 5]])
    other = replace(training_set.spectra[5], precursor_mz=training_set.spectra[5].precursor_mz + 1)
    assert not np.array_equal(made.weights(*peak_lists([other]))[:, 0], together[:, 5])
    assert made.weights(*peak_lists([])).shape == (len(made.molecule), 0)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 257, 600])
def test_triangular_systems_are_solved(size: int) -> None:
    rng = np.random.default_rng(size)
    half = rng.normal(size=(size, size)).astype(np.float32) / np.sqrt(size)
    matrix = half @ half.T + np.eye(size, dtype=np.float32)
    factor = _mirrored(np.linalg.cholesky(matrix.astype(np.float64)).T)
    assert np.array_equal(factor, factor.T)
    wanted = rng.normal(size=(3, size))
    compiled, plain = wanted @ matrix, wanted @ matrix
    _solve(factor, compiled)
    _solve_by_rows(factor, plain)
    assert np.array_equal(compiled, plain)
    assert np.allclose(compiled, wanted, atol=1e-4)
