"""Every command that writes, with inputs for it: what the tests of all of them share."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mzseek.database import build_database
from mzseek.database.sources import file_sources
from mzseek.io.writing import lock_path
from mzseek.parallel import LocalEngine
from mzseek.runs.run import Run

from ..cli.conftest import assert_refused, call, mzseek, threads_kept  # noqa: F401
from ..molecules import MOLECULES
from ..processes import MZSEEK, Forked

QUICK = [
    "--epochs", "2", "--lr", "3e-3", "--width", "16", "--blocks", "1", "--batch-size", "16",
    "--warmup", "2", "--validate-every", "4", "--threads", "1",
]  # fmt: skip
SECONDS = 120


class World:
    """Inputs of every command, two of each where two can be had."""

    def __init__(self, folder: Path, small_folder: Path, run: Run) -> None:
        self.folder, self.prepared, self.run = folder, small_folder, run
        source = small_folder.parent
        self.table = source / "spectra.tsv"
        self.mass, self.formula = (source / f"candidates_{s}.json" for s in ("mass", "formula"))
        pool = MOLECULES[:400]
        self.molecules = [self._list(f"molecules{n}.smi", pool[n::2]) for n in (0, 1)]
        self.libraries = [self._library(n) for n in (0, 1)]
        self.store = folder / "store"
        build_database(
            file_sources([self.molecules[0]]), self.store, fingerprint="maccs",
            engine=LocalEngine(1),
        )  # fmt: skip

    def _list(self, name: str, smiles: list[str]) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{each}\n" for each in smiles))
        return path

    def _library(self, number: int) -> Path:
        """Half of the small set's spectra, as MGF."""
        path = self.folder / f"library{number}.mgf"
        head, *rows = self.table.read_text().splitlines()
        names = head.split("\t")
        with path.open("w") as stream:
            for row in rows[number::2]:
                cells = dict(zip(names, row.split("\t"), strict=True))
                peaks = zip(cells["mzs"].split(","), cells["intensities"].split(","), strict=True)
                stream.write(
                    f"BEGIN IONS\nTITLE={cells['identifier']}\nPEPMASS={cells['precursor_mz']}\n"
                    f"ADDUCT=[M+H]+\nSMILES={cells['smiles']}\n"
                    + "".join(f"{mz} {height}\n" for mz, height in peaks)
                    + "END IONS\n"
                )
        return path


@pytest.fixture(scope="session")
def world(
    small_set: Any, trained: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory
) -> World:
    return World(tmp_path_factory.mktemp("world"), small_set.folder, trained("bce"))


def contents(path: Path) -> Any:
    """Bytes of every file below a folder, or of a file."""
    if path.is_file():
        return path.read_bytes()
    return {
        str(file.relative_to(path)): _content(file)
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def _content(path: Path) -> Any:
    if path.name == "run.json":  # how long it took is nobody's content
        return json.loads(path.read_text()) | {"seconds": None}
    if path.suffix == ".safetensors":  # whose names stand in no order
        from safetensors.numpy import load_file

        return {name: array.tobytes() for name, array in sorted(load_file(path).items())}
    return path.read_bytes()


def train(world: World, out: Path, loss: str, *more: str) -> list[str]:
    return ["train", str(world.prepared), "--loss", loss, "--out", str(out), *QUICK, *more]


# For each command: its arguments in two versions, given the output and what stands there before.
Arguments = Callable[[World, Path, int], list[str]]
COMMANDS: dict[str, tuple[Arguments, str]] = {
    "prepare": (
        lambda w, out, n: [
            "prepare", str(w.table), f"--candidates-{('mass', 'formula')[n]}",
            str((w.mass, w.formula)[n]), "--out", str(out), "--fingerprint", "maccs", "--jobs", "1",
        ],
        "preparing a data set",
    ),
    "data build": (
        lambda w, out, n: [
            "data", "build", str(w.libraries[n]), "--molecules", str(w.molecules[n]),
            "--out", str(out), "--jobs", "1",
        ],
        "building a data set",
    ),
    "database build": (
        lambda w, out, n: [
            "database", "build", str(w.molecules[n]), "--out", str(out), "--fingerprint", "maccs",
            "--jobs", "1",
        ],
        "building a database",
    ),
    "database add": (
        lambda w, out, n: [
            "database", "add", str(out), str(w.molecules[1]), "--source", "ab"[n], "--jobs", "1",
        ],
        "adding molecules",
    ),
    "database export": (
        lambda w, out, n: ["database", "export", str(w.store), str(out)],
        "exporting molecules",
    ),
    "negatives": (
        lambda w, out, n: [
            "negatives", str(out), "--database", str(w.store), "--keep", ("4", "6")[n],
            "--jobs", "1",
        ],
        "adding negatives",
    ),
    "data match": (
        lambda w, out, n: [
            "data", "match", str(out), "--database", str(w.store), "--ppm", "4e5", "--seed",
            str(n), "--jobs", "1",
        ],
        "adding matched lists",
    ),
    "train": (lambda w, out, n: train(w, out, ("bce", "iou")[n]), "training a model"),
    "fit": (
        lambda w, out, n: [
            "fit", str(w.prepared), "--channels", ("analogs", "fragments")[n], "--out", str(out),
            "--jobs", "1",
        ],
        "fitting evidence",
    ),
    "train --resume": (lambda w, out, n: train(w, out, "bce", "--resume"), "training a model"),
    "bands": (
        lambda w, out, n: [
            "bands", str(w.prepared), "--fingerprint", ("maccs", "morgan2")[n], "--figure",
            str(out), "--jobs", "1",
        ],
        "drawing bands",
    ),
    "report": (
        lambda w, out, n: [
            "report", str(w.run.folder), "--out", str(out), "--no-decode",
            "--candidates", ("mass", "formula")[n],
        ],
        "writing a report",
    ),
    "evaluate --table": (
        lambda w, out, n: [
            "evaluate", str(w.run.folder), "--no-decode", "--table", str(out),
            "--candidates", ("mass", "formula")[n],
        ],
        "writing a table",
    ),
    "demo": (
        lambda w, out, n: ["demo", "--out", str(out), "--epochs", "1", "--seed", str(n)],
        "making the demo",
    ),
}  # fmt: skip
IN_PLACE = {"database add": "store", "negatives": "prepared", "data match": "prepared"}
NAMES = {"database export": "out.tsv", "bands": "out.svg", "evaluate --table": "out.tsv"}


def output(command: str, world: World, folder: Path) -> tuple[Path, Path]:
    """Where a command writes, and the file that it holds while it does."""
    folder.mkdir()
    out = folder / NAMES.get(command, "out")
    if command in IN_PLACE:
        shutil.copytree(getattr(world, IN_PLACE[command]), out)
    return out, lock_path(out / "run.json" if command.startswith("train") else out)


@pytest.fixture(scope="session")
def whole(world: World, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Any]:
    """What a command makes when it is alone, each made once."""
    made: dict[tuple[str, int], Any] = {}

    def get(command: str, number: int) -> Any:
        import torch

        if (command, number) not in made:
            out, _ = output(command, world, tmp_path_factory.mktemp("alone") / "there")
            threads = torch.get_num_threads()
            status, _, said = call(*COMMANDS[command][0](world, out, number))
            torch.set_num_threads(threads)
            assert status == 0, said
            made[command, number] = contents(out)
        return made[command, number]

    return get


def start(arguments: list[str]) -> Forked:
    return Forked(MZSEEK, *arguments)
