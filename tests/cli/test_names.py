"""Names of files and folders are shown as they are, and what is said to come next does work."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from mzseek.cli.app import COMMANDS

from .conftest import QUICK

ALL = "a [red]x[/red] [/] [bold 'q\" :smile: $\\frac$ \\[b] ü 質\\"
NAMES = [ALL, "[bold", "two  spaces", "-x"]


def run_next(mzseek, text: str) -> str:
    """Do what the last line says comes next; returns what that printed."""
    line = text.rstrip("\n").splitlines()[-1]
    assert line.startswith("Next: mzseek ")
    status, out, err = mzseek(*shlex.split(line)[2:])
    assert (status, err) == (0, ""), line
    return out


@pytest.fixture
def sources(tmp_path: Path, small_set) -> Path:
    """The small data set's files in a folder of an unusual name."""
    folder = tmp_path / ALL
    folder.mkdir(parents=True)
    for path in small_set.folder.parent.glob("*.*"):
        shutil.copy(path, folder)
    smiles = sorted({*small_set.smiles.values()})
    (folder / "pool.smi").write_text("\n".join([*smiles, "no molecule"]) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_unusual_name_is_shown_as_it_is(
    mzseek, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    out = Path("made") / name
    arguments = ("prepare", sources, "--fingerprint", "maccs", "--out", out, "--jobs", 1)
    mzseek.ok(*arguments)
    assert mzseek.ok(*arguments).splitlines()[0] == f"{out} is up to date."
    status, text, err = mzseek("database", "build", sources / "pool.smi", "--out", out)
    said = "exists and is no molecule database (it is a prepared folder); name another --out"
    assert (status, text, err) == (2, "", f"mzseek: {out}: {said}\n")
    text = mzseek.ok("bands", "--figure", f"{name}.svg", "--", out)
    assert text.splitlines()[-1] == f"Distributions: {name}.svg"
    status, text, err = mzseek("evaluate", "--", name)
    assert (status, text) == (2, "")
    assert err.startswith(f"mzseek: {name}: is no run folder")


@pytest.mark.slow
@pytest.mark.usefixtures("threads_kept")
def test_what_comes_next_works_with_unusual_names(
    mzseek, sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store, data, run = (tmp_path / f"{kind} {ALL}" for kind in ("store", "data", "run"))
    kind = ("--fingerprint", "maccs", "--jobs", 1)
    pool = sources / "pool.smi"
    text = mzseek.ok("database", "build", pool, "--out", store, "--source", ALL, *kind)
    assert text.startswith(f"{store}: ")
    assert f"  all in {store}/rejects.tsv\n" in text
    for command in ("info", "check"):
        assert mzseek.ok("database", command, store).startswith(f"{store}: ")
    text = mzseek.ok("database", "export", store, tmp_path / f"{ALL}.tsv")
    assert text.endswith(f" molecules in {tmp_path}/{ALL}.tsv\n")
    library = sources / "library.mgf"
    library.write_text(
        "BEGIN IONS\nTITLE=a\nPEPMASS=47.0491\nADDUCT=[M+H]+\nSMILES=CCO\n20.5 1\nEND IONS\n"
    )
    arguments = ("data", "build", library, "--molecules", pool, "--out", run, "--jobs", 1)
    assert run_next(mzseek, mzseek.ok(*arguments)).startswith("Looked at 1 spectra")
    assert f"{run} was replaced.\n" in mzseek.ok(*arguments)
    library.unlink()
    shutil.rmtree(run)
    mzseek.ok("prepare", sources, "--out", data, *kind)
    text = mzseek.ok("negatives", data, "--database", store, "--keep", 4, "--ppm", 1e5, "--jobs", 1)
    assert run_next(mzseek, text.splitlines()[-1] + " " + shlex.join(QUICK))
    arguments = ("train", data, "--loss", "emb-cos", "--candidates", "hard-mass-4", *QUICK)
    text = mzseek.ok(*arguments, "--out", run)
    assert " mass candidates" in run_next(mzseek, text)
    assert f"{run} has ended already." in mzseek.ok(*arguments, "--out", run, "--resume")


@pytest.mark.slow
def test_every_json_is_alone_on_standard_output(
    mzseek,
    sources: Path,
    bundle_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads_kept: None,
) -> None:
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "candidates.csv"
    table.write_text("smiles,probability\nCCO,0.6\nCCN,0.4\n")
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        "{title: One, paper: none, kind: runs, fold: test, protocol: {lr: [0.001], epochs: 1},"
        " rows: {a: {loss: bce, encoder.width: 8}},"
        " columns: {hr: {metric: hit_rate@1, candidates: mass}}}"
    )
    kind = ("--fingerprint", "maccs", "--jobs", 1)
    mzseek.ok("database", "build", sources / "pool.smi", "--out", "store", *kind)
    mzseek.ok("library", "build", sources / "spectra.tsv", "--out", "library")
    mzseek.ok("prepare", sources, "--out", "prepared", *kind)
    settings = ("--channels", "intensities", "--set", "intensities.epochs=1")
    mzseek.ok("fit", "prepared", *settings, "--out", "predicting", "--jobs", 1)
    commands = {
        "prepare": [sources, "--out", "data", *kind],
        "data check": [sources],
        "database info": ["store"],
        "library info": ["library"],
        "negatives": ["data", "--database", "store", "--keep", 4, "--ppm", 1e5, "--jobs", 1],
        "train": ["data", "--loss", "bce", "--out", "run", *QUICK],
        "evaluate": ["run"],
        "fit": ["data", "--channels", "analogs", "--out", "fitted", "--jobs", 1],
        "report": ["run", "--out", "report"],
        "bands": ["data", "--jobs", 1],
        "advise": ["data", "--fingerprint", "maccs", "--lists", 2, "--jobs", 1],
        "decide": [table],
        "simulate": [table, "--model", "predicting", "--out", "library.msp"],
        "reproduce": ["toy", "--out", "made"],
        "tune": [grid, "--data", sources, "--out", "tuned", "--jobs", 1],
        "show": [sources / "spectra.tsv"],
        "formula": [sources / "spectra.tsv", "--jobs", 1],
        "annotate": [sources / "spectra.tsv", "--model", bundle_folder, "--coverage", 0.5],
        "network": [sources / "spectra.tsv", "--out", "net.graphml", "--no-annotate"],
        "model info": [bundle_folder],
    }
    for command, arguments in commands.items():
        status, out, err = mzseek(*command.split(), *arguments, "--json")
        assert status in (0, 1), (command, err)
        assert out.count("\n") == 1, command
        assert isinstance(json.loads(out), dict), command
        if command == "train":
            assert "step 4 of" in err
    assert {name.split()[0] for name in commands} | {"demo", "serve"} == {
        name for name in COMMANDS if name != "get"
    }
