import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from mzseek.core.errors import ModelError, MzseekError, RunError, WriteError
from mzseek.datasets.prepared import Prepared
from mzseek.models.model import arrays_of
from mzseek.runs.checkpoints import load_weights, save_weights
from mzseek.runs.run import Run
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.state import TrainingOrder, load_matching, load_state, save_state
from mzseek.training.train import train


def assert_one_line(error: pytest.ExceptionInfo, path: Path) -> None:
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def stepped(model, seed: int = 0, steps: int = 3) -> ClippedAdam:
    """An optimiser that has moments, some weights left without."""
    torch.manual_seed(seed)
    optimizer = ClippedAdam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        for parameter in list(model.parameters())[:-1]:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
    return optimizer


def test_the_state_comes_back_bit_by_bit(small_model, tmp_path: Path) -> None:
    model = small_model("emb-cos")
    optimizer = stepped(model)
    save_state(tmp_path / "state", model, optimizer, {"run": "a", "step": 3, "history": []})
    drawn = torch.rand(5)
    other = small_model("emb-cos", seed=9)
    restored = ClippedAdam(other.parameters(), lr=1e-2)
    torch.manual_seed(77)
    facts = load_state(tmp_path / "state", other, restored, "a")
    assert facts == {"run": "a", "step": 3, "history": []}
    assert torch.equal(torch.rand(5), drawn)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
        assert set(optimizer.state.get(one, {})) == set(restored.state.get(two, {}))
        for what, value in optimizer.state.get(one, {}).items():
            assert torch.equal(value, restored.state[two][what])


