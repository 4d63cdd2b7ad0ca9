"""The fragment channel and its network over explained peaks."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.evidence import fragments as module
from mzseek.evidence.fragments import (
    SHAPES,
    FragmentOptions,
    Fragments,
    PairInputs,
    initial_weights,
    pair_inputs,
    pair_scores,
    pair_worths,
    train_pairs,
)
from mzseek.evidence.queries import Queries, TrainingSet
from mzseek.evidence.ranker import fit_ranker
from mzseek.fragments import KINDS, explain, plausible
from mzseek.metrics import hit_rate

TOTALS = np.array([0.1, 0.2, 0.3], np.float32)


def inputs_of(queries: Queries) -> PairInputs:
    return pair_inputs(queries, plausible(), 10.0, 0.001)


def some_weights(seed: int) -> dict[str, np.ndarray]:
    return initial_weights(np.random.default_rng(seed)) | {"totals": TOTALS}


@pytest.fixture(scope="module")
def inputs(queries: Queries) -> PairInputs:
    return inputs_of(queries)


@pytest.fixture(scope="module")
def state(training_set: TrainingSet):
    return Fragments().fit(training_set)


def test_weights_have_the_declared_shapes(state) -> None:
    assert {name: array.shape for name, array in state.arrays.items()} == Fragments.shapes
    assert Fragments.shapes["negative.worth"] == KINDS


def test_it_ranks_the_truth_above_others_of_the_same_mass(
    queries: Queries, training_set: TrainingSet
) -> None:
    in_half = np.isin(queries.inchikey14, training_set.inchikey14[::2])
    half, other = np.flatnonzero(in_half), np.flatnonzero(~in_half)
    channel = Fragments()
    state = channel.fit(training_set.without(queries.inchikey14[other]))
    features = channel.features(state, queries)
    names = [channel.feature_names]
    ranker = fit_ranker(["f"], names, [features[queries.rows(half)]], queries.only(half))
    rest = queries.only(other)
    scores = ranker.contributions([features[queries.rows(other)]], rest.modes, rest.counts)
    assert hit_rate(scores[:, 0], rest.counts, rest.labels, 1).mean() > 0.4  # by chance 0.17


def test_shares_are_those_of_explained_peaks(state, queries: Queries) -> None:
    some = queries.only(np.arange(3))
    features = Fragments().features(state, some)
    row = 0
    for spectrum, count in zip(some.spectra, some.counts, strict=True):
        far = np.abs(spectrum.mz - spectrum.precursor_mz) > 0.5
        roots = dict(zip(spectrum.mz[far], np.sqrt(spectrum.intensities[far]), strict=True))
        for _ in range(count):
            peaks = explain(spectrum, some.molecules.smiles[some.candidates[row]], refine=False)
            explained = sum(roots[peak.mz] for peak in peaks if peak.formula and peak.mz in roots)
            shares = features[row, 2:6]  # by bonds broken
            assert shares.sum() == pytest.approx(explained / sum(roots.values()), abs=1e-5)
            row += 1


def test_a_spectrum_without_an_adduct_is_read_as_protonated(state, queries: Queries) -> None:
    some = queries.only(np.arange(2))
    bare = [replace(spectrum, adduct=None, charge=None) for spectrum in some.spectra]
    expected = Fragments().features(state, some)
    assert np.array_equal(Fragments().features(state, replace(some, spectra=bare)), expected)


def test_a_wider_tolerance_explains_no_less(state, queries: Queries) -> None:
    some = queries.only(np.arange(10))
    narrow, wide = (
        Fragments(FragmentOptions(ppm=ppm, least=0)).features(state, some)[:, 2:6].sum(1)
        for ppm in (1.0, 100.0)
    )
    assert (wide >= narrow - 1e-6).all()
    assert (wide > narrow + 1e-6).any()


def test_a_collision_energy_is_read_as_far_as_it_is_a_number(queries: Queries) -> None:
    some = queries.only(np.array([0, 1]))

    def of_peak(*energies: str | None) -> np.ndarray:
        stated = [{} if energy is None else {"collision_energy": energy} for energy in energies]
        spectra = [replace(s, metadata=own) for s, own in zip(some.spectra, stated, strict=True)]
        return inputs_of(replace(some, spectra=spectra)).of_peak

    assert np.array_equal(of_peak("30 eV", "none"), of_peak(None, None))  # the default is 30
    assert of_peak("60", "none")[0, 6] == pytest.approx(1.2)


def loss(weights, inputs: PairInputs, labels, spectra) -> float:
    scores = pair_scores(weights, inputs).astype(np.float64)
    total = 0.0
    for spectrum in spectra:
        own = slice(inputs.row_ends[spectrum], inputs.row_ends[spectrum + 1])
        p = np.exp(scores[own] - scores[own].max())
        total -= np.log(p[labels[own]].sum() / p.sum())
    return total / len(spectra)


def test_gradients_are_those_of_the_loss(queries: Queries, inputs: PairInputs) -> None:
    rng = np.random.default_rng(0)
    weights = {name: w.astype(np.float64) for name, w in initial_weights(rng).items()}
    weights["totals"] = rng.normal(size=3)
    spectra, labels = np.array([5, 0, 11]), queries.labels
    gradients = module._gradients(weights, inputs, spectra, labels, np.ones(3, np.float32))
    for name, values in weights.items():
        at = tuple(rng.integers(0, size) for size in values.shape)
        step, before, losses = 1e-3, values[at], []
        for moved in (before + step, before - step):
            values[at] = moved
            losses.append(loss(weights, inputs, labels, spectra))
        values[at] = before
        slope = (losses[0] - losses[1]) / (2 * step)
        assert gradients[name][at] == pytest.approx(slope, rel=2e-2, abs=2e-4)


def test_training_raises_the_truth_and_depends_on_the_seed(
    queries: Queries, inputs: PairInputs
) -> None:
    shares = np.ones(len(queries))
    weights = train_pairs(inputs, queries.labels, shares, epochs=40, lr=1e-2)
    assert {name: value.shape for name, value in weights.items()} == SHAPES
    hits = hit_rate(pair_scores(weights, inputs), queries.counts, queries.labels, 1)
    assert hits.mean() > 0.5  # by chance 0.17
    first, same, other = (
        train_pairs(inputs, queries.labels, shares, epochs=1, seed=seed) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(first[name], same[name]) for name in SHAPES)
    assert not np.array_equal(first["first"], other["first"])


def test_scores_are_sums_of_worths_and_totals(inputs: PairInputs) -> None:
    weights = some_weights(3)
    double = {name: values.astype(np.float64) for name, values in weights.items()}
    worths, scores = pair_worths(double, inputs), pair_scores(weights, inputs)
    assert worths.std() > 0
    for spectrum in range(len(inputs)):
        own = slice(inputs.pair_ends[spectrum], inputs.pair_ends[spectrum + 1])
        given, roots, index, rows = inputs.read(np.array([spectrum]))
        values = module._layers(double, given)[2]
        assert np.allclose(worths[own], values, atol=1e-9)
        summed = np.bincount(index, values * roots, len(rows)) + inputs.totals[rows] @ TOTALS
        assert np.allclose(scores[rows], summed, atol=1e-5)


def test_scores_do_not_depend_on_the_spectra_beside(queries: Queries, inputs: PairInputs) -> None:
    weights = some_weights(0)
    scores = pair_scores(weights, inputs)
    for spectrum in range(0, len(inputs), 3):
        alone = pair_scores(weights, inputs_of(queries.only(np.array([spectrum]))))
        own = slice(inputs.row_ends[spectrum], inputs.row_ends[spectrum + 1])
        assert np.array_equal(alone, scores[own])


def test_scores_are_the_same_without_machine_code(inputs: PairInputs, monkeypatch) -> None:
    weights = some_weights(2)
    compiled = pair_scores(weights, inputs)
    monkeypatch.setattr(module, "is_plain", lambda: True)
    monkeypatch.setattr(module, "_BATCH_PAIRS", 7)
    assert np.array_equal(pair_scores(weights, inputs), compiled)


def test_training_can_start_from_other_weights(queries: Queries, inputs: PairInputs) -> None:
    shares = np.ones(len(queries))
    start = train_pairs(inputs, queries.labels, shares, epochs=20, lr=1e-2)
    before = {name: values.copy() for name, values in start.items()}
    few = {"epochs": 1, "lr": 1e-4}
    again = train_pairs(inputs, queries.labels, shares, start=start, **few)
    other = train_pairs(inputs, queries.labels, shares, start=start, seed=1, **few)
    cold = train_pairs(inputs, queries.labels, shares, **few)
    for name in SHAPES:
        assert np.array_equal(start[name], before[name])  # not changed in place
        assert not np.array_equal(again[name], start[name])
        assert np.allclose(again[name], start[name], atol=0.02)
        assert np.allclose(again[name], other[name], atol=0.02)  # no random weights are left
    hits = [
        hit_rate(pair_scores(weights, inputs), queries.counts, queries.labels, 1).mean()
        for weights in (again, cold)
    ]
    assert hits[0] > hits[1]


def test_an_ion_mode_starts_from_the_network_of_both(
    training_set: TrainingSet, monkeypatch
) -> None:
    monkeypatch.setattr(module, "_MIN_MOLECULES", 2)
    queries = training_set.queries
    half = np.unique(queries.inchikey14)[::2]
    spectra = [
        replace(spectrum, adduct="[M-H]-", charge=-1) if key in half else spectrum
        for spectrum, key in zip(queries.spectra, queries.inchikey14, strict=True)
    ]
    mixed = replace(training_set, queries=replace(queries, spectra=spectra))
    started = []
    train = module.train_pairs

    def noted(*given, start=None, epochs, **options):
        started.append((start is not None, epochs))
        return train(*given, start=start, epochs=epochs, **options)

    monkeypatch.setattr(module, "train_pairs", noted)
    state = Fragments(FragmentOptions(epochs=4, rounds=1)).fit(mixed)
    assert started == [(False, 4), (True, 2), (True, 2)]
    assert (state.arrays["positive.first"] != state.arrays["negative.first"]).any()
