"""Channels by name."""

import subprocess
import sys

import pytest

from mzseek.core.errors import EvidenceError
from mzseek.evidence.registry import CHANNELS, channel_from, channels_from, check_names


def test_channels_as_people_name_them() -> None:
    found = channels_from(" fragments, run:runs/emb-cos ,analogs", ["fragments.ppm=5"])
    assert [channel.label for channel in found] == ["fragments", "run:emb-cos", "analogs"]
    assert found[0].options.ppm == 5.0
    assert found[1].options.path == "runs/emb-cos"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("", "no channels, expected one or more of: fragments, analogs, subs"),
        ("fragmnts", "channel 'fragmnts' is unknown, expected one of: fragments, analogs"),
        ("run", "channel 'run' is unknown, expected run:FOLDER"),
        ("run:", "channel 'run:' is unknown, expected run:FOLDER"),
        ("analogs:x", "channel 'analogs:x' is unknown, expected analogs"),
        ("fragments,fragments", "two channels are called fragments"),
        ("run:a/x,run:b/x", "two channels are called run:x; give the runs names of their own"),
    ],
)
def test_names_that_will_not_do(names: str, said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        channels_from(names)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("ppm=5", "expected CHANNEL.OPTION=VALUE"),
        ("analogs.top=5", "channel 'analogs' is unknown, expected one of: fragments"),
        ("fragments.pm=5", "option 'pm' is unknown, expected one of: ppm"),
        ("fragments.ppm=wide", "ppm is 'wide', expected a number"),
        ("fragments.ppm=-1", "ppm is -1.0, expected more than 0"),
    ],
)
def test_options_that_will_not_do(setting: str, said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        channels_from("fragments", [setting])


def test_a_channel_from_plain_data() -> None:
    assert channel_from("analogs", {"top": 3}).options.top == 3
    with pytest.raises(EvidenceError, match="channel 'x' is unknown"):
        channel_from("x", {})


def test_names_are_known_without_numpy() -> None:
    code = (
        "import sys; from mzseek.evidence.registry import CHANNELS; list(CHANNELS);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'torch', 'rdkit')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_check_names_says_what_each_names() -> None:
    assert check_names("analogs,run:a/b") == [("analogs", ""), ("run", "a/b")]
    assert set(CHANNELS) == {"fragments", "analogs", "substructures", "prior", "run"}
