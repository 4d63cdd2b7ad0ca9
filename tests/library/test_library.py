"""Opening and searching a library; damage is reported in one line that says what to do."""

import dataclasses
import shutil

import numpy as np
import pytest

from mzseek.core.errors import LibraryError, SpectrumError
from mzseek.library import KINDS, Library
from mzseek.library.library import MANIFEST, MOLECULE_OF, POINTERS, RECORDS


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


def test_tables_of_a_library_and_of_matches(library: Library, spectra) -> None:
    rows = {row["what"]: row["count"] for row in library.to_table()}
    assert (rows["spectra"], rows["molecules"], rows["positive mode"]) == (40, 5, 40)
    matches = library.search(spectra[2:4], top=4)
    rows = list(matches.to_table())
    assert len(rows) == len(matches) == 8
    assert [row["query"] for row in rows] == ["s2"] * 4 + ["s3"] * 4
    assert [row["rank"] for row in rows] == [1, 2, 3, 4] * 2
    expected = {"identifier": "s3", "license": "CC BY", "source": "reference.mgf",
                "formula": "C8H10N4O2", "mass_difference": 0}  # fmt: skip
    assert {name: rows[4][name] for name in expected} == expected
    assert rows[4]["score"] == pytest.approx(1)
    nothing = library.search(spectra[:1], among=np.zeros(len(library), bool))
    assert (len(nothing), list(nothing.to_table())) == (0, [])


def test_damaged_files_are_refused(library: Library) -> None:
    for name, array, message in (
        (POINTERS, np.zeros(3, np.int64), r"pointers.npy: holds int64 .* build it again$"),
        (MOLECULE_OF, np.full(40, 99, np.int32), r"molecule_of.npy: is damaged .* build it again$"),
    ):
        kept = (library.folder / name).read_bytes()
        np.save(library.folder / name, array)
        with pytest.raises(LibraryError, match=message):
            Library.load(library.folder, library.manifest)
        (library.folder / name).write_bytes(kept)
    shutil.copy(library.folder / "molecules.parquet", library.folder / RECORDS)
    with pytest.raises(LibraryError, match=r"records\.parquet: has other columns or rows"):
        Library.load(library.folder, library.manifest)
    (library.folder / RECORDS).write_bytes(b"PAR1")
    with pytest.raises(LibraryError, match=r"records\.parquet: cannot be read"):
        Library.load(library.folder, library.manifest)


def test_a_folder_of_another_kind_is_refused(tmp_path) -> None:
    with pytest.raises(LibraryError, match="there is no such folder"):
        MANIFEST.read(tmp_path / "none")
    (tmp_path / "manifest.json").write_text('{"kind": "molecule database"}')
    with pytest.raises(LibraryError, match="is a molecule database, expected a spectral library"):
        MANIFEST.read(tmp_path)


def test_a_library_in_memory_finds_what_the_folder_finds(library: Library, spectra) -> None:
    parts = (library.peaks, library.ions, library.molecule_of, library.records, library.molecules)
    again = Library.from_arrays(library.folder, *parts)
    own, other = (each.search(spectra, "cosine", top=3) for each in (library, again))
    assert own.records.tolist() == other.records.tolist()
    assert own.scores.tolist() == other.scores.tolist()
    assert again.to_table().columns["count"][:3] == library.to_table().columns["count"][:3]
    for index, wrong, message in (
        (1, library.ions._replace(modes=library.ions.modes[:-1]), "arrays of other lengths"),
        (2, np.full(len(library), 99), "is damaged"),
        (3, library.records.slice(1), "other columns or rows"),
        (4, library.records, "other columns or rows"),
    ):
        with pytest.raises(LibraryError, match=message):
            Library.from_arrays(library.folder, *parts[:index], wrong, *parts[index + 1 :])
