"""Precision: a precursor is searched no more narrowly than it is known."""

import numpy as np
import pytest

from mzseek.annotation.features import Feature, Tolerance
from mzseek.annotation.hypotheses import as_known
from mzseek.spectra import Spectrum


def feature(*precursors, **metadata):
    spectra = [
        Spectrum(np.array([50.0]), np.ones(1), mz, "[M+H]+", 1, "s", metadata) for mz in precursors
    ]
    return Feature("f", "index", tuple(spectra))


@pytest.mark.parametrize(
    ("mz", "width"), [(181.0, 0.5), (181.1, 0.05), (181.12, 0.005), (181.123, 0.00181123)]
)
def test_half_of_the_last_digit_that_is_written(mz, width):
    tolerance, note = as_known(feature(mz), Tolerance())
    assert tolerance.of(mz) == pytest.approx(width)
    assert bool(note) == (width > 181.123e-5)


@pytest.mark.parametrize(
    ("mz", "width"),
    [(287.05499267578125, 0.0), (287.055541992188, 0.0), (183.1000061035156, 0.05)],
)
def test_numbers_of_32_bits_are_as_precise_as_what_they_stand_for(mz, width):
    tolerance, note = as_known(feature(mz), Tolerance())
    assert tolerance.of(mz) == pytest.approx(max(width, mz * 1e-5))
    assert bool(note) == bool(width)


def test_what_is_written_coarsely_is_said_as_written():
    assert as_known(feature(181.0), Tolerance())[1] == (
        "its precursor is written as 181: searched within 0.5 Da"
    )
    assert "written as 181.12:" in as_known(feature(181.12), Tolerance())[1]


@pytest.mark.parametrize(
    "instrument",
    ["LC-ESI-QQ", "LC-ESI-QQQ", "GC-EI-Q", "LC-ESI-IT", "QIT", "Triple Quadrupole", "Ion trap",
     "EI-B", "Quadrupole"],
)  # fmt: skip
def test_instruments_of_nominal_masses(instrument):
    tolerance, note = as_known(feature(132.1512, instrument_type=instrument), Tolerance())
    assert tolerance.of(132.1512) == 0.5
    assert instrument in note


@pytest.mark.parametrize(
    "instrument",
    ["LC-ESI-QTOF", "LC-ESI-ITFT", "LC-ESI-QFT", "LC-ESI-ITTOF", "Orbitrap", "Q Exactive",
     "ESI-QTOF", "Quadrupole time of flight", "Ion trap orbitrap", ""],
)  # fmt: skip
def test_instruments_of_exact_masses(instrument):
    known = as_known(feature(132.1512, instrument_type=instrument), Tolerance())
    assert known == (Tolerance(), "")


def test_a_tolerance_of_the_user_stays():
    given = Tolerance.parse("5 ppm")
    assert as_known(feature(181.0, instrument_type="LC-ESI-QQ"), given) == (given, "")


def test_a_wider_tolerance_stays():
    wide = Tolerance(0.0, 1.0)
    assert as_known(feature(181.0), wide) == (wide, "")


def test_the_coarsest_spectrum_counts():
    assert as_known(feature(181.1234, 181.1), Tolerance())[0].least == 0.05
