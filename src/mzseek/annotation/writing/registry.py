"""Writers by name of file and by suffix: one file each in this room, and one line here."""

from typing import TYPE_CHECKING

from mzseek.errors import InputError
from mzseek.registry import LazyRegistry

if TYPE_CHECKING:
    from mzseek.annotation.writing.spool import Writer

_ROOM = "mzseek.annotation.writing"
# Files of an output folder.
FILES: "LazyRegistry[type[Writer]]" = LazyRegistry(
    {
        "summary.tsv": f"{_ROOM}.tables.summary:Summary",
        "candidates.tsv": f"{_ROOM}.tables.candidates:Candidates",
        "peaks.tsv": f"{_ROOM}.tables.peaks:Peaks",
    }
)
# Single files, by how their names end.
SUFFIXES: "LazyRegistry[type[Writer]]" = LazyRegistry(
    {
        ".tsv": f"{_ROOM}.tables.candidates:Candidates",
        ".json": f"{_ROOM}.json_array:JsonArray",
        ".mztab": f"{_ROOM}.mztab.writer:MzTab",
        ".graphml": f"{_ROOM}.graph.writer:GraphMl",
        ".csv": f"{_ROOM}.features.joined:Joined",
        ".txt": f"{_ROOM}.features.joined:Joined",
    }
)


def suffix_of(name: str, more: tuple[str, ...] = ()) -> str:
    """The suffix that a single file's writer is chosen by, in small letters.

    Parameters
    ----------
    name : str
        Of the file.
    more : tuple of str
        Suffixes that the caller has writers for.

    Raises
    ------
    InputError
        It is none of the known ones.

    Examples
    --------
    >>> suffix_of("results/A.mzTab")
    '.mztab'
    """
    known = [*SUFFIXES, *more]
    found = next((suffix for suffix in known if name.lower().endswith(suffix)), None)
    if found is None:
        raise InputError(name, f"its name ends in none of: {', '.join(known)}")
    return found
