import json
import shutil
from pathlib import Path

import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.runs.run import Run

from ..conftest import QUICK, commands

pytestmark = pytest.mark.usefixtures("threads_kept")


@pytest.fixture
def folder(small_set, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_set.folder, tmp_path / "prepared"))


@pytest.fixture
def store(mzseek, small_set, tmp_path: Path) -> Path:
    path = tmp_path / "molecules.smi"
    others = ["CCCCCC(C)C(=O)O", "CC(C)CCCCC(=O)O", "CCOC(=O)c1ccc(O)cc1", "CNC(=O)c1ccc(OC)cc1"]
    smiles = [*Prepared.open(small_set.folder).smiles, *others]
    path.write_text("".join(f"{each}\n" for each in smiles))
    arguments = ("--fingerprint", "maccs", "--jobs", 1)
    assert mzseek("database", "build", path, "--out", tmp_path / "store", *arguments)[0] == 0
    return tmp_path / "store"


def test_lists_are_added_trained_on_and_measured_as_printed(
    mzseek, folder: Path, store: Path, tmp_path: Path, monkeypatch
) -> None:
    status, out, err = mzseek(
        "negatives", folder, "--database", store, "--keep", 8, "--ppm", 1e5, "--jobs", 1
    )
    assert (status, err) == (0, "")
    prepared = Prepared.open(folder, verify=True)
    sizes = prepared.candidates("hard-mass-8").sizes
    mean, median = sum(sizes) / len(sizes), float(sorted(sizes)[len(sizes) // 2])
    assert f"{len(sizes)} lists, mean {mean:.1f}, median {median:g}, largest {max(sizes)}" in out
    [words] = commands(out)
    assert words[:2] == ["train", str(folder)]
    monkeypatch.chdir(tmp_path)
    status, out, _ = mzseek(*words, *QUICK)
    assert status == 0
    run = Run.open("runs/emb-cos")
    assert run.candidates == "hard-mass-8"
    assert "hit_rate@1/mass" in run.best
    [words] = commands(out)
    status, out, err = mzseek(*words)
    assert (status, err) == (0, "")
    assert ", mass candidates, " in out
    status, out, _ = mzseek("evaluate", "runs/emb-cos", "--candidates", "formula")
    assert status == 0


def test_every_option_reaches_the_lists(mzseek, folder: Path, store: Path) -> None:
    status, out, _ = mzseek(
        "negatives", folder, "--database", store, "--by", "formula", "--keep", 4, "--kind",
        "random", "--ppm", 7, "--seed", 3, "--jobs", 1, "--json",
    )  # fmt: skip
    assert status == 0
    facts = json.loads(out.splitlines()[-1])
    assert facts["name"] == "random-formula-4"
    made = facts["negatives"]
    assert {name: made[name] for name in ("by", "kind", "keep", "ppm", "seed")} == {
        "by": "formula", "kind": "random", "keep": 4, "ppm": 7.0, "seed": 3,
    }  # fmt: skip
    assert facts["largest"] <= 4
    assert Prepared.open(folder).settings[-1] == "random-formula-4"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("prepared", "--database", "absent"), "absent: is no molecule database"),
        (("absent", "--database", "store"), "absent: is no prepared folder"),
        (("store", "--database", "store"), "store: is a molecule database"),
        (("prepared", "--database", "prepared"), "prepared: is a prepared folder"),
        (("prepared", "--database", "store", "--by", "colour"), "negatives by 'colour'"),
        (("prepared", "--database", "store", "--kind", "soft"), "negatives 'soft' is unknown"),
        (("prepared", "--database", "store", "--engine", "dask"), "engine 'dask' is unknown"),
        (("prepared", "--database", "morgan2"), "has morgan2 fingerprints, and prepared has maccs"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    mzseek, folder: Path, store: Path, arguments, message: str, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "morgan2" in arguments:
        made = ("--out", "morgan2", "--jobs", 1, "--no-nearest")
        assert mzseek("database", "build", "molecules.smi", *made)[0] == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    status, out, err = mzseek("negatives", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("mzseek: ")
    assert err.count("\n") == 1
    assert message in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