def test_a_write_that_fails_leaves_the_state_before_it(
    small_model, tmp_path: Path, monkeypatch
) -> None:
    model = small_model()
    save_state(tmp_path / "state", model, stepped(model), {"run": "a", "step": 1})

    def full(*arguments, **options) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mzseek.training.state.save_file", full)
    with pytest.raises(WriteError, match=r"state: cannot be written \(No space"):
        save_state(tmp_path / "state", model, stepped(model), {"run": "a", "step": 2})
    assert load_state(tmp_path / "state", model, stepped(model), "a") == {"run": "a", "step": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize(
    "damage", ["state.json", "state.safetensors", "json", "other model", "other run"]
)
def test_a_damaged_state_is_refused_by_name(damage: str, small_model, tmp_path: Path) -> None:
    model, folder = small_model(), tmp_path / "state"
    save_state(folder, model, stepped(model), {"run": "a", "step": 1})
    if damage == "json":
        (folder / "state.json").write_text("{")
    elif damage == "other model":
        model = small_model("emb-cos")
    elif damage == "other run":
        save_state(folder, model, stepped(model), {"run": "b", "step": 1})
    else:
        (folder / damage).unlink()
    with pytest.raises((ModelError, RunError)) as refused:
        load_state(folder, model, ClippedAdam(model.parameters()), "a")
    assert_one_line(refused, folder)


QUERIES = np.arange(100, 147)


def order(seed: int = 0, size: int = 10, epochs: int = 3) -> TrainingOrder:
    return TrainingOrder(QUERIES, size, epochs, seed)


@pytest.mark.parametrize("size", [1, 10, 16, 47, 100])
def test_every_spectrum_is_seen_once_an_epoch(size: int) -> None:
    made = order(size=size)
    batches = list(made.from_step(0))
    assert len(batches) == made.steps == 3 * made.steps_per_epoch
    for epoch in range(3):
        inside = batches[epoch * made.steps_per_epoch : (epoch + 1) * made.steps_per_epoch]
        assert sorted(np.concatenate(inside)) == QUERIES.tolist()
        assert all(len(batch) == size for batch in inside[:-1])


@pytest.mark.parametrize("first", [0, 1, 4, 5, 7, 14, 15])
def test_going_on_at_a_step_gives_the_rest_of_the_whole(first: int) -> None:
    whole, rest = list(order().from_step(0)), list(order().from_step(first))
    assert [batch.tolist() for batch in rest] == [batch.tolist() for batch in whole[first:]]


def test_another_seed_and_another_epoch_have_another_order() -> None:
    first, other = (np.concatenate(list(order(seed).from_step(0))) for seed in (0, 1))
    assert first.tolist() != other.tolist()
    assert first[:47].tolist() != first[47:94].tolist()


@pytest.mark.parametrize(("first", "second"), [("bce", "emb-cos"), ("bce", "bce")])
def test_a_second_stage_takes_all_that_fits(
    first: str, second: str, small_model, small_spec, tmp_path: Path
) -> None:
    source, model = small_model(first, seed=1), small_model(second, seed=2)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    save_weights(arrays_of(source), small_spec(first), tmp_path / "w.safetensors", {})
    taken = load_matching(model, tmp_path / "w.safetensors")
    given = source.state_dict()
    assert taken == sorted(set(before) & set(given))
    assert {name for name in before if name.startswith("encoder.")} <= set(taken)
    for name, value in model.state_dict().items():
        assert torch.equal(value, given[name] if name in taken else before[name])


def test_a_second_stage_with_another_encoder_is_refused(
    small_model, small_spec, tmp_path: Path
) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(arrays_of(small_model()), small_spec(), path, {})
    with pytest.raises(ModelError, match="has another encoder than this model") as refused:
        load_matching(small_model(model="deepsets"), path)
    assert_one_line(refused, path)


def test_log_odds_start_each_bit_at_its_base_rate(
    small: Prepared, small_options, tmp_path: Path
) -> None:
    options = small_options("iou", bias="log-odds", lr=1e-12, epochs=1)
    run = train(small, options, tmp_path / "run")
    bias = load_weights(run.checkpoint("tanimoto"))[0]["head.bias"]
    molecules = small.molecule[small.in_fold("train")]
    rate = small.fingerprint_rows(molecules).toarray().mean(0)
    rate = np.clip(rate, 0.5 / len(molecules), 1 - 0.5 / len(molecules))
    np.testing.assert_allclose(bias, np.log(rate / (1 - rate)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("second", ["emb-cos", "fp-cos"])
def test_a_second_stage_starts_from_the_first_one_s_weights(
    second: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    first = trained("bce")
    lines: list[str] = []
    options = small_options(second, lr=1e-12, epochs=1, start_from=str(first.folder))
    run = train(small, options, tmp_path / "run", say=lines.append)
    source = load_file(first.checkpoint("tanimoto"))
    taken = {n for n in source if n.startswith("encoder.") or second == "fp-cos"}
    assert any(line.startswith(f"{len(taken)} weights taken from") for line in lines)
    found = load_file(run.checkpoint("hit_rate@1/mass"))
    for name in taken:
        torch.testing.assert_close(found[name], source[name], atol=1e-8, rtol=0)


def test_a_second_stage_goes_on_without_the_first(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "first")
    options = small_options("emb-cos", start_from=str(tmp_path / "first"))
    whole = train(small, options, tmp_path / "whole")

    def stop(stage: str, done: int, total: int | None) -> None:
        if done == 12:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train(small, options, tmp_path / "run", progress=stop)
    shutil.rmtree(tmp_path / "first")
    run = train(small, options, tmp_path / "run", resume=True)
    assert run.history() == whole.history()
    assert run.metadata["checkpoints"] == whole.metadata["checkpoints"]  # digests of their weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere", "is no run folder"),
        ("random", "has model random"),
        ("deepsets", "model deepsets"),
    ],
)
def test_a_first_stage_that_does_not_fit_is_refused(
    source: str, message: str, trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    folder = tmp_path / "nowhere" if source == "nowhere" else trained("bce", model=source).folder
    options = small_options("emb-cos", start_from=str(folder))
    with pytest.raises(MzseekError, match=message):
        train(small, options, tmp_path / "run")
    assert not (tmp_path / "run").exists()  # nothing in the way of the corrected command


def test_a_first_stage_on_other_data_is_refused(
    trained, small: Prepared, small_options, tmp_path: Path
) -> None:
    shutil.copytree(trained("bce").folder, tmp_path / "first")
    first = Run.open(tmp_path / "first")
    first.metadata["data"]["key"] = "0" * 64
    first.save()
    options = small_options("emb-cos", start_from=str(first.folder))
    with pytest.raises(RunError, match="was trained on other data"):
        train(small, options, tmp_path / "run")
