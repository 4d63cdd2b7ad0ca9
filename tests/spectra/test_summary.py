import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from mzseek.spectra import Spectrum, read_spectra
from mzseek.spectra.summary import Distinct, Extent, Summary, Tally

CAFFEINE, ETHANOL = "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "CCO"


def spectrum(peaks=3, precursor=200.0, adduct="[M+H]+", charge=1, identifier="x", **metadata):
    mz = np.arange(50.0, 50.0 + peaks)
    return Spectrum(mz, np.ones(peaks), precursor, adduct, charge, identifier, metadata)


def summed(*spectra: Spectrum) -> Summary:
    summary = Summary()
    for each in spectra:
        summary.add(each)
    return summary


def test_counts_ranges_and_medians() -> None:
    found = summed(
        spectrum(3, 100.5), spectrum(5, 300.25, "[M-H]-", -1, ionmode="negative"),
        spectrum(10, 200.0, None, None), spectrum(1, 250.0, None, 1, adduct_as_given="[M+?]+"),
    )  # fmt: skip
    assert found.read == 4
    assert found.peak_counts() == (4.0, 1, 10)
    assert found.precursors.to_dict() == {"lowest": 100.5, "highest": 300.25, "count": 4}
    assert dict(found.adducts.values) == {"[M+H]+": 1, "[M-H]-": 1, "[M+?]+": 1}
    assert found.adducts.none_given == 1
    # Where no mode is stated the adduct tells it; a bare charge has a sign only by custom.
    assert dict(found.modes.values) == {"positive": 1, "negative": 1}
    assert found.modes.none_given == 2


@pytest.mark.parametrize("counts", [[7], [2, 9], [5, 1, 1], [4, 4, 1, 9, 9, 9]])
def test_the_median_is_that_of_all_spectra(counts: list[int]) -> None:
    assert summed(*map(spectrum, counts)).peak_counts() == (
        np.median(counts), min(counts), max(counts),
    )  # fmt: skip


def test_levels_and_energies_count_in_one_spelling() -> None:
    found = summed(
        *(spectrum(ms_level=level) for level in ("2", "MS2", "2.0", "ms3", "odd")),
        *(spectrum(collision_energy=energy) for energy in ("60", "60.0", "60 eV", "35 (NCE)")),
    )
    assert dict(found.levels.values) == {"MS2": 3, "MS3": 1, "odd": 1}
    assert dict(found.energies.values) == {"60": 2, "60 eV": 1, "35 (NCE)": 1}


def test_retention_times_are_kept_apart_by_their_unit() -> None:
    texts = ["60 s", "90.5 sec", "PT30S", "1.5 min", "9 minutes", "7", "unknown", "3-5 min"]
    found = summed(*(spectrum(retention_time=text) for text in texts))
    ranges = {unit: (each.lowest, each.highest, each.count) for unit, each in found.times.items()}
    assert ranges == {"s": (30.0, 90.5, 3), "min": (1.5, 9.0, 2), "": (7.0, 7.0, 1)}


def test_molecules_count_once_by_inchikey_or_by_text() -> None:
    found = summed(
        spectrum(smiles=CAFFEINE), spectrum(smiles=CAFFEINE), spectrum(inchi="InChI=1S/x"),
        spectrum(smiles="OCC", inchikey="LFQSCWFLJHTTHZ-UHFFFAOYSA-N"),
        spectrum(smiles=ETHANOL, inchi="InChI=1S/y", inchikey="LFQSCWFLJHTTHZ"),
        spectrum(inchikey="LFQSCWFLJHTTHZ"), spectrum(),
    )  # fmt: skip
    assert (found.with_smiles, found.with_inchi, found.with_structure) == (4, 2, 5)
    assert (found.molecules.count, found.molecules.is_exact) == (3, True)


def test_names_that_were_numbered_are_noticed(tmp_path: Path) -> None:
    record = "BEGIN IONS\nTITLE={}\nPEPMASS=100\n50 1\nEND IONS\n"
    path = tmp_path / "a.mgf"
    path.write_text("".join(map(record.format, ["a", "a", "a", "b #2", "c"])))
    assert summed(*read_spectra(path, [])).renamed == 2


def test_records_are_those_read_and_those_set_aside(tmp_path: Path) -> None:
    (tmp_path / "a.mgf").write_text("BEGIN IONS\nPEPMASS=100\n50 1\nEND IONS\n")
    (tmp_path / "b.mgf").write_text("BEGIN IONS\nPEPMASS=100\nEND IONS\n")
    (tmp_path / "c.msp").write_text("Name: x\nPrecursorMZ: 100\nNum Peaks: 1\n50 1\n")
    (tmp_path / "notes.md").write_text("of another kind")
    summary = Summary()
    for each in read_spectra(tmp_path, summary.skipped):
        summary.add(each)
    assert (summary.records, summary.read, summary.skipped.total) == (4, 2, 2)
    facts = json.loads(json.dumps(summary.to_dict()))
    assert facts["records"] == facts["read"] + facts["set_aside"]
    assert {each["kind"] for each in facts["rejects"]} >= {"no-peaks"}


def test_nothing_read_is_a_summary_too() -> None:
    facts = json.loads(json.dumps(Summary().to_dict()))
    assert facts["records"] == 0
    assert facts["peaks"] is None
    assert facts["precursor_mz"] is None


def test_tallies_and_extents() -> None:
    tally = Tally()
    for value in ("a", None, "b", "a", " a "):
        tally.add(value)
    assert dict(tally.values) == {"a": 3, "b": 1}
    assert (tally.total, tally.none_given, tally.not_listed) == (4, 1, 0)
    assert tally.to_dict() == {"values": {"a": 3, "b": 1}, "not_listed": 0, "none_given": 1}
    extent = Extent()
    assert extent.to_dict() is None
    extent.add(2.5)
    assert extent.to_dict() == {"lowest": 2.5, "highest": 2.5, "count": 1}


def test_counts_add_up_however_many_values_there_are() -> None:
    tally = Tally()
    tracemalloc.start()
    for number in range(50_000):
        tally.add(f"value {number} " + "x" * 300)
        tally.add("usual")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6
    assert tally.total == 100_000
    assert tally.values["usual"] == 50_000
    assert tally.not_listed == tally.total - tally.values.total() > 0
    assert max(map(len, tally.values)) <= 80


@pytest.mark.parametrize("number", [0, 1, 255, 256])
def test_distinct_texts_are_counted_exactly_where_all_are_kept(number: int) -> None:
    distinct = Distinct(256)
    for _ in range(3):
        for text in range(number):
            distinct.add(str(text))
    assert (distinct.count, distinct.is_exact) == (number, True)
    distinct = Distinct()
    distinct.add("\udcff")  # no Unicode
    assert distinct.count == 1


def test_beyond_that_the_estimate_is_as_near_as_it_says() -> None:
    distinct = Distinct(1 << 12)
    for number in range(60_000):
        distinct.add(f"molecule {number}")
        distinct.add(f"molecule {number // 2}")
    assert not distinct.is_exact
    assert distinct.count == pytest.approx(60_000, rel=4 / 64)  # four standard errors of 1 / √4096
