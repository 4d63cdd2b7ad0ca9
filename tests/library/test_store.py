"""Searching a library that was opened."""

import dataclasses

import numpy as np
import pytest

from mzseek.core.errors import LibraryError, SpectrumError
from mzseek.library import KINDS, Library


@pytest.mark.parametrize("kind", KINDS)
def test_every_spectrum_finds_itself_first(library: Library, spectra, kind: str) -> None:
    found = Library.open(library.folder).search(spectra, kind, top=1)
    assert found.records.tolist() == list(range(len(spectra)))
    np.testing.assert_allclose(found.scores, 1, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_peaks_changes_nothing(library: Library, draw, kind: str) -> None:
    rng = np.random.default_rng(0)
    queries = draw(10, seed=2)
    shuffled = []
    for spectrum in queries:
        order = rng.permutation(len(spectrum))
        mz, heights = spectrum.mz[order], spectrum.intensities[order]
        shuffled.append(dataclasses.replace(spectrum, mz=mz, intensities=heights))
    one, other = library.search(queries, kind), library.search(shuffled, kind)
    np.testing.assert_array_equal(one.records, other.records)
    np.testing.assert_array_equal(one.scores, other.scores)


def test_analogs_come_one_a_molecule(library: Library, spectra) -> None:
    found = library.search(spectra[0], "analog", top=5)
    assert sorted(found.molecules.tolist()) == [0, 1, 2, 3, 4]
    every = library.search(spectra[0], "analog", top=20, by_molecule=False)
    assert len(set(every.molecules.tolist())) < len(every) == 20


def test_matchms_spectra_find_the_same(library: Library, spectra) -> None:
    others = [spectrum.to_matchms() for spectrum in spectra]
    for given in (others, iter(others), others[0]):
        found = library.search(given, top=1)
        assert found.records.tolist() == list(range(len(others)))[: len(found)]
    with pytest.raises(SpectrumError, match="spectrum 2: is a str, expected a Spectrum"):
        library.search([spectra[0], "a"])


def test_the_other_mode_is_never_found(library: Library, spectra) -> None:
    other = dataclasses.replace(spectra[0], adduct="[M-H]-", charge=-1)
    unknown = dataclasses.replace(spectra[0], adduct=None, charge=None)
    assert len(library.search(other)) == 0
    assert library.search(unknown, top=1).records.tolist() == [0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "dot"}, "kind of search 'dot' is unknown, expected one of: cosine, modified"),
        ({"top": 0}, "top is 0, expected 1 to 100,000"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"precursor_ppm": -1.0}, "precursor_ppm is -1.0"),
        ({"precursor_ppm": [10.0] * 99}, "one of each spectrum"),
        ({"threads": 0}, "threads is 0"),
        ({"among": [True]}, r"among has bool of shape \(1,\), expected bool of \(40,\)"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(library: Library, spectra, options, said) -> None:
    with pytest.raises(LibraryError, match=said):
        library.search(spectra, **options)


def test_a_changed_byte_is_noticed(library: Library) -> None:
    library.check()
    path = library.folder / "mz.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(LibraryError, match=r"mz\.npy has changed; build it again"):
        Library.open(library.folder).check()


def test_a_library_shows_its_counts(library: Library) -> None:
    rows = {row["what"]: row["count"] for row in library.to_table()}
    assert (rows["spectra"], rows["molecules"], rows["positive mode"]) == (40, 5, 40)
