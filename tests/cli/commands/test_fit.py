from pathlib import Path

import pytest

from mzseek.runs.run import Run

from ..conftest import commands

pytestmark = pytest.mark.usefixtures("threads_kept")
BOTH = ("--channels", "fragments,analogs", "--jobs", 1)


@pytest.mark.slow
def test_it_prints_weights_and_what_comes_next(mzseek, small_set, trained, tmp_path: Path) -> None:
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
    said = mzseek.ok(*words)  # which tells what each channel brings
    facts = mzseek.json(*words)["channels"]
    assert f"Bits of channels: together {facts['all'][0]:.2f} (" in said
    for name in ("fragments", "analogs"):
        [line] = [line for line in said.splitlines() if line.startswith(f"{name}: ")]
        assert line.startswith(f"{name}: {facts['alone'][name][0]:.2f} (")
        assert f"alone, {facts['added'][name][0]:+.2f} (" in line
    folders = (out, trained("emb-cos").folder)
    mzseek.ok("report", *folders, "--no-decode", "--out", tmp_path / "report")
    page = (tmp_path / "report" / "index.html").read_text()
    assert "fragments + analogs" in page
    assert "2 channels, fitted" in page


def test_every_option_reaches_the_run(mzseek, small_set, tmp_path: Path) -> None:
    given = "--channels analogs --candidates formula --fit-on val --identity inchikey --groups 3"
    given += " --spectra swapped --set analogs.top=7 --set analogs.likeness=maccs --jobs 1"
    facts = mzseek.json("fit", small_set.folder, *given.split(), "--out", tmp_path / "run")
    assert facts["model"]["channels"][0]["options"] == {"top": 7, "likeness": "maccs", "doubt": 1.0}
    assert set(facts) == {"out", "best", "model"}
    options = Run.open(tmp_path / "run").description.options
    wanted = {
        "candidates": "formula", "fit_on": ["val"], "identity": "inchikey", "groups": 3,
        "spectra": "swapped",
    }  # fmt: skip
    assert {name: options[name] for name in wanted} == wanted
