import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mzseek.annotation.features import Feature
from mzseek.export.report_data import MOST_PEAKS, packed_fragments, packed_peaks, shown_spectrum
from mzseek.fragments import explain

from .conftest import CAFFEINE, candidate, spectrum


@given(
    st.lists(st.tuples(st.floats(1, 2000), st.floats(0.001, 1e9)), max_size=30),
    st.integers(1, 40),
)
def test_the_strongest_peaks_are_kept_in_order(peaks, most: int) -> None:
    peaks = sorted(peaks)
    mz, intensities = np.array(peaks, float).reshape(-1, 2).T
    packed = packed_peaks(mz, intensities, most)
    assert len(packed[0]) == len(packed[1]) == min(len(peaks), most)
    assert packed[0] == sorted(packed[0])
    if peaks:
        kept = sorted(intensities, reverse=True)[:most]
        shares = sorted((max(1, round(1000 * each / max(kept))) for each in kept), reverse=True)
        assert sorted(packed[1], reverse=True) == shares


def test_the_spectrum_with_the_most_peaks_stands_for_a_feature() -> None:
    few, rich = spectrum("a", ([50.0], [1.0])), spectrum("b")
    assert shown_spectrum(Feature("F", "given", (few, rich, few))) is rich
    assert shown_spectrum(Feature("F", "given", (rich, spectrum("c")))) is rich


def test_pieces_are_those_that_explain_gives() -> None:
    one = spectrum()
    rows = explain(one, CAFFEINE, adduct="[M+H]+")
    packed = {row[0]: row for row in packed_fragments(one, candidate())}
    assert set(packed) == {i for i, row in enumerate(rows) if row.formula}
    assert len(packed) >= 4
    for place, (_, formula, charge, error, mask, bonds, hydrogens, alike) in packed.items():
        row = rows[place]
        atoms = {atom for atom in range(64) if int(mask, 16) >> atom & 1}
        assert atoms == set(row.atoms)
        assert (formula, charge, bonds, hydrogens, alike) == (
            row.formula, row.charge, row.bonds, row.hydrogens, row.equivalents
        )  # fmt: skip
        assert abs(error / 10 - row.error_ppm) <= 0.05


def test_the_tolerance_is_handed_on() -> None:
    off = spectrum(peaks=([138.0662 * (1 + 30e-6)], [1.0]))
    assert not packed_fragments(off, candidate(), ppm=10, least=0.0005)
    assert packed_fragments(off, candidate(), ppm=40, least=0.0005)


def test_places_are_those_of_the_peaks_that_are_drawn() -> None:
    noise = np.linspace(50.3, 137.7, 3 * MOST_PEAKS)
    mz = np.sort(np.append(noise, 138.0662))
    intensities = np.where(mz == 138.0662, 100.0, 0.5 + np.arange(len(mz)) % 7)
    many = spectrum(peaks=(mz, intensities))
    packed = packed_peaks(many.mz, many.intensities)
    assert len(packed[0]) == MOST_PEAKS
    best = [row for row in packed_fragments(many, candidate()) if row[1] == "C6H8N3O"]
    assert [packed[0][row[0]] for row in best] == [1380662]


def test_what_cannot_be_taken_apart_explains_nothing() -> None:
    assert packed_fragments(spectrum(), candidate("no molecule")) == []
    assert packed_fragments(spectrum(), candidate(adduct="[nonsense")) == []
