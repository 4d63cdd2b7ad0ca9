"""The base install: no torch, no matplotlib, no DuckDB, no pandas."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzseek.core.errors import EXTRAS
from mzseek.datasets.files import DEMO_QUERIES
from mzseek.datasets.prepared import Prepared
from mzseek.runs.run import Run

from .conftest import CLI, World

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

# Every module of the package that may be loaded, and whether torch comes along.
_EVERY_FACT = """
import importlib, json, pkgutil, sys, mzseek
loaded, torn = [], []
for each in pkgutil.walk_packages(mzseek.__path__, "mzseek."):
    try:
        importlib.import_module(each.name); loaded.append(each.name)
    except ImportError:
        torn.append(each.name)
print(json.dumps([loaded, torn]))
"""


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which no extra can be imported, nor in the processes that it starts."""
    folder = tmp_path_factory.mktemp("bare")
    blocked = (*EXTRAS, "lightning", "skfp", "sklearn", "huggingface_hub", "lxml", "pyteomics")
    (folder / "sitecustomize.py").write_text(_WITHOUT.format(blocked=set(blocked)))
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


Ask = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def ask(bare: dict[str, str], tmp_path: Path) -> Ask:
    """Run a command in the bare environment."""

    def run(*words: Any, status: int = 0) -> subprocess.CompletedProcess[str]:
        command = [*CLI, *map(str, words)]
        done = subprocess.run(command, env=bare, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        return done

    return run


def test_a_trained_run_is_evaluated_from_its_saved_predictions(
    ask: Ask, trained: Callable[..., Run], tmp_path: Path
) -> None:
    run = trained("bce")
    with_torch = [*CLI, "evaluate", str(run.folder), "--json"]
    wanted = subprocess.run(with_torch, capture_output=True, text=True, check=True)
    shutil.copytree(run.folder, tmp_path / "run")
    bare, full = ask("evaluate", "run", "--json").stdout, wanted.stdout
    one, two = (json.loads(text.splitlines()[-1]) for text in (bare, full))
    assert one.keys() == two.keys()
    assert {name: one[name] for name in one.keys() - {"run"}} == {
        name: two[name] for name in one.keys() - {"run"}
    }


APPLYING = "applying a trained network needs torch: pip install 'mzseek[train]'"


def test_applying_a_trained_network_needs_torch(ask: Ask, world: World, tmp_path: Path) -> None:
    shutil.copytree(world.run.folder, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "predictions")
    shutil.copytree(world.prepared, tmp_path / "prepared")
    channel = f"run:{world.run.folder}"
    for words in (
        ("evaluate", "run"),
        ("fit", "prepared", "--channels", f"fragments,{channel}", "--out", "fitted", "--jobs", "1"),
    ):
        assert ask(*words, status=2).stderr.splitlines()[-1] == f"mzseek: {APPLYING}"
    assert not (tmp_path / "fitted").exists()


def test_from_files_to_lists_and_decisions(ask: Ask, world: World, tmp_path: Path) -> None:
    ask("show", world.libraries[0])
    ask("show", world.libraries[0], "--spectrum", "1", "--svg", "one.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<svg")
    ask("data", "build", world.libraries[0], "--molecules", world.molecules[0], "--out", "set")
    ask("data", "check", "set", status=0)
    ask("database", "build", *world.molecules, "--out", "store", "--fingerprint", "maccs")
    for how in (["--mass", "180.06"], ["--formula", "C9H8O4"], ["--like", "CCO"]):
        assert "smiles" in ask("database", "search", "store", *how).stdout
    ask("database", "info", "store")
    ask("database", "check", "store")
    ask(
        "prepare", world.table, "--candidates-mass", world.mass,
        "--candidates-formula", world.formula, "--fingerprint", "maccs", "--out", "prepared",
    )  # fmt: skip
    prepared, same = Prepared.open(tmp_path / "prepared"), Prepared.open(world.prepared)
    for name in ("molecule", "precursor_mz"):
        assert np.array_equal(getattr(prepared, name), getattr(same, name))
    ask("negatives", "prepared", "--database", "store", "--by", "mass", "--keep", "4")
    ask("fit", "prepared", "--channels", "fragments,analogs", "--out", "fitted", "--jobs", "1")
    ask("evaluate", "fitted", "--no-decode")
    ask("bands", "prepared", "--json")
    ask("advise", "prepared", "--json")
    (tmp_path / "scores.csv").write_text(
        "query,smiles,score\na,CCO,1\na,CCC,0.5\nb,CCN,2\nb,CO,1\n"
    )
    ask("decide", "scores.csv", "--json")
    ask("model", "info", "--json")
    ask("annotate", str(DEMO_QUERIES), "--out", "answers", "--jobs", "1")
    assert (tmp_path / "answers" / "report.html").is_file()


NEEDS = [
    ("train prepared --loss bce --out run", "training needs torch: pip install 'mzseek[train]'"),
    ("reproduce main --out made", "reproducing needs yaml: pip install 'mzseek[report]'"),
    ("report RUN --out pages", "a report needs matplotlib: pip install 'mzseek[report]'"),
    ("bands PREPARED --figure b.svg", "a figure needs matplotlib: pip install 'mzseek[report]'"),
]


@pytest.mark.parametrize(("command", "line"), NEEDS)
def test_what_needs_an_extra_says_so_in_one_line(
    ask: Ask, world: World, tmp_path: Path, command: str, line: str
) -> None:
    shutil.copytree(world.prepared, tmp_path / "prepared")
    places = {"RUN": str(world.run.folder), "PREPARED": str(tmp_path / "prepared")}
    done = ask(*(places.get(word, word) for word in command.split()), status=2)
    assert (done.stdout, done.stderr) == ("", f"mzseek: {line}\n")
    assert not any((tmp_path / name).exists() for name in ("run", "pages", "b.svg"))


def test_the_demo_annotates_and_says_how_to_get_its_second_half(ask: Ask, tmp_path: Path) -> None:
    text = " ".join(ask("demo", "--out", "demo").stdout.split())
    assert "1. Annotating real spectra" in text
    assert "60 records = 60 answered" in text
    assert "Look at demo/answers/report.html" in text
    assert "training a model, needs torch and matplotlib: pip install '.[train]'" in text
    assert (tmp_path / "demo" / "answers" / "report.html").is_file()
    assert not (tmp_path / "demo" / "runs").exists()


def test_every_module_that_needs_no_torch_can_be_loaded(bare: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_FACT], env=bare, capture_output=True, text=True, check=True
    )
    loaded, torn = json.loads(done.stdout)
    rooms = ("mzseek.tensors", "mzseek.similarity.soft", "mzseek.datasets.batch", "mzseek.models.")
    rooms += ("mzseek.training", "mzseek.losses.")  # of losses and models, what has the tensors
    figures = ("mzseek.export.", "mzseek.experiments.figures", "mzseek.experiments.reproduce")
    assert [name for name in torn if not name.startswith((*rooms, *figures))] == []
    for name in ("mzseek.runs.predictions", "mzseek.evaluation.evaluate", "mzseek.models.configs",
                 "mzseek.losses", "mzseek.export.spectrum_plot"):  # fmt: skip
        assert name in loaded
