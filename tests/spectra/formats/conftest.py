from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.io.skipped import Skipped
from mzseek.spectra import Spectrum, read_spectra


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, str], tuple[list[Spectrum], list[Skipped]]]:
    """Write a file and return its spectra and skipped records."""

    def written_and_read(name: str, text: str) -> tuple[list[Spectrum], list[Skipped]]:
        (tmp_path / name).write_text(text)
        skipped: list[Skipped] = []
        return list(read_spectra(tmp_path / name, skipped)), skipped

    return written_and_read
