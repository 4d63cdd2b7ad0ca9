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
    mzseek.ok("database", "build", path, "--out", tmp_path / "store", *arguments)
    return tmp_path / "store"


def test_lists_are_added_trained_on_and_measured_as_printed(
    mzseek, folder: Path, store: Path, tmp_path: Path, monkeypatch
) -> None:
    out = mzseek.ok(
        "negatives", folder, "--database", store, "--keep", 8, "--ppm", 1e5, "--jobs", 1
    )
    prepared = Prepared.open(folder, verify=True)
    sizes = prepared.candidates("hard-mass-8").sizes
    mean, median = sum(sizes) / len(sizes), float(sorted(sizes)[len(sizes) // 2])
    assert f"{len(sizes)} lists, mean {mean:.1f}, median {median:g}, largest {max(sizes)}" in out
    [words] = commands(out)
    assert words[:2] == ["train", str(folder)]
    monkeypatch.chdir(tmp_path)
    out = mzseek.ok(*words, *QUICK)
    run = Run.open("runs/emb-cos")
    assert run.candidates == "hard-mass-8"
    assert "hit_rate@1/mass" in run.best
    [words] = commands(out)
    out = mzseek.ok(*words)
    assert ", mass candidates, " in out
    out = mzseek.ok("evaluate", "runs/emb-cos", "--candidates", "formula")


def test_every_option_reaches_the_lists(mzseek, folder: Path, store: Path) -> None:
    given = "--by formula --keep 4 --kind random --ppm 7 --seed 3 --jobs 1"
    facts = mzseek.json("negatives", folder, "--database", store, *given.split())
    assert facts["name"] == "random-formula-4"
    made = facts["negatives"]
    assert {name: made[name] for name in ("by", "kind", "keep", "ppm", "seed")} == {
        "by": "formula", "kind": "random", "keep": 4, "ppm": 7.0, "seed": 3,
    }  # fmt: skip
    assert facts["largest"] <= 4
    assert Prepared.open(folder).settings[-1] == "random-formula-4"
