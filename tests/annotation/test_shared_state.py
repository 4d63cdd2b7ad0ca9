"""Spectra of a user's libraries: compact, merged with what is known, and counted."""

import dataclasses

import numpy as np
import pytest

from mzseek.annotation.shared_state import (
    SharedState,
    extend_channels,
    extension_lines,
    library_spectra,
)
from mzseek.annotation.sources import file_source
from mzseek.bundle import Bundle
from mzseek.library import Library

NEW = "CCOC(=O)c1ccc(N)cc1OCCCl"
PEAKS = ([60.05, 77.0386, 120.0444], [0.2, 1.0, 0.6])


def analogs_of(fitted):
    place = [channel.label for channel in fitted.channels].index("analogs")
    return fitted.states[place]


def test_new_molecules_are_added_and_the_bundle_stays_as_it_is(bundle, make_library):
    before = {name: np.array(own) for name, own in analogs_of(bundle.fitted).arrays.items()}
    library = Library.open(make_library([(NEW, "[M+H]+", *PEAKS)]))
    fitted, added = extend_channels(bundle.fitted, [library])
    assert added == {"analogs": {"spectra": 1, "molecules": 1, "left_out": 0}}
    after = analogs_of(fitted).arrays
    assert after["molecule_of"].tolist() == [*before["molecule_of"].tolist(),
                                             before["molecule_of"].max() + 1]  # fmt: skip
    assert after["mz"][-3:] == pytest.approx(PEAKS[0])
    assert after["heights"][-3:] == pytest.approx(PEAKS[1])
    for name, own in before.items():
        assert np.array_equal(analogs_of(bundle.fitted).arrays[name], own)


def test_what_the_bundle_has_already_adds_nothing(bundle):
    fitted, added = extend_channels(bundle.fitted, [bundle.library, bundle.library])
    assert added["analogs"] == {"spectra": 0, "molecules": 0, "left_out": 0}
    assert analogs_of(fitted) is analogs_of(bundle.fitted)


def test_a_known_molecule_gets_new_spectra_and_stays_one(bundle, make_library):
    smiles = bundle.library.molecules["smiles"][0].as_py()
    library = Library.open(make_library([(smiles, "[M+H]+", *PEAKS)]))
    fitted, added = extend_channels(bundle.fitted, [library])
    assert added["analogs"] == {"spectra": 1, "molecules": 0, "left_out": 0}
    assert analogs_of(fitted).arrays["molecule_of"][-1] == 0
    assert np.array_equal(analogs_of(fitted).inchikey14, analogs_of(bundle.fitted).inchikey14)


def test_no_order_of_records_or_libraries_shows(bundle, make_library):
    rows = [(NEW, "[M+H]+", *PEAKS), ("CCCCCCCCCCN", "[M+H]+", [60.0, 61.0], [1.0, 0.5]),
            (NEW, "[M+Na]+", [77.0386], [1.0])]  # fmt: skip
    one = extend_channels(bundle.fitted, [Library.open(make_library(rows))])
    parts = [Library.open(make_library(rows[::-1][:2])), Library.open(make_library(rows[:2]))]
    two = extend_channels(bundle.fitted, parts)
    assert one[1] == two[1]
    assert one[1]["analogs"]["spectra"] == 3
    first, second = analogs_of(one[0]), analogs_of(two[0])
    assert set(first.arrays) == set(second.arrays)
    for name, own in first.arrays.items():
        assert np.array_equal(own, second.arrays[name])
    assert np.array_equal(first.inchikey14, second.inchikey14)


def test_spectra_are_as_compact_as_the_bundles(bundle, make_library):
    rows = [(NEW, "[M+H]+", np.arange(50.0, 90.0) + 1.23456789e-6, np.linspace(0.1, 1, 40))]
    made = library_spectra([Library.open(make_library(rows))], 7)
    assert len(made.peaks.values) == 7
    assert np.array_equal(made.peaks.values, made.peaks.values.round(5))
    assert bundle.max_peaks == 100


def test_no_libraries_add_nothing(bundle):
    assert len(library_spectra([])) == 0
    fitted, added = extend_channels(bundle.fitted, [])
    assert added == {}
    assert all(a is b for a, b in zip(fitted.states, bundle.fitted.states, strict=True))


def test_channels_that_take_in_nothing_are_left_as_they_are(bundle, make_library):
    library = Library.open(make_library([(NEW, "[M+H]+", *PEAKS)]))
    fitted = bundle.fitted
    others = [at for at, channel in enumerate(fitted.channels) if channel.label != "analogs"]
    rest = dataclasses.replace(
        fitted,
        channels=[fitted.channels[at] for at in others],
        states=[fitted.states[at] for at in others],
    )
    made, added = extend_channels(rest, [library])
    assert added == {}
    assert all(a is b for a, b in zip(made.states, rest.states, strict=True))


def test_what_is_left_out_is_said():
    (line,) = extension_lines({"analogs": {"spectra": 3, "molecules": 2, "left_out": 1_000}})
    assert line == (
        "Your libraries add 3 spectra to analogs, with 2 new molecules; spectra of 1,000 further "
        "molecules are for matches only."
    )
    assert extension_lines({}) == []


def test_the_shipped_bundle_takes_in_spectra_too(make_library):
    """Its molecules are found again by their fingerprints."""
    bundle = Bundle.open()
    smiles = bundle.library.molecules["smiles"].to_pylist()[:20]
    library = Library.open(make_library([(each, "[M+H]+", *PEAKS) for each in smiles]))
    _, added = extend_channels(bundle.fitted, [library])
    assert added["analogs"]["molecules"] == 0
    assert added["analogs"]["spectra"] + added["analogs"]["left_out"] == 20
    assert added["analogs"]["left_out"] <= 1


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("feature,smiles,name\n1,CCO,ethanol\n2,CCC,\n2,CCO,ethanol\n")
    return file_source(path, [])


def test_states_and_candidates_come_back_bit_by_bit(bundle, make_library, source, tmp_path):
    row = ("CCOC(=O)c1ccc(N)cc1OCCCl", "[M+H]+", [60.05, 77.0386], [0.2, 1.0])
    fitted, added = extend_channels(bundle.fitted, [Library.open(make_library([row]))])
    handed = SharedState(tmp_path)
    handed.save(source, fitted, added)
    again, said = handed.extend(bundle.fitted)
    assert said == added
    for one, two in zip(fitted.states, again.states, strict=True):
        for name in one.arrays:
            assert np.array_equal(one.arrays[name], two.arrays[name])
            assert one.arrays[name].dtype == two.arrays[name].dtype
        assert np.array_equal(one.inchikey14, two.inchikey14)
    assert handed.source().of_feature("2") == source.of_feature("2")


def test_nothing_is_handed_where_there_is_nothing(bundle, tmp_path):
    handed = SharedState(tmp_path)
    handed.save(None, bundle.fitted, {})
    assert list(tmp_path.iterdir()) == []
    assert handed.extend(bundle.fitted) == (bundle.fitted, {})
