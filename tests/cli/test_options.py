import pytest

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.cli.app import COMMANDS
from mzseek.decision.utilities import BAND_SIMILARITIES, GOALS
from mzseek.losses import LOSSES
from mzseek.training.options import MODELS

LISTED = {
    ("train",): (*LOSSES, *MODELS),
    ("prepare",): tuple(FINGERPRINTS),
    ("database", "build"): tuple(FINGERPRINTS),
    ("bands",): (*FINGERPRINTS, *BAND_SIMILARITIES),
    ("decide",): tuple(FINGERPRINTS),
    ("advise",): tuple(GOALS),
}


@pytest.mark.parametrize("command", LISTED, ids=" ".join)
def test_help_lists_what_the_registries_hold(command: tuple[str, ...], mzseek) -> None:
    assert command[0] in COMMANDS
    text = mzseek.ok(*command, "--help")
    words = text.replace(";", " ").replace(":", " ").replace(".", " ").split()
    assert [name for name in LISTED[command] if name not in words] == []
