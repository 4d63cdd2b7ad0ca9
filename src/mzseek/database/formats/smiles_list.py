"""Molecules in lists: a SMILES a line, perhaps with an identifier or a name beside it."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice

from mzseek.chem.molecule import inchi_text, parse_molecule
from mzseek.database.formats.columns import (
    MOLECULE,
    find_columns,
    holds_molecules,
    molecule_text,
    one_line,
)
from mzseek.database.record import MoleculeRecord
from mzseek.errors import MoleculeError
from mzseek.files import Source, text_lines
from mzseek.files.streams.table import bounded_lines, first_line, plain_name, sole_column
from mzseek.rejects import Report

# A list is known by its first lines: so many of them, and one in so many has to be a molecule.
_LOOKED_AT = 20
_ONE_IN = 4
# Molecule, identifier and name of a line.
Split = Callable[[str], tuple[str, str, str]]


def reader_of(
    source: Source, named: Mapping[str, str]
) -> Callable[[Report, str], Iterator[MoleculeRecord]] | None:
    """Reader of a list, known by a header such as ``smiles`` or by the molecules in it.

    Lines are ``SMILES title``, with white space between, or ``id<tab>SMILES``.
    """
    header = first_line(source)
    if header is not None and _is_header(source.name, header, named):
        return partial(_read, source, _smiles_first, True)
    split = _split_of(source)
    return partial(_read, source, split, False) if split else None


def _is_header(file: str, header: str, named: Mapping[str, str]) -> bool:
    """Whether this is ``smiles``, or begins as ``smiles zinc_id`` does."""
    molecule = {meaning: name for meaning, name in named.items() if meaning in MOLECULE}
    title = header.strip().strip('"')
    for name in (title, title.split(maxsplit=1)[0] if title else ""):
        if holds_molecules(find_columns(file, [name], molecule)):
            if name != title:
                sole_column(file, title.split(), [plain_name(name)])
            return True
    return False


def _split_of(source: Source) -> Split | None:
    """How lines are to be cut, by where the molecules stand in the first of them."""
    with source.open() as stream:
        lines = (line for _, line in text_lines(stream) if line.strip())
        sample = list(islice(lines, _LOOKED_AT))
    first = sum(_is_molecule(_smiles_first(line)[0]) for line in sample)
    second = sum(_is_molecule(_id_first(line)[0]) for line in sample)
    if not sample or max(first, second) * _ONE_IN < len(sample):
        return None
    return _smiles_first if first >= second else _id_first


def _is_molecule(text: str) -> bool:
    if inchi_text(text):
        return True
    try:
        parse_molecule(text)
    except MoleculeError:
        return False
    return True


def _smiles_first(line: str) -> tuple[str, str, str]:
    """Molecule, identifier and name of ``SMILES title`` or ``SMILES<tab>id<tab>name``."""
    text, _, rest = line.strip().replace("\t", " \t", 1).partition(" ")
    if rest.lstrip().startswith("|"):  # CXSMILES
        rest = rest.lstrip()[1:].partition("|")[2]
    identifier, tab, name = rest.strip().partition("\t")
    identifier, name = one_line(identifier), one_line(name)
    if not tab and " " in identifier:  # an identifier is one word
        identifier, name = "", identifier
    return text.strip('"'), identifier, name


def _id_first(line: str) -> tuple[str, str, str]:
    """Molecule, identifier and name of ``id<tab>SMILES`` or ``id<tab>SMILES<tab>name``."""
    identifier, text, name = [*line.strip("\r\n").split("\t", 2), "", ""][:3]
    return molecule_text(text), one_line(identifier), one_line(name)


def _read(
    source: Source, split: Split, has_header: bool, report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Records of a list, line by line."""

    def set_aside(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        lines = bounded_lines(text_lines(stream), set_aside)
        if has_header:
            next(lines, None)
        for number, line in lines:
            text, identifier, name = split(line)
            if text:
                yield MoleculeRecord(
                    f"{source.name}: line {number}", text, identifier, name, origin
                )
            else:
                set_aside(number, "has no molecule")
