import os
import pickle
from pathlib import Path

import pytest

from mzseek import errors
from mzseek.data import Prepared
from mzseek.errors import RunError
from mzseek.training.checkpoint import load_weights
from mzseek.training.run import Run
from mzseek.training.several import train_several


@pytest.mark.slow
def test_two_runs_in_two_processes_are_what_each_would_be_alone(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    wanted = {"bitwise": small_options("bce"), "blind, listwise": small_options("iou")}
    told: list[tuple[str, int, int]] = []
    lines: list[str] = []
    runs = train_several(
        small.folder, wanted, tmp_path, processes=2,
        progress=lambda *facts: told.append(facts), say=lines.append,
    )  # fmt: skip
    assert set(runs) == set(wanted)
    assert {path.name for path in tmp_path.iterdir()} == set(wanted)
    for (name, run), alone in zip(runs.items(), (trained("bce"), trained("iou")), strict=True):
        assert run.finished
        assert run.best == alone.best
        one, two = (load_weights(r.checkpoint("tanimoto"))[0].state_dict() for r in (run, alone))
        assert all((one[key] == two[key]).all() for key in one)
        assert (name, 24, 24) in told
    assert any(line.startswith("blind, listwise: warning: ") for line in lines)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    again = train_several(small.folder, wanted, tmp_path, processes=1)  # have ended already
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == times
    assert again["bitwise"].best == runs["bitwise"].best
    other = {"bitwise": small_options("bce", seed=3)}
    with pytest.raises(RunError, match="was begun with seed 0, not 3"):
        train_several(small.folder, other, tmp_path, processes=1)
    assert Run.open(tmp_path / "bitwise").options.seed == 0


@pytest.mark.parametrize("name", [n for n in dir(errors) if n.endswith("Error")])
def test_errors_come_back_from_another_process(name: str) -> None:
    kind = getattr(errors, name)
    error = kind(os.devnull, "is no folder") if name == "InputError" else kind("is no folder")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)
    assert vars(back) == vars(error)
