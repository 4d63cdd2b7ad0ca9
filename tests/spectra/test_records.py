"""Rules by which fields of a record become a spectrum; test_bad_input.py has plain errors."""

import numpy as np
import pytest

from mzseek.core.errors import SpectrumError
from mzseek.spectra import Spectrum
from mzseek.spectra.records import Record, to_spectrum


def record_of(*fields: tuple[str, str]) -> Record:
    record = Record("test", mz=np.array([50.0, 60.0]), intensities=np.array([1.0, 2.0]))
    for key, value in fields:
        record.add(key, value)
    return record


def spectrum(**fields: str) -> Spectrum:
    return to_spectrum(record_of(*fields.items()))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"pepmass": "445.12"}, 445.12),
        ({"pepmass": "445,12 1000"}, 445.12),
        ({"pepmass": "445.12\t1000\t2+", "charge": "2+"}, 445.12),
        ({"PrecursorMZ": "445.12", "pepmass": "445"}, 445.12),
        ({"precursor_mz": "0", "pepmass": "445.12"}, 445.12),
        ({"precursor_mz": "600.1/445.12"}, 445.12),
        ({"parent_mass": "194.0804", "adduct": "[M+H]+"}, 195.0877),
        ({"precursor_mz": "n/a", "exactmass": "194.0804", "adduct": "M+H"}, 195.0877),
    ],
)
def test_precursor(fields: dict[str, str], expected: float) -> None:
    assert spectrum(**fields).precursor_mz == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parent_mass": "194.08"}, "no precursor.*only parent_mass 194.08"),
        ({"adduct": "[M+H]+"}, "no precursor"),
        ({"pepmass": "100", "adduct": "[M+Zz]+"}, r"adduct '\[M\+Zz\]\+' has the unknown part"),
        ({"pepmass": "100", "adduct": "[M+H]+", "charge": "2"}, r"charge 2 contradicts adduct"),
        ({"pepmass": "100", "adduct": "[M+H]+", "charge": "2+"}, r"charge 2\+ contradicts adduct"),
        ({"pepmass": "100", "ms_level": "MS"}, "is an MS1 spectrum"),
        ({"pepmass": "100", "num_peaks": "9" * 5000}, "says it has 999"),
        ({"pepmass": "200.1", "precursor_mz": "400"}, "states two precursor m/z, 200.1 and 400"),
        ({"pepmass": "100", "adduct": "[M+?]-", "charge": "2+"}, "contradicts"),
        ({"pepmass": "100", "ms_level": "MS", "instrument_type": "GC-EI-TOF"}, "is an EI spectrum"),
        ({"pepmass": "100", "ms_level": "1.0"}, "is an MS1 spectrum"),
        ({"pepmass": "100", "ms_level": "MS1 scan"}, "is an MS1 spectrum"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(SpectrumError, match=message):
        spectrum(**fields)


@pytest.mark.parametrize(
    ("fields", "charge"),
    [
        ({"charge": "1"}, 1),
        ({"charge": "1", "ionmode": "negative"}, -1),
        ({"charge": "1", "adduct": "[M-H]-"}, -1),
        ({"adduct": "[M+2H]2+"}, 2),
        ({"charge": "0"}, None),
        ({"ionmode": "positive"}, None),
        ({"adduct": "[M+?]+"}, 1),
        ({"charge": "-1+", "ionmode": "Negative"}, -1),
        ({"charge": "1-", "ionmode": "Negative"}, -1),
        ({"charge": "-1", "ionmode": "Negative"}, -1),
        ({"charge": "-2+"}, -2),
        ({"charge": "2+"}, 2),
    ],
)
def test_charge(fields: dict[str, str], charge: int | None) -> None:
    assert spectrum(pepmass="100", **fields).charge == charge


@pytest.mark.parametrize(
    ("fields", "charge", "conflict"),
    [
        ({"charge": "1+", "ion": "[M-H]-"}, -1, "charge 1+ beside adduct [M-H]-"),
        ({"charge": "1-", "adduct": "[M+H]+"}, 1, "charge 1- beside adduct [M+H]+"),
        ({"ionmode": "negative", "adduct": "[M+H]+"}, 1, "negative ion mode beside adduct [M+H]+"),
        ({"ionmode": "Positive", "adduct": "M-H"}, -1, "positive ion mode beside adduct [M-H]-"),
        ({"ionmode": "positive", "adduct": "[M+?]-"}, -1, "positive ion mode beside adduct [M+?]-"),
    ],
)
def test_the_adduct_decides_the_polarity(fields, charge: int, conflict: str) -> None:
    got = spectrum(pepmass="100", **fields)
    assert got.charge == charge
    assert got.metadata["polarity_conflict"] == f"{conflict}: the adduct was used"
    assert got.metadata["ionmode"] == ("positive" if charge > 0 else "negative")


def test_the_ion_mode_decides_over_a_plus_that_programs_write_by_default() -> None:
    got = spectrum(pepmass="100", charge="1+", ionmode="negative")
    assert got.charge == -1
    assert got.metadata["polarity_conflict"] == (
        "charge 1+ beside negative ion mode: the ion mode was used"
    )
    assert "polarity_conflict" not in spectrum(pepmass="100", charge="-1+", ionmode="n").metadata


@pytest.mark.parametrize(
    "key", ["ION", "ADDUCT", "ADDUCTIONNAME", "PRECURSORTYPE", "Precursor_type"]
)
def test_names_of_the_adduct(key: str) -> None:
    assert spectrum(pepmass="100", **{key: "[M+Na]+"}).adduct == "[M+Na]+"


def test_what_is_no_adduct_is_kept_and_harms_nothing() -> None:
    got = spectrum(pepmass="100", ION="ESI")
    assert (got.adduct, got.metadata["ion"]) == (None, "ESI")
    got = spectrum(pepmass="100", ionization="ESI", precursor_type="[M+H]+")
    assert got.adduct == "[M+H]+"
    got = spectrum(pepmass="100", adduct="[M+CH3COO]-/[M-CH3]-")
    assert (got.adduct, got.metadata["adduct_as_given"]) == (None, "[M+CH3COO]-/[M-CH3]-")
    assert spectrum(pepmass="100", adduct="M", ionmode="positive").adduct == "[M]+"


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        ("RTINSECONDS", "438.2", "438.2 s"),
        ("RTINMINUTES", "7.3", "7.3 min"),
        ("RTINSECONDS", "7.3 min", "7.3 min"),
        ("RETENTIONTIME", "7.3", "7.3"),
        ("RT", "438 s", "438 s"),
    ],
)
def test_retention_times_have_the_unit_of_their_field(key: str, value: str, kept: str) -> None:
    assert spectrum(pepmass="100", **{key: value}).metadata["retention_time"] == kept


