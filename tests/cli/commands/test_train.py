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
    ("name", "candidates"),
    [("run", "mass"), ("my runs/it's [1]", "formula"), ("run", "hard-mass-8")],
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


def test_json_is_the_last_line(mzseek, small: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "run"
    facts = mzseek.json("train", small.folder, "--loss", "bce", *QUICK, "--out", out)
    assert facts["out"] == str(out)
    assert facts["best"] == Run.open(out).best
    assert set(facts["best"]["tanimoto"]) == {"step", "value", "spread"}


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


@pytest.mark.parametrize(
    "flag",
    [
        ["--loss", "focal", "--gamma", "1"],
        ["--loss", "emb-cos", "--pairwise"],
    ],
    ids=" ".join,
)
def test_options_of_one_loss_reach_the_run(
    flag: list[str], mzseek, small: Prepared, tmp_path: Path
) -> None:
    mzseek.ok("train", small.folder, *flag, *QUICK, "--out", tmp_path / "run")
    options = vars(Run.open(tmp_path / "run").loss.options)
    assert options == (
        {"gamma": 1.0} if "focal" in flag else {"temperature": 1 / 64, "pairwise": True}
    )


def test_an_offset_reaches_the_run(mzseek, small: Prepared, tmp_path: Path) -> None:
    out = tmp_path / "run"
    flags = ("--loss", "emb-cos", "--offset", "prior", *QUICK, "--out", out)
    mzseek.ok("train", small.folder, *flags)
    run = Run.open(out)
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent", "--loss", "bce"], "absent: is no prepared folder"),
        (["DATA", "--loss", "mse"], "loss 'mse' is unknown, expected one of: bce, focal"),
        (["DATA", "--loss", "bce", "--model", "gpt"], "model 'gpt' is unknown, expected one of"),
        (["DATA", "--loss", "fp-cos", "--candidates", "hard"], "it has: formula, mass"),
        (["DATA", "--loss", "bce", "--epochs", "0"], "epochs is 0, expected more than 0"),
        (
            ["DATA", "--loss", "bce", "--temperature", "1"],
            "loss bce: option 'temperature' is unknown, it has no options",
        ),
        (["DATA", "--loss", "bce", "--set", "encoder.depth=2"], "option 'depth' is unknown, expe"),
        (["DATA", "--loss", "bce", "--set", "head.bias=2"], "part 'head' is unknown, expected one"),
        (
            ["DATA", "--loss", "bce", "--set", "encoder.dropout=x"],
            "dropout is 'x', expected a number",
        ),
        (
            ["DATA", "--loss", "bce", "--set", "encoder.dropout=1"],
            "dropout is 1.0, expected 0 to less",
        ),
        (["DATA", "--loss", "bce", "--set", "gamma=2"], "expected PART.OPTION=VALUE"),
        (["DATA", "--loss", "bce", "--bias", "one"], "bias 'one' is unknown"),
        (["DATA", "--loss", "iou", "--offset", "prior"], "--offset prior: iou is no listwise loss"),
        (["DATA", "--loss", "fp-cos", "--offset", "me"], "offset 'me' is unknown, expected one of"),
        (["DATA", "--loss", "bce", "--protocol", "mine"], "protocol 'mine' is unknown, expected"),
        (["DATA", "--loss", "bce", "--start-from", "nowhere"], "nowhere: is no run folder"),
        (["DATA", "--loss", "bce", "--width", "10000000"], "GB; a width of "),
        (["DATA", "--loss", "bce", "--width", "0"], "width is 0, expected more than 0"),
        (["DATA", "--loss", "bce", "--width", "-5"], "width is -5, expected more than 0"),
        (["DATA", "--loss", "bce", "--blocks", "100000000"], "ask for fewer blocks"),
        (
            ["DATA", "--loss", "bce", "--batch-size", "1000000000"],
            "expected at most 52, the number",
        ),
        (["DATA", "--loss", "bce", "--threads", "1000000"], "expected at most 1,024"),
        (["DATA", "--loss", "bce", "--lr", "1e36", "--warmup", "0"], "try a smaller --lr"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value[2:]),
)
def test_bad_input_is_one_line_and_status_2(
    arguments: list[str], message: str, mzseek, small: Prepared, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(small.folder) if text == "DATA" else text for text in arguments]
    quick = ["--width", "32", "--threads", "1"]
    status, _, err = mzseek("train", *quick, *given, "--out", "run")
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith("mzseek: ")
    assert message in err


def test_a_folder_in_use_is_refused(mzseek, trained, small: Prepared, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    for out, message in (
        (trained("bce").folder, "holds a run already; go on with --resume"),
        (tmp_path / "mine", "exists and is no run"),
    ):
        status, text, err = mzseek("train", small.folder, "--loss", "bce", "--out", out)
        assert (status, text, err.count("\n")) == (2, "", 1)
        assert message in err


def test_going_on_with_other_options_names_the_option(mzseek, trained, small: Prepared) -> None:
    status, _, err = mzseek(
        "train", small.folder, "--loss", "bce", *QUICK, "--out", trained("bce").folder, "--resume"
    )
    assert status == 2
    assert "was begun with epochs 6, not 2" in err
