"""A fitted run of the small set, and a bundle of it."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mzseek.annotation.bundle import Bundle
from mzseek.annotation.bundle.making.export import Extras, export_run
from mzseek.evidence.fitting.fit import fit
from mzseek.evidence.registry import channels_from
from mzseek.prepared.reader import Prepared
from mzseek.runs.run import Run

CHANNELS = "fragments,analogs,substructures"


@pytest.fixture(scope="session")
def fitted_run(small_set: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Channels and ranker, fitted on the small folder; tests must leave it as it is."""
    out = tmp_path_factory.mktemp("fitted") / "evidence"
    return fit(Prepared.open(small_set.folder), channels_from(CHANNELS), out, jobs=1)


@pytest.fixture(scope="session")
def bundle_folder(fitted_run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of that run; tests must leave it as it is, or copy it."""
    out = tmp_path_factory.mktemp("bundle") / "bundle"
    details = {"S0-1": {"license": "CC BY", "contributor": "Anna", "source": "a.tsv"}}
    export_run(fitted_run, out, Extras(details=details), jobs=1)
    return out


@pytest.fixture
def bundle(bundle_folder: Path) -> Bundle:
    return Bundle.open(bundle_folder)


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
