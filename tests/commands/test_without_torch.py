"""The base install: no torch, no matplotlib, no DuckDB, no pandas.

All commands run in one process in which these packages cannot be imported.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzseek.core.errors import EXTRAS
from mzseek.datasets.prepared import Prepared

from ..cli.conftest import told
from .conftest import World

# Python reads this when it starts: these packages are then nowhere to be found.
_WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {blocked}:
            return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
# Every module of the package that may be loaded, and those that need what is missing.
_EVERY_MODULE = """
import importlib, json, pkgutil, sys, mzseek
loaded, torn = [], []
for each in pkgutil.walk_packages(mzseek.__path__, "mzseek."):
    try:
        importlib.import_module(each.name); loaded.append(each.name)
    except ImportError:
        torn.append(each.name)
print(json.dumps([loaded, torn]))
"""
# The first starts processes of its own.
WORKING = """
data build {library} --molecules {molecules} --out set
data check set --jobs 1
show {library}
show {library} --spectrum 1 --svg one.svg
database build {molecules} --out store --fingerprint maccs --jobs 1
database search store --mass 180.06
database search store --formula C9H8O4
database search store --like CCO
database info store
database check store
prepare {table} --candidates-mass {mass} --candidates-formula {formula} --fingerprint maccs --out prepared --jobs 1
negatives prepared --database store --by mass --keep 4 --jobs 1
fit prepared --channels fragments,analogs --out fitted --jobs 1
evaluate fitted --no-decode
evaluate run --json
bands prepared --json --jobs 1
advise prepared --json --fingerprint maccs --jobs 1
decide scores.csv --json
model info --json
annotate {library} --model {model} --out answers --jobs 1
demo --out demo
"""  # noqa: E501
APPLYING = "applying a trained network needs torch: pip install 'mzseek[train]'"
REFUSED = {
    "evaluate bare": APPLYING,
    "fit prepared --channels fragments,run:run --out made --jobs 1": APPLYING,
    "train prepared --loss bce --out made": "training needs torch: pip install 'mzseek[train]'",
    "reproduce main --out made": "reproducing needs yaml: pip install 'mzseek[report]'",
    "report run --out made": "a report needs matplotlib: pip install 'mzseek[report]'",
    "bands prepared --figure b.svg": "a figure needs matplotlib: pip install 'mzseek[report]'",
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no extra can be imported, nor in the processes that it starts."""
    folder = tmp_path_factory.mktemp("bare")
    blocked = (*EXTRAS, "lightning", "skfp", "sklearn", "huggingface_hub", "lxml", "pyteomics")
    (folder / "sitecustomize.py").write_text(_WITHOUT.format(blocked=set(blocked)))
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("without")


@pytest.fixture(scope="module")
def answers(
    bare: dict[str, str], world: World, bundle_folder: Path, folder: Path
) -> dict[str, tuple[int, str, str]]:
    """Status, output and errors of every command, by its words."""
    shutil.copytree(world.run.folder, folder / "run")
    shutil.copytree(world.run.folder, folder / "bare")
    shutil.rmtree(folder / "bare" / "predictions")
    (folder / "scores.csv").write_text("smiles,score\nCCO,1\nCCC,0.5\nCCN,2\nCO,1\n")
    given = {
        "library": world.libraries[0], "molecules": world.molecules[0], "table": world.table,
        "mass": world.mass, "formula": world.formula, "model": bundle_folder,
    }  # fmt: skip
    lines = [*WORKING.strip().splitlines(), *REFUSED]
    found = told([line.format(**given).split() for line in lines], folder, bare)
    return {line: answer[:3] for line, answer in zip(lines, found, strict=True)}


@pytest.mark.slow
def test_from_files_to_lists_and_decisions(
    answers: dict[str, Any], world: World, folder: Path
) -> None:
    for line in WORKING.strip().splitlines():
        assert answers[line][0] == 0, (line, answers[line][2])
        assert "smiles" in answers[line][1] or "search" not in line
    assert (folder / "one.svg").read_text().startswith("<svg")
    assert (folder / "answers" / "report.html").is_file()
    prepared, same = Prepared.open(folder / "prepared"), Prepared.open(world.prepared)
    for name in ("molecule", "precursor_mz"):
        assert np.array_equal(getattr(prepared, name), getattr(same, name))


def test_a_trained_run_is_evaluated_from_its_saved_predictions(
    answers: dict[str, Any], world: World, mzseek: Any
) -> None:
    found = json.loads(answers["evaluate run --json"][1].splitlines()[-1])
    wanted = mzseek.json("evaluate", world.run.folder)
    assert found | {"run": wanted["run"]} == wanted


@pytest.mark.parametrize("line", REFUSED)
def test_what_needs_an_extra_says_so_in_one_line(
    line: str, answers: dict[str, Any], folder: Path
) -> None:
    status, out, err = answers[line]
    assert (status, err.splitlines()[-1]) == (2, f"mzseek: {REFUSED[line]}")
    assert out == "" or line.startswith("fit")
    assert not any((folder / name).exists() for name in ("made", "b.svg"))


def test_the_demo_annotates_and_says_how_to_get_its_second_half(
    answers: dict[str, Any], folder: Path
) -> None:
    text = " ".join(answers["demo --out demo"][1].split())
    assert "1. Annotating real spectra" in text
    assert "60 records = 60 annotated" in text
    assert "Look at demo/answers/report.html" in text
    assert "training a model, needs torch and matplotlib: pip install '.[train]'" in text
    assert (folder / "demo" / "answers" / "report.html").is_file()
    assert not (folder / "demo" / "runs").exists()


@pytest.mark.slow
def test_every_module_that_needs_no_torch_can_be_loaded(bare: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_MODULE], env=bare, capture_output=True, text=True, check=True
    )
    loaded, torn = json.loads(done.stdout)
    tensors = ("mzseek.tensors", "mzseek.similarity.soft", "mzseek.datasets.batch")
    tensors += ("mzseek.models.", "mzseek.training", "mzseek.losses.")
    figures = ("mzseek.export.", "mzseek.experiments.figures", "mzseek.experiments.reproduce")
    others = (*tensors, *figures, "mzseek.web.")
    assert [name for name in torn if not name.startswith(others)] == []
    for name in ("mzseek.runs.predictions", "mzseek.evaluation.evaluate", "mzseek.models.configs",
                 "mzseek.losses", "mzseek.export.report",
                 "mzseek.export.spectrum_plot"):  # fmt: skip
        assert name in loaded
