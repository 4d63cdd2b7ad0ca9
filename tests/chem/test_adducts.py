import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem

from mzseek.chem import adducts
from mzseek.chem.adducts import (
    ELEMENT_MASSES,
    fitting_adducts,
    known_adducts,
    neutral_mass,
    parse_adduct,
    precursor_mz,
)
from mzseek.core.errors import AdductError

GLUCOSE = 180.06338810


@pytest.mark.parametrize(
    ("adduct", "expected"),
    [  # Calculated by hand from CODATA and AME masses, to 1e-4.
        ("[M+H]+", 181.0707), ("[M+Na]+", 203.0526), ("[M+K]+", 219.0265), ("[M+NH4]+", 198.0972),
        ("[M+H-H2O]+", 163.0601), ("[M+2H]2+", 91.0390), ("[2M+H]+", 361.1341),
        ("[M-H]-", 179.0561), ("[M+Cl]-", 215.0328), ("[M+FA-H]-", 225.0616),
    ],
)  # fmt: skip
def test_precursor_of_glucose(adduct: str, expected: float) -> None:
    assert precursor_mz(GLUCOSE, adduct) == pytest.approx(expected, abs=1.1e-4)


def test_element_masses_are_rdkits() -> None:
    table = Chem.GetPeriodicTable()
    for symbol, mass in ELEMENT_MASSES.items():
        assert mass == pytest.approx(table.GetMostCommonIsotopeMass(symbol), abs=1e-6), symbol


@given(st.sampled_from(known_adducts()), st.floats(50, 2000))
def test_mass_and_mz_are_inverse(adduct: str, mass: float) -> None:
    assert neutral_mass(precursor_mz(mass, adduct), adduct) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("M+H", "[M+H]+"), ("M-H", "[M-H]-"), ("2M+Na", "[2M+Na]+"), ("[M+2H]++", "[M+2H]2+"),
        ("[M+2H]+2", "[M+2H]2+"), ("[M-H2O+H]+", "[M+H-H2O]+"), ("[M+HCOO]-", "[M+FA-H]-"),
        ("[M+HCOOH-H]-", "[M+FA-H]-"), ("[M+CH3COO]-", "[M+HAc-H]-"), ("[M]+*", "[M]+"),
        (" [M + H]+ ", "[M+H]+"), ("[M+H]1+", "[M+H]+"), ("[M+H-C8H10O]+", "[M+H-C8H10O]+"),
        ("[M+H]⁺", "[M+H]+"), ("(M+H)+", "[M+H]+"), ("MH+", "[M+H]+"), ("[M+OAc]-", "[M+HAc-H]-"),
        ("[M-H2O]+.", "[M-H2O]+"), ("[M+NH3]+", "[M+NH3]+"), ("[M]2+", "[M]2+"),
    ],
)  # fmt: skip
def test_spellings(written: str, name: str) -> None:
    assert parse_adduct(written).name == name


def test_every_known_name_is_its_own_spelling() -> None:
    assert [parse_adduct(name).name for name in known_adducts()] == list(known_adducts())


@pytest.mark.parametrize(
    "text",
    ["", "H", "[M+H", "M+H]+", "[M+Zz]+", "[M+H]", "[0M+H]+", "[M+H]0+", "[M+H]-", "[M+Na]2+",
     "[M+Cl]+", "[M+H]+/[M+Na]+", "[M+?]+", "M", "garbage", "M+2H2+", "[M+13C+H]+", "[M+Cl37]-",
     "[M]5+", "[M-H]3+", "[M+" + "9" * 400 + "H]+", "[" + "9" * 5000 + "M+H]+"],
)  # fmt: skip
def test_impossible_adducts_are_refused_in_one_line(text: str) -> None:
    if text == "[M+H]":  # states no charge, but a proton brings one
        assert parse_adduct(text).charge == 1
        return
    with pytest.raises(AdductError) as caught:
        parse_adduct(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_unknown_adduct_lists_the_known_ones() -> None:
    with pytest.raises(AdductError, match=r"\[M\+H\]\+.*\[M\+NH4\]\+.*\[2M\+H\]\+.*\[M\+FA-H\]-"):
        parse_adduct("[M+Zz]+")


@pytest.mark.parametrize("mass", [0.0, -1.0, math.nan, math.inf, "CCO"])
def test_masses_must_be_positive_numbers(mass: float) -> None:
    with pytest.raises(AdductError, match="is not a positive number"):
        precursor_mz(mass, "[M+H]+")
    with pytest.raises(AdductError, match="is not a positive number"):
        neutral_mass(mass, "[M+H]+")


def test_an_ion_has_a_name_and_loses_no_more_than_there_is() -> None:
    with pytest.raises(AdductError, match="None is no adduct"):
        precursor_mz(100.0, None)  # type: ignore[arg-type]
    with pytest.raises(AdductError, match="loses more"):
        precursor_mz(10.0, "[M+H-H2O]+")


def test_an_endless_text_is_refused_and_not_kept() -> None:
    before = adducts._parse.cache_info().currsize
    for length in (201, 5_000_000):
        with pytest.raises(AdductError, match="is not an adduct") as caught:
            parse_adduct("[" + "M" * length + "]+")
        assert len(str(caught.value)) < 1_000
    assert adducts._parse.cache_info().currsize == before


@pytest.mark.parametrize("name", known_adducts())
def test_a_known_ion_is_found_again_from_its_mz(name: str) -> None:
    adduct = parse_adduct(name)
    mode, other = ("positive", "negative")[:: 1 if adduct.charge > 0 else -1]
    for mass in (151.0633, 487.2, 1203.5):
        mz = adduct.precursor_mz(mass)
        for charge in (None, adduct.charge):
            assert adduct in fitting_adducts(mz * (1 + 4e-6), mass, 5.0, charge)
        assert fitting_adducts(mz, mass, 5.0, adduct.charge, mode) == [adduct]
        assert adduct not in fitting_adducts(mz, mass, 5.0, None, other)
    # Parts weigh what the adduct adds.
    text = "".join(f"{number:+d}{part}" for number, part in adduct.parts)
    sign = "+" if adduct.charge > 0 else "-"
    assert parse_adduct(f"[{adduct.molecules}M{text}]{abs(adduct.charge)}{sign}") == adduct


def test_ions_that_only_the_electron_tells_apart_are_two() -> None:
    mass = 300.0
    assert [a.name for a in fitting_adducts(300.0, mass, 20.0)] == ["[M]+", "[M]-"]
    assert [a.name for a in fitting_adducts(300.0, mass, 20.0, mode="negative")] == ["[M]-"]
    assert fitting_adducts(311.3, mass, 20.0) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[M+H-2H2O]+", "[M+H-H2O-H2O]+"),
        ("[M+H-2H2O]+", "[M-H2O-H2O+H]+"),
        ("[M+2Na-H]+", "[M+Na-H+Na]+"),
        ("[M+FA-H]-", "[M-H+HCOOH]-"),
    ],
)
def test_one_ion_in_two_spellings_is_equal_to_the_last_digit(one: str, other: str) -> None:
    assert parse_adduct(one) == parse_adduct(other)


@pytest.mark.parametrize("text", ["[M+I-H-0O]+", "[M+0H]+", "[M+H-H2O0]+", "[M+H0]+"])
def test_none_of_something_is_no_part_of_an_ion(text: str) -> None:
    with pytest.raises(AdductError, match=r"has 0 of|has the unknown part"):
        parse_adduct(text)
