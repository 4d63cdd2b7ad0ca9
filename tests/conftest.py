"""What several tests need."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.spectra import Spectrum

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the shared folder {SHARED.name}/ is not beside the checkout")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(absent)


@pytest.fixture(scope="session")
def shared() -> Path:
    return SHARED


@pytest.fixture
def make_spectrum():
    """A spectrum with only what a test cares about."""

    def make(mz, intensities, precursor_mz=200.0, identifier="test", **metadata) -> Spectrum:
        return Spectrum(
            np.asarray(mz, float), np.asarray(intensities, float), precursor_mz,
            "[M+H]+", 1, identifier, metadata,
        )  # fmt: skip

    return make
