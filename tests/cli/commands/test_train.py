import json
import shutil
from pathlib import Path

import pytest

from mzseek.datasets.prepared import Prepared
from mzseek.runs.run import Run
from mzseek.training.options import Options, list_settings

from ..conftest import QUICK, commands

pytestmark = pytest.mark.usefixtures("threads_kept")


@pytest.fixture
def folder_with_negatives(small_set, tmp_path: Path) -> Path:
    """The small folder, its mass lists once more under a name that is for training alone."""
    folder = Path(shutil.copytree(small_set.folder, tmp_path / "prepared"))
    for path in folder.glob("candidates.mass.*"):
        shutil.copy(path, path.with_name(path.name.replace(".mass.", ".hard-mass-8.")))
    manifest = json.loads((folder / "manifest.json").read_text())
    mined = manifest["candidates"]["mass"] | {"negatives": {"by": "mass"}}
    manifest["candidates"]["hard-mass-8"] = mined
    for name, facts in list(manifest["files"].items()):
        manifest["files"][name.replace("candidates.mass.", "candidates.hard-mass-8.")] = facts
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_a_run_ends_with_what_comes_next(mzseek, small: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "emb-cos"
    arguments = ("train", small.folder, "--loss", "emb-cos", "--candidates", "formula")
    text = mzseek.ok(*arguments, *QUICK, "--out", out)
    assert "step 4 of 8, epoch 1.0: loss " in text
    assert "Trained 8 steps in " in text
    assert text.splitlines()[-1] == f"Next: mzseek evaluate {out} --candidates formula"
    run = Run.open(out)
    assert run.finished
    assert (run.loss.name, run.candidates) == ("emb-cos", "formula")
    text = mzseek.ok(*arguments, *QUICK, "--out", out, "--resume")
    assert f"{out} has ended already." in text


@pytest.mark.parametrize(
    ("name", "candidates"), [("my runs/it's [1]", "formula"), ("run", "hard-mass-8")]
)
def test_the_command_that_comes_next_works_as_printed(
    name: str, candidates: str, mzseek, folder_with_negatives: Path, tmp_path: Path
) -> None:
    arguments = ("--loss", "emb-cos", "--candidates", candidates, *QUICK, "--out", tmp_path / name)
    text = mzseek.ok("train", folder_with_negatives, *arguments)
    [words] = commands(text)
    assert words[:2] == ["evaluate", str(tmp_path / name)]
    text = mzseek.ok(*words)
    measured = "mass" if candidates == "hard-mass-8" else candidates
    assert f", {measured} candidates, " in text


def test_without_a_test_fold_the_next_command_measures_on_validation(
    mzseek, small: Prepared, tmp_path: Path, monkeypatch
) -> None:
    inside = Prepared.in_fold
    monkeypatch.setattr(
        Prepared, "in_fold", lambda self, name: inside(self, name)[: 0 if name == "test" else None]
    )
    run = tmp_path / "run"
    text = mzseek.ok("train", small.folder, "--loss", "bce", *QUICK, "--out", run)
    [words] = commands(text)
    assert words == ["evaluate", str(run), "--candidates", "mass", "--fold", "val"]
    mzseek.ok(*words, "--no-decode")


def test_without_candidate_lists_no_command_is_printed_that_would_fail(
    mzseek, small_set, tmp_path: Path
) -> None:
    spectra = small_set.folder.parent / "spectra.tsv"
    mzseek("prepare", spectra, "--fingerprint", "maccs", "--jobs", 1, "--out", tmp_path / "data")
    run = tmp_path / "run"
    text = mzseek.ok("train", tmp_path / "data", "--loss", "bce", *QUICK, "--out", run)
    assert commands(text) == []
    assert text.splitlines()[-1].endswith(f"What it reached on validation is in {run}/history.csv")


def test_the_protocol_follows_the_steps_or_is_the_paper_s(
    mzseek, small: Prepared, tmp_path: Path
) -> None:
    quick = ("--epochs", 5, "--batch-size", 16, "--width", 32, "--threads", 1)
    for protocol, values, line in (
        ("auto", (2, 2, "log-odds"), "20 steps: warm-up 2 steps, validation every 2, bias started"),
        ("paper", (500, 1000, "zero"), "20 steps: warm-up 500 steps, validation every 1,000"),
    ):
        out = tmp_path / protocol
        arguments = () if protocol == "auto" else ("--protocol", protocol)
        text = mzseek.ok("train", small.folder, "--loss", "bce", *quick, *arguments, "--out", out)
        assert text.startswith(line)
        found = Options.of_run(Run.open(out))
        assert (found.warmup, found.validate_every, found.bias) == values
    assert "warning: the warm-up of 500 steps is longer than the run of 20" in text


def test_every_option_reaches_the_run(mzseek, small: Prepared, tmp_path: Path) -> None:
    mzseek("train", small.folder, "--loss", "bce", *QUICK, "--out", tmp_path / "first")
    given = {
        "candidates": "formula", "epochs": 1, "batch_size": 13, "lr": 0.002, "seed": 5,
        "temperature": 0.5, "weight": 0.25, "blocks": 1, "width": 32, "warmup": 3,
        "validate_every": 2, "patience": 7, "threads": 1,
        "start_from": str(tmp_path / "first"),
    }  # fmt: skip
    flags = [text for name, v in given.items() for text in (f"--{name.replace('_', '-')}", v)]
    out = tmp_path / "run"
    flags.append("--no-other-rankings")
    mzseek.ok("train", small.folder, "--loss", "combined", *flags, "--out", out)
    parts = {
        "encoder": {name: given.pop(name) for name in ("blocks", "width")},
        "loss": {name: given.pop(name) for name in ("temperature", "weight")},
    }
    assert Options.of_run(Run.open(out)) == Options.of(
        "combined", "mlp", parts, bias="zero", other_rankings=False, **given
    )


def test_options_of_one_loss_reach_the_run(mzseek, small: Prepared, tmp_path: Path) -> None:
    arguments = ("train", small.folder, *QUICK, "--out")
    facts = mzseek.json(*arguments, tmp_path / "focal", "--loss", "focal", "--gamma", 1)
    run = Run.open(tmp_path / "focal")
    assert vars(run.loss.options) == {"gamma": 1.0}
    assert (facts["out"], facts["best"]) == (str(run.folder), run.best)
    assert set(facts["best"]["tanimoto"]) == {"step", "value", "spread"}
    flags = ("--loss", "emb-cos", "--pairwise", "--offset", "prior")
    mzseek.ok(*arguments, tmp_path / "pairwise", *flags)
    run = Run.open(tmp_path / "pairwise")
    assert vars(run.loss.options) == {"temperature": 1 / 64, "pairwise": True}
    assert Options.of_run(run).offset == "prior"
    assert run.metadata["offset"]["in_predictions"] is False


def test_any_option_of_a_part_can_be_set(mzseek, small: Prepared, tmp_path: Path) -> None:
    settings = ("encoder.layers=1", "encoder.tokens=16", "encoder.heads=2", "scorer.projected=8")
    flags = [text for setting in settings for text in ("--set", setting)]
    quick = ("--epochs", 1, "--batch-size", 16, "--width", 32, "--threads", 1)
    arguments = ("train", small.folder, "--loss", "emb-cos", "--model", "transformer", *quick)
    mzseek.ok(*arguments, *flags, "--out", tmp_path / "run")
    run = Run.open(tmp_path / "run")
    encoder = {"width": 32, "tokens": 16, "layers": 1, "heads": 2, "dropout": 0.25}
    assert run.encoder.to_dict() == {"name": "transformer", "options": encoder}
    assert run.scorer.to_dict() == {"name": "emb-cos", "options": {"projected": 8}}
    assert run.model.to_dict()["encoder"]["options"] == encoder


def test_the_options_of_all_parts_are_listed(mzseek) -> None:
    text = mzseek.ok("train", "--options")
    for part, options in list_settings():
        assert part in text
        for name, default, meaning in options:
            assert f"--set {part.split()[0]}.{name}={default}" in text
            assert meaning in text


def test_defaults_are_those_of_the_options(mzseek, small: Prepared, monkeypatch, tmp_path) -> None:
    asked: list[Options] = []

    def fit(prepared: Prepared, options: Options, out: Path, **others: object) -> Run:
        asked.append(options)
        described = options.described(prepared).to_dict()
        return Run(out, {"format_version": 2, "best": {}, "warnings": [], **described})

    monkeypatch.setattr("mzseek.training.train.train", fit)
    mzseek.ok("train", small.folder, "--loss", "bce", "--out", tmp_path / "run")
    assert asked == [Options.of("bce")]
