"""A bundle of the small run, and tables with licences."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mzseek.bundle import Bundle
from mzseek.bundle.bundle import MANIFEST


@pytest.fixture
def bundle(bundle_folder: Path) -> Bundle:
    return Bundle.open(bundle_folder)


def sign(folder: Path) -> Path:
    """Let files that a test has changed pass for written ones."""
    fields = json.loads((folder / MANIFEST.name).read_text())
    MANIFEST.write(folder, {name: fields[name] for name in fields if name not in ("files", "kind")})
    return folder


@pytest.fixture
def licensed(small_set: Any, tmp_path: Path) -> Callable[..., Path]:
    """The small set's table with a licence for every record, and its lists beside it."""

    def make(name: str, licence_of: Callable[[dict[str, str]], str], **changes: str) -> Path:
        folder = small_set.folder.parent
        with (folder / "spectra.tsv").open() as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        path = tmp_path / f"{name}.tsv"
        with path.open("w", newline="") as file:
            names = [*rows[0], "contributor", "license"]
            writer = csv.DictWriter(file, names, delimiter="\t")
            writer.writeheader()
            for row in rows:
                new = {**row, "contributor": "Anna", "license": licence_of(row), **changes}
                writer.writerow({**new, "identifier": f"{name}-{row['identifier']}"})
        lists = (folder / "candidates_mass.json").read_bytes()
        (tmp_path / f"{name}_candidates_mass.json").write_bytes(lists)
        return path

    return make
