import json
from pathlib import Path

import pytest

from mzseek.runs.run import Run

from ..conftest import commands

pytestmark = pytest.mark.usefixtures("threads_kept")
BOTH = ("--channels", "fragments,analogs", "--jobs", 1)


def test_it_prints_weights_and_the_next_command(mzseek, small_set, tmp_path: Path) -> None:
    out = tmp_path / "run"
    said = mzseek.ok("fit", small_set.folder, *BOTH, "--out", out)
    assert "The ranker is fitted on train and val." in said
    assert "positive mode has 33 molecules: too few for weights of its own" in said
    run = Run.open(out)
    for channel, own in run.description.fitted.ranker["weights"]["positive"].items():
        for feature, weight in own.items():
            assert any(
                line.split()[0] == channel and feature in line and line.endswith(f"{weight:.2f}")
                for line in said.splitlines()
            ), feature
    rate = 100 * run.best["hit_rate@1/mass"]["value"]
    assert f"On validation, mass candidates, cross-fitted: HR@1 {rate:.1f}, HR@5" in said
    [words] = commands(said)
    assert words == ["evaluate", str(out)]
    said = mzseek.ok(*words, "--no-decode")


def test_every_option_reaches_the_run(mzseek, small_set, tmp_path: Path) -> None:
    facts = mzseek.json(
        "fit",
        small_set.folder,
        "--channels",
        "analogs",
        "--candidates",
        "formula",
        "--fit-on",
        "val",
        "--identity",
        "inchikey",
        "--groups",
        3,
        "--spectra",
        "swapped",
        "--set",
        "analogs.top=7",
        "--set",
        "analogs.likeness=maccs",
        "--out",
        tmp_path / "run",
        "--jobs",
        1,
    )
    assert facts["model"]["channels"][0]["options"] == {"top": 7, "likeness": "maccs", "doubt": 1.0}
    assert set(facts) == {"out", "best", "model"}
    options = Run.open(tmp_path / "run").description.options
    wanted = {
        "candidates": "formula", "fit_on": ["val"], "identity": "inchikey", "groups": 3,
        "spectra": "swapped",
    }  # fmt: skip
    assert {name: options[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--channels", "fragmnts"], "channel 'fragmnts' is unknown, expected one of: fragments"),
        (["--channels", "run:nowhere"], "nowhere: is no run folder (there is no such folder)"),
        (["--channels", "analogs", "--candidates", "x"], "has no candidates 'x', it has: "),
        (["--channels", "analogs", "--fit-on", "all"], "--fit-on 'all' is unknown, expected one "),
        (["--channels", "analogs", "--spectra", "x"], "spectra 'x' is unknown, expected one of: o"),
        (["--channels", "analogs", "--set", "analogs.top=0"], "top is 0, expected 1 to 1000"),
    ],
)
def test_refusals_are_one_line(mzseek, small_set, tmp_path: Path, more, line: str) -> None:
    status, _, err = mzseek("fit", small_set.folder, "--out", tmp_path / "run", *more)
    assert status == 2
    assert line in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_evaluating_tells_what_each_channel_brings(mzseek, small_set, tmp_path: Path) -> None:
    mzseek.ok("fit", small_set.folder, *BOTH, "--out", tmp_path / "run")
    said = mzseek.ok("evaluate", tmp_path / "run")
    facts = json.loads(mzseek("evaluate", tmp_path / "run", "--json")[1])["channels"]
    assert f"Bits of channels: together {facts['all'][0]:.2f} (" in said
    for name in ("fragments", "analogs"):
        [line] = [line for line in said.splitlines() if line.startswith(f"{name}: ")]
        assert line.startswith(f"{name}: {facts['alone'][name][0]:.2f} (")
        assert f"alone, {facts['added'][name][0]:+.2f} (" in line


def test_a_report_shows_it_beside_others(mzseek, small_set, trained, tmp_path: Path) -> None:
    mzseek.ok("fit", small_set.folder, *BOTH, "--out", tmp_path / "run")
    mzseek.ok(
        "report",
        tmp_path / "run",
        trained("emb-cos").folder,
        "--no-decode",
        "--out",
        tmp_path / "report",
    )
    page = (tmp_path / "report" / "index.html").read_text()
    assert "fragments + analogs" in page
    assert "2 channels, fitted" in page
