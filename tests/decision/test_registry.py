import subprocess
import sys

import pytest

from mzseek.core.errors import DecisionError
from mzseek.decision.utilities import BAND_SIMILARITIES, UTILITIES, utility_named


def test_names_are_their_keys() -> None:
    assert all(name == each.name == utility_named(name).name for name, each in UTILITIES.items())
    assert BAND_SIMILARITIES == ("bits", "tanimoto", "cosine", "f1")


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(DecisionError, match="utility 'dice' is unknown, expected one of: hit, bit"):
        utility_named("dice")


def test_names_and_facts_load_no_library() -> None:
    heavy = "{'numpy', 'scipy'}"
    code = f"import sys, mzseek.decision.utilities; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
