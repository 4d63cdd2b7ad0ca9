"""Channels by name."""

import subprocess
import sys

import pytest

from mzseek.core.errors import EvidenceError
from mzseek.evidence import channel_from, channels_from, check_names


def test_channels_as_users_name_them() -> None:
    found = channels_from(" fragments, run:runs/emb-cos ,analogs", ["fragments.ppm=5"])
    assert [channel.label for channel in found] == ["fragments", "run:emb-cos", "analogs"]
    assert found[0].options.ppm == 5.0
    assert found[1].options.path == "runs/emb-cos"
    assert check_names("analogs,run:a/b") == [("analogs", ""), ("run", "a/b")]
    assert channel_from("analogs", {"top": 3}).options.top == 3


@pytest.mark.parametrize(
    ("names", "setting", "message"),
    [
        ("", None, "no channels, expected one or more of: fragments, analogs, subs"),
        ("fragmnts", None, "channel 'fragmnts' is unknown, expected one of: fragments, analogs"),
        ("run", None, "channel 'run' is unknown, expected run:FOLDER"),
        ("run:", None, "channel 'run:' is unknown, expected run:FOLDER"),
        ("analogs:x", None, "channel 'analogs:x' is unknown, expected analogs"),
        ("fragments,fragments", None, "two channels are called fragments"),
        ("run:a/x,run:b/x", None, "two channels are called run:x; give the runs names of"),
        ("fragments", "ppm=5", "expected CHANNEL.OPTION=VALUE"),
        ("fragments", "analogs.top=5", "channel 'analogs' is unknown, expected one of: fragments"),
        ("fragments", "fragments.pm=5", "option 'pm' is unknown, expected one of: ppm"),
        ("fragments", "fragments.ppm=wide", "ppm is 'wide', expected a number"),
        ("fragments", "fragments.ppm=-1", "ppm is -1.0, expected more than 0"),
    ],
)
def test_unknown_channels_and_options_are_refused(names, setting, message: str) -> None:
    with pytest.raises(EvidenceError, match=message):
        channels_from(names, [] if setting is None else [setting])


def test_names_are_known_without_numpy() -> None:
    code = (
        "import sys; from mzseek.evidence import CHANNELS; list(CHANNELS);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'torch', 'rdkit')))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
