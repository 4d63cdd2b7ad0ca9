"""Names of files and folders as shown to people."""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

# All of Unicode's controls but the tab, line ends, the marks that turn the direction of text
# around, halves of characters, which stand for bytes of a file's name that are no UTF-8, and what
# Unicode has set apart for a program's own use.
_HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufdd0-\ufdef\ufffe\uffff]"
)
# Letters and symbols that are drawn as nothing.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def visible(text: object) -> str:
    r"""Text in which every character that would do something, or break a file, is a mark.

    Examples
    --------
    >>> visible("run\x1b[2J")
    'run�[2J'
    """
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text))


def distinct_labels(folders: Sequence[Path], taken: Collection[str] = ()) -> list[str]:
    """A label for each folder: its name, or as much of its path as tells it from the others.

    A folder is what it resolves to: given twice, also by a link, it has one label.

    Parameters
    ----------
    folders : sequence of Path
    taken : collection of str
        Labels that stand for something else where these will be shown.

    Returns
    -------
    list of str
        One a folder, safe to print; different for different folders, also to the eye.

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
        alike = [
            folder
            for folder, label in labels.items()
            if seen[_look(label)] > 1 or _look(label) in reserved
        ]
        deeper = [folder for folder in alike if depth[folder] < len(folder.parts)]
        if not deeper:
            break
        for folder in deeper:
            depth[folder] += 1
    used = reserved | {_look(label) for label in labels.values()}
    for folder in alike:  # whole paths that differ only in what cannot be seen
        numbered = (f"{labels[folder]} ({number})" for number in itertools.count(1))
        labels[folder] = next(label for label in numbered if _look(label) not in used)
        used.add(_look(labels[folder]))
    return [labels[folder] for folder in resolved]


def _ending(folder: Path, parts: int) -> str:
    """The last parts of a path; in quotes where nothing of it could be seen."""
    if parts >= len(folder.parts):
        text = visible(folder.as_posix())
    else:
        text = visible("/".join(folder.parts[-parts:]))
    return text if _look(text) else f'"{text}"'


def _look(text: str) -> str:
    """What is left of a text on a page: spaces run together, what has no width is gone."""
    seen = (c for c in text if c not in _BLANK and unicodedata.category(c) != "Cf")
    return " ".join("".join(seen).split())
