import numpy as np
import pytest
from rdkit.Chem import MolFromSmiles

from mzseek.chem.adducts import parse_adduct
from mzseek.fragments import prediction
from mzseek.fragments.contexts import EMBEDDINGS, NUMBERS, describe, molecule_context
from mzseek.fragments.matching import ion_forms
from mzseek.fragments.prediction import (
    BASES,
    CONDITIONS,
    HIDDEN,
    IONS,
    NOISE_PLACES,
    OUTPUTS,
    IonEntries,
    PeaksOf,
    basis_logits,
    conditions,
    error_density,
    ion_entries,
    ion_inputs,
    log_likelihood,
    match_entries,
    width_of,
)

ROWS = describe(molecule_context(MolFromSmiles("CC(=O)Nc1ccc(O)cc1")))  # paracetamol


def entries_at(*mz: float) -> IonEntries:
    zeros = np.zeros(len(mz), np.int64)
    return IonEntries(zeros, zeros, zeros, zeros, np.array(mz))


def peaks_at(*mz: float) -> PeaksOf:
    return PeaksOf(np.array(mz), np.full(len(mz), 0.001), np.full(len(mz), 1 / len(mz)))


@pytest.mark.slow
def test_pairs_of_ions_and_peaks_are_those_within_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    entries, peaks = rng.uniform(50, 60, 300), np.sort(rng.uniform(50, 60, 200))
    tolerances = peaks * 1e-3
    entry, peak, errors = match_entries(entries, peaks, tolerances)
    near = np.abs(entries[:, None] - peaks) <= tolerances
    assert set(zip(entry.tolist(), peak.tolist(), strict=True)) == set(
        map(tuple, np.argwhere(near).tolist())
    )
    assert errors == pytest.approx((peaks[peak] - entries[entry]) / tolerances[peak])


def test_the_likelihood_is_the_mean_log_density_of_peaks() -> None:
    logits = np.log([3.0, 1.0])
    found = log_likelihood(logits, entries_at(100.0, 110.0), peaks_at(100.0, 120.0), 0.0, 0.5)
    density = float(error_density(np.zeros(1), 0.5)[0])
    noise = 1 / NOISE_PLACES
    expected = (np.log((3 * density + noise) / 5) + np.log(noise / 5)) / 2
    assert found == pytest.approx(expected)


def test_an_expected_ion_that_is_missing_counts_against_a_candidate() -> None:
    peaks = peaks_at(100.0)
    alone = log_likelihood(np.zeros(1), entries_at(100.0), peaks, 0.0, 0.5)
    with_missing = log_likelihood(np.array([0.0, 2.0]), entries_at(100.0, 110.0), peaks, 0.0, 0.5)
    assert with_missing < alone


def test_ions_leave_out_the_precursor_and_what_is_beyond_it() -> None:
    precursor = 152.0706
    entries = ion_entries(ROWS, ion_forms("[M+H]+"), precursor)
    assert entries.mz.max() < precursor - 0.5
    assert entries.mz.min() >= 30
    assert np.abs(entries.mz - 110.0600).min() < 1e-3  # p-aminophenol, protonated
    assert not entries.carried.any()


def test_fragments_of_a_sodium_adduct_keep_the_sodium_or_not() -> None:
    entries = ion_entries(ROWS, ion_forms("[M+Na]+"), 174.0525)
    assert set(entries.carried.tolist()) == {0, 1}
    kept = entries.carried == 1
    assert np.abs(entries.mz[kept] - 132.0420).min() < 1e-3  # p-aminophenol with sodium
    assert np.abs(entries.mz[~kept] - 110.0600).min() < 1e-3


def test_doubly_charged_ions_have_fragments_beyond_the_precursor() -> None:
    entries = ion_entries(ROWS, ion_forms("[M+2H]2+"), 76.54)
    assert entries.mz[entries.double == 0].max() > 76.54
    assert (entries.double == 1).any()


@pytest.mark.parametrize(
    ("adduct", "expected"),
    [
        ("[M+H]+", [0, 0, 0, 0, 0, 0, 0]),
        ("[M-H]-", [1, 0, 0, 0, 0, 0, 0]),
        ("[M+Na]+", [0, 1, 0, 0, 0, 0, 0]),
        ("[M+NH4]+", [0, 0, 1, 0, 0, 0, 0]),
        ("[M+H-H2O]+", [0, 0, 0, 1, 0, 0, 0]),
        ("[M+Cl]-", [1, 0, 0, 0, 1, 0, 0]),
        ("[M+FA-H]-", [1, 0, 0, 0, 1, 0, 0]),
        ("[M+CH3COOH-H]-", [1, 0, 0, 0, 1, 0, 0]),
        ("[M]+", [0, 0, 0, 0, 0, 1, 0]),
        ("[M+2H]2+", [0, 0, 0, 0, 0, 0, 1]),
    ],
)
def test_inputs_about_the_ion(adduct: str, expected: list[int]) -> None:
    assert ion_inputs(parse_adduct(adduct)).tolist() == expected


def test_conditions_tell_instruments_apart_and_take_unknown_ones() -> None:
    by_kind = {kind: conditions(20, 300, kind, 12) for kind in ("orbitrap", "qtof", None)}
    assert {len(values) for values in by_kind.values()} == {CONDITIONS}
    differ = by_kind["orbitrap"] != by_kind["qtof"]
    assert differ.sum() == 4  # each kind, and its product with the energy
    assert not by_kind[None][differ].any()
    assert sorted(map(width_of, by_kind)) == [0, 1, 2]


def test_numpy_and_compiled_code_give_the_same_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    shapes = {
        "embeddings": (EMBEDDINGS, HIDDEN),
        "first": (NUMBERS + IONS, HIDDEN), "first_bias": (HIDDEN,),
        "second": (HIDDEN, HIDDEN), "second_bias": (HIDDEN,),
        "last": (HIDDEN, OUTPUTS * BASES), "last_bias": (OUTPUTS * BASES,),
    }  # fmt: skip
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    weights["embeddings"][0] = 0
    ion = ion_inputs(parse_adduct("[M-H]-"))
    logits = basis_logits(weights, ROWS, ion)
    assert logits.shape == (len(ROWS.masses), OUTPUTS, BASES)
    monkeypatch.setattr(prediction, "is_plain", lambda: True)
    assert np.array_equal(basis_logits(weights, ROWS, ion), logits)
