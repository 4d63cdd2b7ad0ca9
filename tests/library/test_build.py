"""Building a library: what is kept, what is skipped, and who may write."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import BusyError, DatasetError, InputError, LibraryError
from mzseek.io import sole_writer
from mzseek.io.skipped import read_skipped
from mzseek.library import Library


def test_peaks_molecules_licence_and_source_are_kept(library: Library, spectra) -> None:
    assert len(library) == len(spectra)
    assert len(library.molecules) == 5
    row = library.records.slice(3, 1).to_pylist()[0]
    assert row["identifier"] == "s3"
    assert (row["license"], row["source"]) == ("CC BY", "reference.mgf")
    assert (row["adduct"], row["collision_energy"]) == ("[M+H]+", "20")
    begin, end = library.peaks.pointers[3:5]
    np.testing.assert_array_equal(library.peaks.values[begin:end], spectra[3].mz)
    np.testing.assert_array_equal(library.peaks.weights[begin:end], spectra[3].intensities)
    assert isinstance(library.peaks.values, np.memmap)
    assert library.molecules["inchikey"][library.molecule_of[3]].as_py() == "RYYVLZVUVIJVGH"


RECORD = "BEGIN IONS\nSPECTRUM_ID={}\nCHARGE=1+\n{}\nEND IONS\n\n"
BROKEN = "".join(
    RECORD.format(*record)
    for record in (
        ("bad-peaks", "PEPMASS=200.0\nSMILES=CCO\n100.0 nan"),
        ("no-structure", "PEPMASS=200.0\n100.0 1.0"),
        ("bad-structure", "PEPMASS=200.0\nSMILES=C1CC\n100.0 1.0"),
        ("no-precursor", "SMILES=CCO\n100.0 1.0"),
    )
)


def test_broken_records_are_skipped_and_listed(tmp_path: Path, write, spectra) -> None:
    source = write(tmp_path / "a.mgf", spectra[:3])
    source.write_text(source.read_text() + BROKEN)
    made = Library.build([source], tmp_path / "library")
    assert len(made) == 3
    skipped = read_skipped(made.folder / "rejects.tsv")
    assert len(skipped) == 4 == made.manifest["counts"]["rejects"]
    assert skipped[1] == (f"{source}: no-structure", "has no structure (SMILES or InChI)")
    made.check()


def test_duplicates_are_skipped_and_names_stay_unique(tmp_path: Path, write, draw) -> None:
    one = write(tmp_path / "one.mgf", draw(3))
    same = write(tmp_path / "same.mgf", draw(3))
    other = write(tmp_path / "other.mgf", draw(3, seed=5))
    made = Library.build([one, same, other], tmp_path / "library")
    assert len(made) == 6
    reasons = [reason for _, reason in read_skipped(made.folder / "rejects.tsv")]
    assert reasons == [f"is a duplicate (of s{number})" for number in range(3)]
    names = made.records["identifier"].to_pylist()
    assert names == ["s0", "s1", "s2", "other s0", "other s1", "other s2"]


def test_adding_is_building_of_both(tmp_path: Path, write, draw) -> None:
    one = write(tmp_path / "one.mgf", draw(6))
    other = write(tmp_path / "other.mgf", draw(7, seed=5) + draw(2))
    both = Library.build([one, other], tmp_path / "both")
    old = Library.build(one, tmp_path / "grown")
    grown = old.add(other)
    for name in both.manifest["files"]:
        ours, wanted = (library.folder / name for library in (grown, both))
        assert ours.read_bytes() == wanted.read_bytes(), name
    assert len(old.search(draw(1), top=3)) == 3  # whoever has the old one open goes on
    with pytest.raises(LibraryError, match="was replaced since it was opened"):
        old.add(other)


def test_files_that_will_not_do_leave_no_trace(tmp_path: Path, write, spectra) -> None:
    out = tmp_path / "library"
    bare = tmp_path / "bare.mgf"
    bare.write_text("BEGIN IONS\nPEPMASS=200.0\nCHARGE=1+\n100 1\nEND IONS\n")
    with pytest.raises(
        LibraryError, match=r"no usable reference spectrum in the files .*structure"
    ):
        Library.build([bare], out)
    with pytest.raises(InputError, match="no such file"):
        Library.build([tmp_path / "none.mgf"], out)
    with pytest.raises(LibraryError, match="expected at least one"):
        Library.build([], out)
    assert not out.exists()
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(DatasetError, match="is no spectral library"):
        Library.build([write(tmp_path / "a.mgf", spectra)], out)
    assert (out / "mine.txt").read_text() == "mine"


def test_two_processes_on_one_output_are_refused(tmp_path: Path, write, spectra) -> None:
    source, out = write(tmp_path / "a.mgf", spectra), tmp_path / "library"
    code = f"from mzseek.library import Library; Library.build([{str(source)!r}], {str(out)!r})"
    with sole_writer(out, "building a spectral library"):
        with pytest.raises(BusyError, match="another process is building a spectral library"):
            Library.build([source], out)
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert other.returncode != 0
    assert "BusyError" in other.stderr
    assert not out.exists()
    assert len(Library.build([source], out)) == len(spectra)
