"""A molecule as some file has it, and the files that molecules come from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mzseek.rejects import Report


class MoleculeRecord(NamedTuple):
    """One molecule of a source, not looked at yet.

    Attributes
    ----------
    where : str
        The file and the line or record, for messages.
    text : str
        SMILES, or InChI (with or without its prefix), or a MOL block where ``is_block``.
    identifier, name : str
        What the source calls it; empty where it does not say.
    source : str
        The collection it comes from.
    is_block : bool
        The text is a MOL block.
    is_listed : bool
        Identifier, name and source are lists in one cell each, as an export has them, and the
        identifiers say their sources themselves.
    feature : str or None
        The feature that it is a candidate for; None where its file names none.
    """

    where: str
    text: str
    identifier: str = ""
    name: str = ""
    source: str = ""
    is_block: bool = False
    is_listed: bool = False
    feature: str | None = None


Reading = Callable[[Report], Iterable[MoleculeRecord]]


@dataclass(frozen=True)
class Sources:
    """Molecules to build from.

    Attributes
    ----------
    read : callable of a report
        Gives the records, the same in the same order every time.
    files : tuple of Path
        The files that they come from; their content is part of what makes a store.
    options : dict
        How they are read, as plain data.
    """

    read: Reading
    files: tuple[Path, ...]
    options: dict[str, Any]
