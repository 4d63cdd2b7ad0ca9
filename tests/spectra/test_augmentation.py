"""What corruption does to spectra, part by part."""

from dataclasses import replace

import numpy as np
import pytest

from mzseek.core.errors import SpectrumError
from mzseek.spectra import Spectrum
from mzseek.spectra.augmentation import (
    CONTAMINANT_SHARE,
    ISOLATION,
    NOISE_MEDIAN,
    NOISE_SHARE,
    NOISE_SPREAD,
    PARTS,
    Contaminants,
    Corruption,
    DriftCurve,
)


def spectrum(number: int, precursor: float = 300.0, charge: int = 1, peaks: int = 20) -> Spectrum:
    rng = np.random.default_rng(number)
    mz = np.sort(rng.uniform(50, precursor - 2, peaks))
    heights = rng.uniform(0.001, 1, peaks)
    heights[0] = 2.0
    adduct = "[M+H]+" if charge > 0 else "[M-H]-"
    return Spectrum(mz, heights, precursor, adduct, charge, f"s{number}")


def only(part: str, number: int = 0, **options: object) -> Spectrum:
    return Corruption((part,), **options)(spectrum(number), number)  # type: ignore[arg-type]


def added(number: int, corrupted: Spectrum) -> tuple[np.ndarray, np.ndarray]:
    new = ~np.isin(corrupted.mz, spectrum(number).mz)
    return corrupted.mz[new], corrupted.intensities[new]


def test_same_seed_and_identifier_give_the_same_spectrum_whatever_came_before() -> None:
    pool = [spectrum(number, 300 + 0.1 * number) for number in range(6)]
    names = list(range(6))
    corrupt = Corruption(contaminants=Contaminants(pool, names), seed=3)
    backwards = Corruption(contaminants=Contaminants(pool[::-1], names[::-1]), seed=3)
    first = [corrupt(each, name) for each, name in zip(pool, names, strict=True)]
    for own, other in zip(first, [backwards(pool[n], n) for n in names], strict=True):
        np.testing.assert_array_equal(own.mz, other.mz)
        np.testing.assert_array_equal(own.intensities, other.intensities)
        assert (np.diff(own.mz) > 0).all()
        assert (own.intensities > 0).all()
    again = replace(corrupt, seed=4)(pool[0], 0)
    assert len(again) != len(first[0]) or (again.mz != first[0].mz).any()


def test_drift_moves_every_peak_by_the_curve_and_nothing_else() -> None:
    clean, curve = spectrum(1), DriftCurve(30, -5, 140, 17)
    moved = only("drift", 1, drift=curve)
    np.testing.assert_allclose((moved.mz / clean.mz - 1) * 1e6, curve.ppm(clean.mz), atol=1e-6)
    np.testing.assert_array_equal(moved.intensities, clean.intensities)
    assert moved.precursor_mz == clean.precursor_mz
    # A laboratory's medians of errors: +30 at m/z 60, +27 at 100, +12 at 140, -3 above 200.
    measured = {60.0: 30, 100.0: 27, 140.0: 12, 220.0: -3}
    for mz, ppm in measured.items():
        assert DriftCurve().ppm(np.array([mz]))[0] == pytest.approx(ppm, abs=2)


def test_drawn_curves_are_what_recalibration_leaves() -> None:
    errors = [
        np.abs(DriftCurve.draw(np.random.default_rng(n)).ppm(np.linspace(50, 900, 50))).max()
        for n in range(200)
    ]
    assert max(errors) <= 8
    assert np.mean(errors) > 2


def test_noise_is_a_share_of_all_peaks_and_mostly_low() -> None:
    counts, heights = [], []
    for number in range(300):
        mz, new = added(number, only("noise", number))
        counts.append(len(mz))
        heights += (new / 2.0).tolist()
        assert (mz >= 50).all()
        assert (mz <= 350).all()
    assert np.mean(counts) / (20 + np.mean(counts)) == pytest.approx(NOISE_SHARE, abs=0.01)
    assert np.median(heights) == pytest.approx(NOISE_MEDIAN, rel=0.1)
    expected = NOISE_MEDIAN * np.exp(1.2816 * NOISE_SPREAD)  # 90th percentile of a log-normal
    assert np.quantile(heights, 0.9) == pytest.approx(expected, rel=0.15)
    assert max(heights) <= 1


