from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from mzseek.core.registry import described
from mzseek.losses import LOSSES


@pytest.mark.parametrize("name", LOSSES)
def test_options_are_frozen_and_say_what_they_are(name: str) -> None:
    loss = LOSSES[name]
    assert is_dataclass(loss.options)
    options = loss.options()
    for field, (said, default, meaning) in zip(
        fields(loss.options), described(loss.options), strict=True
    ):
        assert said == field.name
        assert default
        assert meaning
        with pytest.raises(FrozenInstanceError):
            setattr(options, field.name, 1)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_reads_something(name: str) -> None:
    loss = LOSSES[name]
    assert loss.reads_target or loss.reads_candidates
    assert loss.kind in ("bitwise", "vectorwise", "listwise", "mixture")
    assert not loss.stalls or loss.reads_target
