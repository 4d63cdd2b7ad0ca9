"""Real spectra of a bundle as a data set: split by structure, each list with its molecule."""

import gzip
import json

import pytest

from mzseek.bundle.subset import write_subset
from mzseek.core.errors import BundleError
from mzseek.datasets.files import read_table


@pytest.fixture
def files(bundle, tmp_path):
    return write_subset(bundle, tmp_path / "set", spectra=30, per_molecule=1, candidates=6)


def spectra(files):
    rejects = []
    found = list(read_table(files.spectra, lambda where, reason: rejects.append(reason)))
    assert rejects == []
    return found


def test_spectra_are_the_librarys(files, bundle):
    found = spectra(files)
    assert 20 <= len(found) <= 30
    assert {per_molecule.identifier for per_molecule in found} <= set(
        bundle.library.records["identifier"].to_pylist()
    )
    assert {per_molecule.metadata["fold"] for per_molecule in found} == {"train", "val", "test"}


def test_one_spectrum_of_each_molecule_where_that_is_asked(files):
    molecules = [per_molecule.metadata["smiles"] for per_molecule in spectra(files)]
    assert len(molecules) == len(set(molecules))


def test_lists_hold_their_molecule_among_those_of_near_mass(files, bundle):
    lists = json.loads(gzip.decompress(files.candidates["mass"].read_bytes()))
    assert set(lists) == {per_molecule.metadata["smiles"] for per_molecule in spectra(files)}
    for smiles, own in lists.items():
        assert smiles in own
        assert len(set(own)) == len(own) == 6
    firsts = [own.index(smiles) for smiles, own in lists.items()]
    assert len(set(firsts)) > 1  # no place gives the truth away


def test_the_same_seed_makes_the_same_bytes(files, bundle, tmp_path):
    again = write_subset(bundle, tmp_path / "again", spectra=30, per_molecule=1, candidates=6)
    assert again.spectra.read_bytes() == files.spectra.read_bytes()
    other = write_subset(
        bundle, tmp_path / "other", spectra=10, per_molecule=1, candidates=6, seed=1
    )
    assert other.spectra.read_bytes() != files.spectra.read_bytes()


def test_a_bundle_without_positive_spectra(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr("mzseek.bundle.subset._chosen", lambda *_: [])
    with pytest.raises(BundleError, match="no spectra of positive mode"):
        write_subset(bundle, tmp_path / "set")
