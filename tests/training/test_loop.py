from pathlib import Path

import pytest
import torch

from mzseek.core.errors import RunError
from mzseek.datasets.prepared import Prepared
from mzseek.training.loop import Learner
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.state import TrainingOrder
from mzseek.training.train import train


def test_the_learning_rate_warms_up(
    small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    rates: list[float] = []
    step = ClippedAdam.step

    def noted(self: ClippedAdam, closure=None):
        rates.append(self.param_groups[0]["lr"])
        return step(self, closure)

    monkeypatch.setattr(ClippedAdam, "step", noted)
    train(small, small_options(warmup=8, lr=1e-3, epochs=3), tmp_path / "run")
    assert rates == pytest.approx([1e-3 * min(1, n / 8) for n in range(1, 13)])


@pytest.mark.parametrize("loss", ["bce", "emb-cos"])
def test_each_step_learns_from_the_spectra_of_its_turn(
    loss: str, small: Prepared, small_set, small_options, tmp_path: Path, monkeypatch
) -> None:
    """With candidates where the loss reads them, and without the spectra that have none."""
    seen, learn = [], Learner.learn
    monkeypatch.setattr(
        Learner, "learn", lambda self, batch: seen.append(batch) or learn(self, batch)
    )
    train(small, small_options(loss, epochs=2, seed=3), tmp_path / "run")
    usable = small.in_fold("train")
    if loss == "emb-cos":
        listed = small_set.lists["mass"]
        named = [small_set.smiles[small.identifiers[query]] for query in usable]
        usable = usable[[smiles in listed for smiles in named]]
    order = TrainingOrder(usable, 16, 2, 3)
    assert [batch.queries.tolist() for batch in seen] == [q.tolist() for q in order.from_step(0)]
    assert all(set(batch.lists) == ({"mass"} if loss == "emb-cos" else set()) for batch in seen)


def test_the_caller_s_random_numbers_go_on_where_they_were(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    train(small, small_options(epochs=1), tmp_path / "run")
    assert torch.equal(torch.rand(3), expected)


def test_tensorboard_s_files_are_written_when_asked_for(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    pytest.importorskip("tensorboard")
    options = small_options("emb-cos", epochs=2)
    run = train(small, options, tmp_path / "run", tensorboard=True)
    assert list((run.folder / "tensorboard").glob("events.out.tfevents.*"))


def test_tensorboard_draws_what_the_history_has(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(small, small_options("bce", epochs=3), tmp_path / "run", tensorboard=True)
    drawn = EventAccumulator(str(run.folder / "tensorboard"))
    drawn.Reload()
    rows = run.history()
    names = set(rows[0]) - {"step", "epoch", "spread"}
    assert set(drawn.Tags()["scalars"]) == names
    for name in names:
        found = [(event.step, event.value) for event in drawn.Scalars(name)]
        assert found == [(row["step"], pytest.approx(row[name])) for row in rows]


def test_tensorboard_may_be_missing(
    small: Prepared, small_options, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("mzseek.training.loop.find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"pip install 'mzseek\[tensorboard\]'"):
        train(small, small_options(), tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()
