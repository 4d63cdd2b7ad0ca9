"""What channels have learned, on disk."""

from pathlib import Path

import numpy as np
import pytest

from mzseek.core.errors import EvidenceError
from mzseek.evidence.analogs import Analogs
from mzseek.evidence.channel import ChannelState
from mzseek.evidence.fragments import Fragments
from mzseek.evidence.model import open_states, save_states
from mzseek.evidence.queries import Queries, TrainingSet

CHANNELS = (Fragments(), Analogs())


@pytest.fixture
def saved(lessons: TrainingSet, tmp_path: Path) -> tuple[Path, list[ChannelState]]:
    learned = [channel.fit(lessons) for channel in CHANNELS]
    save_states(tmp_path / "evidence", CHANNELS, learned)
    return tmp_path / "evidence", learned


def test_what_is_written_is_read_again(
    saved: tuple[Path, list[ChannelState]], asked: Queries
) -> None:
    folder, learned = saved
    for channel, one, again in zip(CHANNELS, learned, open_states(folder, CHANNELS), strict=True):
        assert np.array_equal(again.inchikey14, one.inchikey14)
        assert dict(again.metadata) == dict(one.metadata)
        said = channel.features(one, asked)
        assert np.array_equal(channel.features(again, asked), said)


def test_nothing_learned_from_is_nothing_again(tmp_path: Path) -> None:
    save_states(tmp_path / "evidence", CHANNELS[:1], [ChannelState({"positive": np.zeros(2)})])
    [again] = open_states(tmp_path / "evidence", CHANNELS[:1])
    assert len(again.inchikey14) == 0


def test_damage_is_said_in_a_line(saved: tuple[Path, list[ChannelState]]) -> None:
    folder, _ = saved
    with pytest.raises(EvidenceError, match=r"is missing|no such file"):
        open_states(folder, CHANNELS[::-1])
    path = folder / "0-fragments.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(
        EvidenceError, match=r"0-fragments.safetensors has changed; run `mzseek fit`"
    ):
        open_states(folder, CHANNELS)
    path.unlink()
    with pytest.raises(EvidenceError, match=r"is no fitted evidence .there is no such folder"):
        open_states(folder / "nowhere", CHANNELS)
    with pytest.raises(EvidenceError, match=r"0-fragments.safetensors"):
        open_states(folder, CHANNELS)
