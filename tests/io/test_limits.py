"""Each bound of the code is a row of the table that users read."""

import re
from pathlib import Path

from mzseek.io import sources as limits

TABLE = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
# As the table writes what is a power of two in the code.
WRITTEN = {"MAX_WINDOW": "128 MB", "RATIO_FROM": "1 GB"}


def test_every_bound_is_in_the_docs() -> None:
    text = TABLE.read_text()
    table = text[text.index("## Bounds") : text.index("## What is understood")]
    names = [name for name in vars(limits) if name.isupper()]
    assert len(names) == 23
    missing = [
        name
        for name in names
        if not re.search(rf"\b{WRITTEN.get(name) or f'{vars(limits)[name]:,}'}\b", table)
    ]
    assert missing == []
    assert (limits.MAX_WINDOW, limits.RATIO_FROM) == (128 << 20, 1 << 30)
