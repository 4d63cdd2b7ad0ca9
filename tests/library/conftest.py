"""Spectra with peaks in common, and a small library of them."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.library import Library
from mzseek.spectra import Spectrum

SMILES = ["CCO", "c1ccccc1O", "CC(=O)Oc1ccccc1C(=O)O", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "NCC(=O)O"]


def drawn_spectra(count: int, seed: int = 0) -> list[Spectrum]:
    """Spectra that share peaks and losses, some of equal height, some as near as the tolerance."""
    rng = np.random.default_rng(seed)
    common = np.round(np.random.default_rng(99).uniform(50, 290, 20), 2)
    drawn = []
    for number in range(count):
        mz = rng.choice(common, rng.integers(2, 12), replace=False)
        mz = np.unique(np.round(np.r_[mz, mz[:3] + 0.02, mz[:2] + 14.02], 4))
        heights = np.round(rng.lognormal(3, 1.5, len(mz))) + 1
        precursor = float(300 + rng.choice([0, 0.01, 14.02, 28.03]))
        drawn.append(Spectrum(mz, heights, precursor, "[M+H]+", 1, f"s{number}"))
    return drawn


def written(path: Path, spectra: list[Spectrum], **more: str) -> Path:
    """An MGF file of spectra, each with a molecule in turn."""
    fields = "".join(f"{name.upper()}={value}\n" for name, value in more.items())
    with path.open("w") as file:
        for number, spectrum in enumerate(spectra):
            peaks = "".join(
                f"{mz} {height}\n"
                for mz, height in zip(spectrum.mz, spectrum.intensities, strict=True)
            )
            file.write(
                f"BEGIN IONS\nSPECTRUM_ID={spectrum.identifier}\nPEPMASS={spectrum.precursor_mz}\n"
                f"ADDUCT=[M+H]+\nCHARGE=1+\nSMILES={SMILES[number % len(SMILES)]}\n{fields}"
                f"{peaks}END IONS\n\n"
            )
    return path


@pytest.fixture
def spectra() -> list[Spectrum]:
    return drawn_spectra(40)


@pytest.fixture
def library(tmp_path: Path, spectra: list[Spectrum]) -> Library:
    source = written(tmp_path / "reference.mgf", spectra, license="CC BY", collision_energy="20")
    return Library.build([source], tmp_path / "library")


@pytest.fixture
def draw():
    return drawn_spectra


@pytest.fixture
def write():
    return written