def test_several_values_of_one_field() -> None:
    record = record_of(("pepmass", "100"), ("adduct", "M+H"), ("adduct", "[M+H]+"))
    assert to_spectrum(record).adduct == "[M+H]+"  # the same, spelt twice
    record.add("adduct", "[M+Na]+")
    with pytest.raises(SpectrumError, match="states two adducts"):
        to_spectrum(record)
    got = spectrum(pepmass="100", **{"Ion Mode": "Positive", "COMPUTED_SMILES": "CCO"})
    assert (got.metadata["ionmode"], got.metadata["smiles"]) == ("positive", "CCO")
    record = record_of(("SMILES", "n/a"), ("smiles", "CCO"), ("smiles", "CCC"))
    assert record.fields["smiles"] == "CCO"
    # Another name of a field may say more.
    record = record_of(("pepmass", "100"), ("smiles", "OCC"), ("computed SMILES", "CCO"))
    assert to_spectrum(record).metadata["smiles"] == "OCC"


@pytest.mark.parametrize("text", ["1e999", "inf", "-inf eV", "Infinity", "1" * 5000, "1e39 V"])
@pytest.mark.parametrize("name", ["collision_energy", "retention_time", "parent_mass"])
def test_a_quantity_that_is_not_finite_shows_a_damaged_record(name: str, text: str) -> None:
    with pytest.raises(SpectrumError, match=r"is not a finite number") as caught:
        spectrum(pepmass="100", **{name: text})
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    "text", ["nan", "n/a", "unknown", "20-35", "HCD 30", "30 eV", "10, 20, 40"]
)
def test_an_energy_in_words_is_kept_as_it_is(text: str) -> None:
    got = spectrum(pepmass="100", collision_energy=text)
    assert got.metadata.get("collision_energy") in {None, text}


def test_fields_past_the_bounds_are_not_kept() -> None:
    record = record_of(*((f"key{number}", "1") for number in range(20_000)))
    assert len(record.fields) == 10_000
    assert record.problem == "has more than 10,000 fields"
    record = record_of(*[("adduct", "x" * 1_000)] * 5_000)
    assert sum(map(len, record.values("adduct"))) <= 4_000_000
    assert record.problem == "has fields of more than 4,000,000 characters"
    record = record_of(("k" * 2_000, "1"))
    assert record.fields == {}
    assert "longer than 1,000 characters" in str(record.problem)


@pytest.mark.parametrize(
    ("key", "first", "second", "what"),
    [
        ("SMILES", "CCO", "CCN", "SMILES"),
        ("InChI", "InChI=1S/CH4/h1H4", "InChI=1S/H2O/h1H2", "InChI"),
        ("INCHIKEY", "A", "B", "InChIKeys"),
        ("Formula", "CH4", "H2O", "formulas"),
        ("SpectrumID", "1", "2", "identifiers"),
        ("ExactMass", "1", "2", "parent masses"),
    ],
)
def test_a_record_is_one_thing(key: str, first: str, second: str, what: str) -> None:
    record = record_of(("pepmass", "100"), (key, "N/A"), (key, first), (key.upper(), first))
    assert record.problem is None  # said twice, the same
    record.add(key, second)
    with pytest.raises(SpectrumError, match=f"states two {what}, '{first}' and '{second}'"):
        to_spectrum(record)


def test_a_chain_of_precursors_tells_the_level() -> None:
    chained = spectrum(precursor_mz="288.15/172.08")
    assert (chained.precursor_mz, chained.metadata["ms_level"]) == (172.08, "3")
    assert "ms_level" not in spectrum(precursor_mz="288.15").metadata
    assert spectrum(precursor_mz="288/172", ms_level="MS3").metadata["ms_level"] == "MS3"
