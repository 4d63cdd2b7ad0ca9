import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mzseek.chem import exact_mass
from mzseek.chem.adducts import ELECTRON_MASS, known_adducts, parse_adduct
from mzseek.core.errors import MzseekError
from mzseek.fragments import (
    KINDS,
    PeakTable,
    explain,
    explained_pairs,
    fragment_table,
    ion_forms,
    kind_lists,
    peak_table,
    plausible,
    score_lists,
)
from mzseek.fragments.matching import MAX_HYDROGENS_MOVED
from mzseek.spectra import Spectrum

from ..molecules import KNOWN

SMILES = KNOWN[:40]
FRAGMENTS = fragment_table(SMILES, jobs=1)
HYDROGEN = 1.007825032


def spectrum_of(molecule: int, rng: np.random.Generator, adduct: str = "[M+H]+") -> Spectrum:
    """Some of a molecule's fragments as ions, and noise."""
    masses = FRAGMENTS.of(molecule).masses
    own = rng.choice(masses, min(8, len(masses)), replace=False)
    sign = 1 if adduct.endswith("+") else -1
    ions = own + rng.integers(-2, 3, len(own)) * HYDROGEN - sign * ELECTRON_MASS
    mz = np.sort(np.concatenate([ions[ions > 5], rng.uniform(50, 400, 5)]))
    return Spectrum(mz, rng.uniform(0.1, 1, len(mz)), 999.0, adduct, sign, str(molecule))


def tables(spectra: list[Spectrum]) -> PeakTable:
    return peak_table(spectra, [ion_forms(str(spectrum.adduct)) for spectrum in spectra])


