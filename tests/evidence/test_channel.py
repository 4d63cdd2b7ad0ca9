"""What every channel keeps to."""

import numpy as np
import pytest

from mzseek.evidence.channel import Channel, ChannelState
from mzseek.evidence.registry import CHANNELS


def test_nothing_learned_is_from_no_molecule() -> None:
    assert ChannelState().blocks.shape == (0,)
    assert ChannelState().blocks.dtype == np.dtype("S14")


@pytest.mark.parametrize("name", list(CHANNELS))
def test_channels_have_facts_and_options(name: str) -> None:
    kind = CHANNELS[name]
    assert issubclass(kind, Channel)
    assert kind.name == name
    made = kind()
    assert len(set(made.feature_names)) == len(made.feature_names) > 0
    assert made.options == kind.options_type()
