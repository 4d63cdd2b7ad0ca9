"""What tests of annotation share: annotations made by hand, a fitted run, and a bundle of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzseek.annotation.annotation import Annotation, Candidate, Level, Reference
from mzseek.annotation.candidates import Molecule
from mzseek.annotation.features import Feature
from mzseek.annotation.query import FeatureQuery, Hypothesis
from mzseek.bundle import Bundle
from mzseek.bundle.molecules import BundledMolecules, molecule_table
from mzseek.chem import exact_mass, precursor_mz
from mzseek.chem.molecules import describe_structure
from mzseek.library import Library
from mzseek.spectra import Spectrum

CAFFEINE, THEOBROMINE = "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "Cn1cnc2c1c(=O)[nH]c(=O)n2C"
ISOMER = "CCn1c(=O)[nH]c2ncn(C)c2c1=O"
MASS = 194.080376
CHANNELS = ("fragments", "analogs")
KINDS = {"fragments": "evidence", "analogs": "analogy"}


def a_spectrum(identifier: str = "s1", **changes: Any) -> Spectrum:
    """Caffeine's, with a peak that nothing explains."""
    facts: dict[str, Any] = {
        "mz": np.array([42.0338, 69.0447, 110.0713, 123.4, 138.0662]),
        "intensities": np.array([10.0, 25.0, 40.0, 5.0, 100.0]),
        "precursor_mz": 195.0877,
        "adduct": "[M+H]+",
        "charge": 1,
        "identifier": identifier,
        "metadata": {"retention_time": "61.5 s", "ionmode": "positive"},
    }
    return Spectrum(**(facts | changes))


def a_reference(**changes: Any) -> Reference:
    facts: dict[str, Any] = {
        "record": "MSBNK-Eawag-EA000001",
        "smiles": CAFFEINE,
        "name": "Caffeine",
        "similarity": 0.93,
        "peaks": 8,
        "tanimoto": 1.0,
        "contributor": "Eawag",
        "licence": "CC BY",
        "library": "built-in",
        "adduct": "[M+H]+",
        "precursor_mz": 195.0877,
        "mz": np.array([110.0713, 138.0662]),
        "intensities": np.array([0.4, 1.0]),
    }
    return Reference(**(facts | changes))


def a_candidate(**changes: Any) -> Candidate:
    facts: dict[str, Any] = {
        "smiles": CAFFEINE,
        "key": "RYYVLZVUVIJVGH",
        "formula": "C8H10N4O2",
        "mass": 194.080376,
        "name": "Caffeine",
        "adduct": "[M+H]+",
        "error_ppm": 0.25,
        "score": 3.5,
        "probability": 0.8,
        "in_set": True,
        "parts": (2.5, 1.0),
        "explained": 0.97,
        "peaks_explained": 4,
        "sources": ("built-in",),
        "identifiers": ("HMDB0001847", "CID2519"),
    }
    return Candidate(**(facts | changes))


def another_candidate(**changes: Any) -> Candidate:
    """An isomer of caffeine."""
    facts: dict[str, Any] = {
        "smiles": "CCn1c(=O)[nH]c2ncn(C)c2c1=O",
        "key": "AAAAAAAAAAAAAA",
        "name": "",
        "probability": 0.2,
        "score": 2.1,
        "parts": (1.5, 0.6),
        "identifiers": (),
    }
    return a_candidate(**(facts | changes))


def a_feature(name: str = "17", **changes: Any) -> Feature:
    facts: dict[str, Any] = {
        "name": name,
        "named_by": "feature_id",
        "spectra": (a_spectrum(),),
        "where": "run.mgf",
    }
    return Feature(**(facts | changes))


def an_annotation(name: str = "17", **changes: Any) -> Annotation:
    candidates = changes.pop("candidates", (a_candidate(), another_candidate()))
    facts: dict[str, Any] = {
        "feature": a_feature(name),
        "candidates": candidates,
        "found": len(candidates),
        "scored": len(candidates),
        "channels": CHANNELS,
        "kinds": KINDS,
        "ions": {"[M+H]+": 1.0},
        "coverage": 0.9,
        "set_size": sum(candidate.in_set for candidate in candidates),
        "objective": "hit",
        "choices": {"hit": 0} if candidates else {},
        "present": 0.95,
        "nearest": 0.93,
        "unlike": False,
        "matches": (),
        "level": Level("3", "tentative structure: the best candidate has probability 0.76"),
        "notes": (),
    }
    return Annotation(**(facts | changes))


@pytest.fixture(scope="session")
def make_annotation() -> Callable[..., Annotation]:
    """An annotation about caffeine: the name of its feature, and any attribute by name."""
    return an_annotation


@pytest.fixture(scope="session")
def make_candidate() -> Callable[..., Candidate]:
    """Caffeine as a candidate, with any attribute changed by name."""
    return a_candidate


@pytest.fixture(scope="session")
def make_other() -> Callable[..., Candidate]:
    """An isomer of caffeine as a candidate, with any attribute changed by name."""
    return another_candidate


@pytest.fixture(scope="session")
def make_reference() -> Callable[..., Reference]:
    """A library spectrum of caffeine, with any attribute changed by name."""
    return a_reference


@pytest.fixture(scope="session")
def make_feature() -> Callable[..., Feature]:
    """A feature of one spectrum: its name, and any attribute by name."""
    return a_feature


@pytest.fixture(scope="session")
def make_peaks() -> Callable[..., Spectrum]:
    """A spectrum of caffeine: its identifier, and any attribute by name."""
    return a_spectrum


@pytest.fixture
def bundle(bundle_folder: Path) -> Bundle:
    return Bundle.open(bundle_folder)


@pytest.fixture(scope="session")
def make_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A library's folder of (SMILES, adduct, m/z, heights) rows, in the order given."""
    number = iter(range(1000))

    def make(rows: Any) -> Path:
        folder = tmp_path_factory.mktemp("library")
        path = folder / f"{next(number)}.mgf"
        path.write_text(
            "".join(
                f"BEGIN IONS\nSPECTRUMID=L{at}\nSMILES={smiles}\nADDUCT={adduct}\n"
                f"PEPMASS={precursor_mz(exact_mass(smiles), adduct):.6f}\n"
                f"IONMODE={'negative' if adduct.endswith('-') else 'positive'}\n"
                + "".join(f"{one:.5f} {high:.6f}\n" for one, high in zip(mz, heights, strict=True))
                + "END IONS\n"
                for at, (smiles, adduct, mz, heights) in enumerate(rows)
            )
        )
        return Library.build(path, folder / "library").folder

    return make


def molecule(smiles: str) -> Molecule:
    own = describe_structure(smiles)
    return Molecule(own.smiles, own.key[:14], own.formula, own.mass)


def store(*smiles: str) -> BundledMolecules:
    rows = [
        {"key": m.key, "smiles": m.smiles, "formula": m.formula, "mass": m.mass, "sources": [],
         "identifiers": [], "names": []}
        for m in map(molecule, smiles)
    ]  # fmt: skip
    return BundledMolecules(molecule_table(rows))


@pytest.fixture
def query():
    reading = Hypothesis("[M+H]+", ("[M+H]+",), MASS, 0.002)
    return FeatureQuery(a_feature(), (reading,), ([molecule(ISOMER)],), (reading,), 1)
