"""A molecule as some file has it."""

from typing import NamedTuple


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
    """

    where: str
    text: str
    identifier: str = ""
    name: str = ""
    source: str = ""
    is_block: bool = False
    is_listed: bool = False