def lists(seed: int) -> tuple[list[Spectrum], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    adducts = ["[M+H]+", "[M-H]-", "[M+Na]+"]
    spectra = [spectrum_of(m, rng, adducts[m % 3]) for m in rng.integers(0, 40, 6)]
    counts = rng.integers(0, 12, 6)
    return spectra, rng.integers(0, 40, counts.sum()), counts


@pytest.mark.parametrize("seed", range(5))
def test_scores_and_kinds_are_sums_of_explanations(seed: int) -> None:
    spectra, candidates, counts = lists(seed)
    peaks = tables(spectra)
    scores = score_lists(peaks, FRAGMENTS, candidates, counts)
    kinds = kind_lists(peaks, FRAGMENTS, candidates, counts)
    assert kinds.shape == (len(candidates), *KINDS)
    list_index = np.repeat(np.arange(len(spectra)), counts)
    for place, (query, candidate) in enumerate(zip(list_index, candidates, strict=True)):
        rows = explain(spectra[query], SMILES[candidate], refine=False)
        roots = np.sqrt([row.intensity for row in rows])
        weights = np.array([row.weight for row in rows])
        assert scores[place] == pytest.approx((roots * weights).sum() / roots.sum())
        found = np.array([row.formula is not None for row in rows])
        assert kinds[place].sum() == pytest.approx(roots[found].sum() / roots.sum(), abs=1e-6)
    assert scores == pytest.approx((kinds * plausible()).sum(axis=(1, 2, 3)), abs=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_pairs_add_up_to_scores_and_shares_by_kind(threads: int) -> None:
    spectra, candidates, counts = lists(1)
    peaks, weights = tables(spectra), np.random.default_rng(1).random(KINDS)
    pairs = explained_pairs(peaks, FRAGMENTS, candidates, counts, weights, threads)
    kinds = np.zeros((len(candidates), *KINDS))
    ways = (pairs.code, pairs.radical, pairs.hydrogens + MAX_HYDROGENS_MOVED)
    np.add.at(kinds, (pairs.row, *ways), peaks.shares[pairs.peak])
    expected = kind_lists(peaks, FRAGMENTS, candidates, counts, weights)
    assert np.allclose(kinds, expected, atol=1e-6)
    scores = score_lists(peaks, FRAGMENTS, candidates, counts, weights)
    assert np.allclose((kinds * weights).sum((1, 2, 3)), scores)
    assert len(pairs) == pairs.counts.sum() > 40
    # Candidate by candidate, peaks rising, each of its own spectrum.
    assert (np.diff(pairs.row * len(peaks.mz) + pairs.peak) > 0).all()
    spectrum_of_row = np.repeat(np.arange(len(spectra)), counts)[pairs.row]
    own = np.searchsorted(peaks.starts, pairs.peak, side="right") - 1
    assert np.array_equal(spectrum_of_row, own)
    assert (np.abs(pairs.error) <= peaks.tolerances[pairs.peak] + 1e-9).all()
    assert (pairs.error > 1e-6).any() or (pairs.error < -1e-6).any()


def by_hand(spectrum: Spectrum, molecule: int) -> set[int]:
    """Peaks that a fragment explains, tried one by one."""
    fragments, forms = FRAGMENTS.of(molecule), ion_forms(str(spectrum.adduct))
    found = set()
    for peak, mz in enumerate(spectrum.mz):
        for mass, held in zip(fragments.masses, fragments.hydrogens, strict=True):
            for shift, moved in zip(forms.shifts, forms.hydrogens, strict=True):
                near = abs(mass + shift - mz) <= max(mz * 1e-5, 0.001)
                if near and held + moved >= 0:
                    found.add(peak)
    return found


@pytest.mark.parametrize("adduct", ["[M+H]+", "[M-H]-", "[M+Na]+"])
def test_the_walk_finds_what_trying_finds(adduct: str) -> None:
    rng = np.random.default_rng(3)
    for molecule in range(6):
        spectrum = spectrum_of(molecule, rng, adduct)
        rows = explain(spectrum, SMILES[molecule])
        found = {peak for peak, row in enumerate(rows) if row.formula is not None}
        assert found == by_hand(spectrum, molecule)
        assert len(found) >= 3


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_order_of_peaks_candidates_and_spectra_changes_nothing(
    seed: int, rng: random.Random
) -> None:
    spectra, candidates, counts = lists(seed)
    scores = score_lists(tables(spectra), FRAGMENTS, candidates, counts, threads=1)
    starts = np.concatenate([[0], np.cumsum(counts)])
    order = list(range(len(spectra)))
    rng.shuffle(order)
    shuffled, rows, wanted = [], [], []
    for query in order:
        inner = list(range(starts[query], starts[query + 1]))
        rng.shuffle(inner)
        rows += [candidates[place] for place in inner]
        wanted += [scores[place] for place in inner]
        peaks = list(range(len(spectra[query])))
        rng.shuffle(peaks)
        old = spectra[query]
        shuffled.append(
            Spectrum(old.mz[peaks], old.intensities[peaks], 999.0, old.adduct, None, "x")
        )
    again = score_lists(tables(shuffled), FRAGMENTS, rows, counts[order], threads=3)
    assert np.array_equal(again, wanted)


def test_peaks_at_the_precursor_are_left_out() -> None:
    spectrum = Spectrum(np.array([50.0, 99.8, 100.2]), np.array([4.0, 1, 1]), 100, "[M+H]+", 1, "")
    table = tables([spectrum])
    assert table.mz.tolist() == [50.0]
    assert table.shares.tolist() == [1.0]
    kept = peak_table([spectrum], [ion_forms("[M+H]+")], at_precursor=-1)
    assert kept.shares.tolist() == [0.5, 0.25, 0.25]
    alone = Spectrum(np.array([100.0]), np.ones(1), 100.0, "[M+H]+", 1, "")
    assert score_lists(tables([alone]), FRAGMENTS, [0, 1], [2]).tolist() == [0.0, 0.0]


def test_more_cleavages_and_radicals_weigh_less() -> None:
    weights = plausible()
    assert weights.shape == KINDS
    assert (weights[0] > weights[1]).all()
    assert (weights[:, 0] > weights[:, 1]).all()


@pytest.mark.parametrize(
    ("candidates", "counts", "weights", "words"),
    [
        ([0], [1, 0], None, "2 candidate lists for 1 spectra"),
        ([0], [2], None, "add up to 2"),
        ([40], [1], None, "table of 40 molecules"),
        ([-1], [1], None, "table of 40 molecules"),
        ([0], [1], np.ones(3), "expected"),
        ([0], [1], np.full(KINDS, np.nan), "numbers"),
    ],
)
def test_lists_that_do_not_fit_are_refused(
    candidates: list[int], counts: list[int], weights: np.ndarray | None, words: str
) -> None:
    peaks = tables([spectrum_of(0, np.random.default_rng(0))])
    with pytest.raises(MzseekError, match=words):
        score_lists(peaks, FRAGMENTS, candidates, counts, weights)


def test_ion_forms_are_one_a_spectrum() -> None:
    with pytest.raises(MzseekError, match="0 ion forms for 1 spectra"):
        peak_table([spectrum_of(0, np.random.default_rng(0))], [])


@pytest.mark.parametrize("name", known_adducts())
def test_every_known_adduct_has_forms_of_its_sign(name: str) -> None:
    adduct, forms = parse_adduct(name), ion_forms(name)
    assert set(np.sign(forms.charges)) == {np.sign(adduct.charge)}
    assert abs(forms.charges).max() == abs(adduct.charge)
    assert forms.hydrogens.min() == -MAX_HYDROGENS_MOVED
    assert forms.hydrogens.max() == MAX_HYDROGENS_MOVED


@pytest.mark.parametrize(
    "name",
    ["[M+H]+", "[M+Na]+", "[M+2Na-H]+", "[M+2H]2+", "[M+H+Na]2+", "[M+3H]3+", "[M]+", "[M-H]-",
     "[M+Cl]-", "[M+Na-2H]-", "[M-2H]2-", "[M]-"],
)  # fmt: skip
def test_the_whole_molecule_is_seen_at_its_precursor(name: str) -> None:
    mass, forms = exact_mass("OCC1OC(O)C(O)C(O)C1O"), ion_forms(name)
    mz = (mass + forms.shifts) / abs(forms.charges)
    assert np.abs(mz - parse_adduct(name).precursor_mz(mass)).min() < 1e-7


def test_carried_atoms_may_stay_or_go_and_protonated_is_no_radical() -> None:
    assert set(ion_forms("[M+2Na-H]+").carried) == {(), ("Na",), ("Na", "Na")}
    assert set(ion_forms("[M+FA-H]-").carried) == {()}
    assert set(ion_forms("[M+Cl]-").carried) == {(), ("Cl",)}
    forms = ion_forms("[M+H]+")
    assert dict(zip(forms.hydrogens.tolist(), (forms.electrons & 1).tolist(), strict=True))[1] == 0
