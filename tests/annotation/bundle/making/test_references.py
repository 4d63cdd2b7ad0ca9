"""Reference spectra of a prepared folder."""

from pathlib import Path

import numpy as np

from mzseek.bundle.refit import References, references_from
from mzseek.datasets.prepared import Prepared
from mzseek.library import Library


def test_spectra_with_what_is_known_of_them(small: Prepared) -> None:
    queries = small.in_fold("val")
    name = small.identifiers[int(queries[1])]
    found = references_from(small, queries, {name: {"license": "CC0", "collision_energy": "20 eV"}})
    records = found.records.to_pylist()
    assert records[1] == {
        "identifier": name, "adduct": "[M+H]+", "collision_energy": "20 eV", "instrument_type": "",
        "contributor": "", "license": "CC0", "source": "",
    }  # fmt: skip
    assert records[0]["license"] == ""
    blocks = [small.inchikey14[small.molecule[each]].decode() for each in queries]
    assert [found.molecules[place].inchikey14 for place in found.molecule_of] == blocks
    assert set(found.ions.modes.tolist()) == {1}


def test_features_are_pairs_of_a_molecule_and_an_ion(small: Prepared) -> None:
    found = references_from(small, small.in_fold("val"), {})
    counts = found.features_by_ion()
    assert counts["positive"] == {"[M+H]+": len(found.molecules)}
    assert counts["negative"] == {}


def test_a_library_is_made_of_them_and_read_again(small: Prepared, tmp_path: Path) -> None:
    found = references_from(small, small.in_fold("val"), {})
    library = found.library(tmp_path)
    assert isinstance(library, Library)
    again = References.of_library(library)
    assert again.keys == [(key, round(mass, 6)) for key, mass in found.keys]
    assert np.array_equal(again.peaks.values, found.peaks.values)
    assert again.molecule_of.tolist() == found.molecule_of.tolist()


def test_peaks_are_made_compact(small: Prepared) -> None:
    found = references_from(small, small.in_fold("train"), {}, most_peaks=7)
    assert np.diff(found.peaks.pointers).max() == 7
