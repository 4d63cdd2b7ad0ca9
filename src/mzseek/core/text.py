"""Names of files and folders as shown to people."""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

# Control characters but the tab, line ends, marks of text direction, surrogates (bytes of a file's
# name that are no UTF-8), and noncharacters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufdd0-\ufdef\ufffe\uffff]"
)
# Letters and symbols without a glyph.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def visible(text: object) -> str:
    r"""Replace characters that would control a terminal or break a file by a mark.

    Examples
    --------
    >>> visible("run\x1b[2J")
    'run�[2J'
    """
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text))


def pluralize(number: int, singular: str, plural: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> pluralize(1, "peak was", "peaks were"), pluralize(1200, "peak was", "peaks were")
    ('1 peak was', '1,200 peaks were')
    """
    return f"{number:,} {singular if number == 1 else plural}"


def distinct_labels(folders: Sequence[Path], taken: Collection[str] = ()) -> list[str]:
    """Label each folder by its name, or by as much of its path as tells it from the others.

    Labels are safe to print, and different, also to the eye, for folders that resolve to different
    paths; those in ``taken`` are not used.

    Examples
    --------
    >>> distinct_labels([Path("/a/run"), Path("/b/run"), Path("/b/other")])
    ['a/run', 'b/run', 'other']
    """
    resolved = [Path(folder).resolve() for folder in folders]
    depth = dict.fromkeys(resolved, 1)
    reserved = {_look(label) for label in taken}
    while True:
        labels = {folder: _ending(folder, parts) for folder, parts in depth.items()}
        seen = Counter(_look(label) for label in labels.values())
        ambiguous = [
            folder
            for folder, label in labels.items()
            if seen[_look(label)] > 1 or _look(label) in reserved
        ]
        deeper = [folder for folder in ambiguous if depth[folder] < len(folder.parts)]
        if not deeper:
            break
        for folder in deeper:
            depth[folder] += 1
    used = reserved | {_look(label) for label in labels.values()}
    for folder in ambiguous:  # whole paths that differ in invisible characters only
        numbered = (f"{labels[folder]} ({number})" for number in itertools.count(1))
        labels[folder] = next(label for label in numbered if _look(label) not in used)
        used.add(_look(labels[folder]))
    return [labels[folder] for folder in resolved]


def _ending(folder: Path, parts: int) -> str:
    """Return the last parts of a path; in quotes where nothing of it is visible."""
    if parts >= len(folder.parts):
        text = visible(folder.as_posix())
    else:
        text = visible("/".join(folder.parts[-parts:]))
    return text if _look(text) else f'"{text}"'


def _look(text: str) -> str:
    """Return what a reader sees of a text: no zero-width characters, single spaces."""
    seen = (c for c in text if c not in _BLANK and unicodedata.category(c) != "Cf")
    return " ".join("".join(seen).split())