def test_contaminants_are_of_other_molecules_in_the_window_and_of_the_same_polarity() -> None:
    own = spectrum(0)
    near, far = spectrum(1, 301.0), spectrum(2, 300.0 + ISOLATION + 0.1)
    same, negative = spectrum(3, 300.2), spectrum(4, 300.1, charge=-1)
    pool = Contaminants([near, far, same, negative], ["near", "far", "own", "negative"])
    seen = set()
    for seed in range(40):
        mixed = Corruption(("contaminants",), pool, seed=seed)(own, "own")
        mz, new = added(0, mixed)
        assert np.isin(mz, near.mz).all()
        share = new.sum() / own.intensities.sum()
        assert CONTAMINANT_SHARE[0] <= share <= CONTAMINANT_SHARE[1]
        seen.add(len(mz))
    assert seen == {20}
    lonely = Corruption(("contaminants",), Contaminants([same], ["own"]))(own, "own")
    np.testing.assert_array_equal(lonely.mz, own.mz)


def test_doubly_charged_contaminants_have_peaks_above_the_precursor() -> None:
    own, heavy = spectrum(0), spectrum(1, 2 * 300.0 - 1.007276)
    pool = Contaminants([heavy], ["heavy"])
    lengths = [len(Corruption(("contaminants",), pool, seed=n)(own, "own")) for n in range(200)]
    mixed = np.array(lengths) > 20
    assert 0.15 < mixed.mean() < 0.35
    above = Corruption(("contaminants",), pool, seed=int(np.argmax(mixed)))(own, "own")
    assert (above.mz > 300.5).any()
    assert above.mz.max() < heavy.precursor_mz - 1


def test_isotope_peaks_have_the_ratio_of_an_average_composition() -> None:
    clean = spectrum(5)
    mz, new = added(5, only("isotopes", 5))
    parents = np.searchsorted(clean.mz, mz - 1.0034)
    np.testing.assert_allclose(mz - clean.mz[parents], 1.003355, atol=1e-6)
    ratio = new / clean.intensities[parents] / (0.0108 * clean.mz[parents] / 19)
    assert np.ptp(ratio) < 1e-9
    assert 0.2 <= ratio[0] <= 1.0
    assert (new >= 0.005 * 2.0).all()
    assert len(new) < len(clean)


def test_missing_peaks_are_weak_and_the_base_peak_stays() -> None:
    lost = []
    for number in range(200):
        clean, left = spectrum(number), only("missing", number)
        gone = clean.intensities[~np.isin(clean.mz, left.mz)] / 2.0
        assert left.intensities.max() == 2.0
        lost += gone.tolist()
    assert lost
    assert np.median(lost) < 0.05


def test_side_lobes_lie_around_intense_peaks() -> None:
    clean = spectrum(6)
    mz, new = added(6, only("sidelobes", 6))
    intense = clean.mz[clean.intensities >= 0.6]
    distance = np.abs(mz[:, None] - intense).min(1)
    assert len(mz) == 4 * len(intense)
    assert (distance > 0).all()
    assert (distance <= 2 * 0.06 * mz / 200 + 1e-6).all()
    assert new.max() <= 0.03 * 2.0


def test_parts_are_the_same_alone_and_beside_others() -> None:
    noise = set(added(7, only("noise", 7))[0].tolist())
    both = Corruption(("sidelobes", "noise"))(spectrum(7), 7)
    assert len(noise) > 3
    # More peaks mean more noise, drawn from the same generator for the same count.
    assert len(both) > 20 + len(noise)
    untouched = Corruption(tuple(p for p in PARTS if p != "contaminants"), probability=0.0)
    np.testing.assert_array_equal(untouched(spectrum(7), 7).mz, spectrum(7).mz)


def test_unknown_parts_and_missing_contaminants_are_refused() -> None:
    with pytest.raises(SpectrumError, match="no part 'dust', expected some of contaminants"):
        Corruption(("dust",))
    with pytest.raises(SpectrumError, match="no spectra are given"):
        Corruption()
