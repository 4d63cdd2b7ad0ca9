from pathlib import Path

import pytest
import torch

from mzseek.core.errors import ModelError, RunError, WriteError
from mzseek.training.optimizer import ClippedAdam
from mzseek.training.state import load_state, save_state


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


def test_a_state_replaces_the_one_before_it(small_model, tmp_path: Path) -> None:
    model = small_model()
    for step in (1, 2):
        save_state(tmp_path / "state", model, stepped(model), {"run": "a", "step": step})
    assert load_state(tmp_path / "state", model, stepped(model), "a") == {"run": "a", "step": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


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
