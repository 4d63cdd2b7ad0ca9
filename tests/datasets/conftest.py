"""A small data set on disk, of real molecules and made-up peaks."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mzseek.chem import exact_mass, formula, inchikey_block, precursor_mz
from mzseek.datasets.files import COLUMNS, DatasetFiles
from mzseek.datasets.prepare import prepare
from mzseek.datasets.prepared import Prepared

MEASURED = {
    "CC(=O)Oc1ccccc1C(=O)O": "train",
    "CCOC(=O)c1ccccc1O": "train",
    "Cn1c(=O)c2c(ncn2C)n(C)c1=O": "val",
    "NC(Cc1ccccc1)C(=O)O": "test",
}
# Isomers, so that mass and formula lists can be the same.
ISOMERS = {
    "CC(=O)Oc1ccccc1C(=O)O": ["COC(=O)c1ccc(C(=O)O)cc1", "O=C(O)Cc1ccc2c(c1)OCO2"],
    "CCOC(=O)c1ccccc1O": ["CCOC(=O)c1ccc(O)cc1", "COc1ccc(CC(=O)O)cc1"],
    "Cn1c(=O)c2c(ncn2C)n(C)c1=O": ["CCn1cnc2c1c(=O)[nH]c(=O)n2C"],
    "NC(Cc1ccccc1)C(=O)O": ["CC(N)(C(=O)O)c1ccccc1", "CN(C)C(=O)c1cccc(O)c1"],
}


def row(identifier: str, smiles: str, fold: str, /, **changes: str) -> dict[str, str]:
    values = {
        "identifier": identifier,
        "mzs": "50.1,77.1,105.033",
        "intensities": "0.1,0.5,1.0",
        "smiles": smiles,
        "inchikey": inchikey_block(smiles),
        "formula": formula(smiles),
        "parent_mass": f"{exact_mass(smiles):.6f}",
        "precursor_mz": f"{precursor_mz(exact_mass(smiles), '[M+H]+'):.5f}",
        "adduct": "[M+H]+",
        "instrument_type": "Orbitrap",
        "collision_energy": "30 eV",
        "fold": fold,
    }
    return values | changes


def write_rows(path: Path, rows: list[dict[str, str]]) -> None:
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(values.get(name, "") for name in COLUMNS) for values in rows]
    path.write_text("\n".join(lines) + "\n")


def write_dataset(target: Path, rows=None, lists=None) -> DatasetFiles:
    target.mkdir(exist_ok=True)
    if rows is None:
        rows = [
            row(f"S{n}-{energy}", smiles, fold)
            for n, (smiles, fold) in enumerate(MEASURED.items())
            for energy in (1, 2)
        ]
    if lists is None:
        lists = {s: [ISOMERS[s][0], s, *ISOMERS[s][1:]] for s in MEASURED}
    write_rows(target / "spectra.tsv", rows)
    for setting in ("mass", "formula"):
        (target / f"candidates_{setting}.json").write_text(json.dumps(lists))
    return DatasetFiles(
        target / "spectra.tsv", {s: target / f"candidates_{s}.json" for s in ("formula", "mass")}
    )


@pytest.fixture
def write_set(tmp_path: Path) -> Callable[..., DatasetFiles]:
    """Write the set, with rows and lists changed as a test wants."""
    return lambda rows=None, lists=None: write_dataset(tmp_path / "set", rows, lists)


@pytest.fixture
def prepare_set(write_set, tmp_path: Path) -> Callable[..., Prepared]:
    """Write a set and prepare it, in this process."""

    def prepared(rows=None, lists=None) -> Prepared:
        files = write_set(rows, lists)
        return prepare(files.spectra, files.candidates, tmp_path / "out", jobs=1)[0]

    return prepared


@pytest.fixture
def folder(small_set, tmp_path: Path) -> Path:
    """A copy of the small prepared folder."""
    return Path(shutil.copytree(small_set.folder, tmp_path / "prepared"))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
