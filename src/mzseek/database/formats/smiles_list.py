"""Molecules in lists: a SMILES a line, perhaps with an identifier or a name beside it."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice

from mzseek.chem.molecules import inchi_text, parse_molecule
from mzseek.core.errors import MoleculeError, Reason
from mzseek.database.formats.tables import (
    MOLECULE,
    find_columns,
    holds_molecules,
    molecule_text,
    one_line,
)
from mzseek.database.records import MoleculeRecord, Reader
from mzseek.io import Source, text_lines
from mzseek.io.skipped import Report
from mzseek.io.text_tables import bounded_lines, find_column, first_line, normalise_name, split_row

# A list is recognised by its first lines: at least one in so many has to be a molecule.
_LOOKED_AT = 20
_ONE_IN = 4
_MARKS = ",;|"  # between cells of a table without a header; tabs and blanks are read as well
_CELLS = 3  # the molecule stands in one of the first
_IDENTIFIER = re.compile(r"[A-Za-z]*[-_:]?\d+")
_WORD = re.compile(r"[a-z]{4}")
# Molecule, identifier and name of a line.
Split = Callable[[str], tuple[str, str, str]]


def reader_of(source: Source, named: Mapping[str, str]) -> Reader | None:
    """Return a reader of a list, recognised by a header such as ``smiles`` or by its molecules.

    Lines are ``SMILES title``, with white space between, or ``id<tab>SMILES``, or cells between
    commas, semicolons or bars, one of the first three of them the molecule.
    """
    header = first_line(source)
    if header is not None and _is_header(source.name, header, named):
        return partial(_read, source, _smiles_first, True)
    # Cells need a header where the user names the column.
    split = _split_of(source, "" if any(named.get(m) for m in MOLECULE) else _MARKS)
    return partial(_read, source, split, False) if split else None


def _is_header(file: str, header: str, named: Mapping[str, str]) -> bool:
    """Whether this is ``smiles``, or begins as ``smiles zinc_id`` does."""
    molecule = {meaning: name for meaning, name in named.items() if meaning in MOLECULE}
    title = header.strip().strip('"')
    for name in (title, title.split(maxsplit=1)[0] if title else ""):
        if holds_molecules(find_columns(file, [name], molecule)):
            if name != title:
                find_column(file, title.split(), [normalise_name(name)])
            return True
    return False


def _split_of(source: Source, marks: str) -> Split | None:
    """Choose how lines are split, by the position of molecules in the first lines.

    Between marks only if the very first line has one there: else it may be a header.
    """
    with source.open() as stream:
        lines = (line for _, line in text_lines(stream) if line.strip())
        sample = list(islice(lines, _LOOKED_AT))
    if not sample:
        return None
    splits: list[Split] = [_smiles_first, _id_first]
    cells = [partial(_cell_of, mark, column) for mark in marks for column in range(_CELLS)]
    splits += [split for split in cells if _is_molecule(split(sample[0])[0])]
    counts = [sum(_is_molecule(split(line)[0]) for line in sample) for split in splits]
    best = max(counts)
    return splits[counts.index(best)] if best * _ONE_IN >= len(sample) else None


def _is_molecule(text: str) -> bool:
    if inchi_text(text):
        return True
    try:
        parse_molecule(text)
    except MoleculeError:
        return False
    return True


def _smiles_first(line: str) -> tuple[str, str, str]:
    """Return molecule, identifier and name of ``SMILES title`` or ``SMILES<tab>id<tab>name``."""
    text, _, rest = line.strip().replace("\t", " \t", 1).partition(" ")
    if rest.lstrip().startswith("|"):  # CXSMILES
        rest = rest.lstrip()[1:].partition("|")[2]
    return text.strip('"'), *_labels(rest.strip().split("\t", 1))


def _id_first(line: str) -> tuple[str, str, str]:
    """Return molecule, identifier and name of ``id<tab>SMILES`` or ``id<tab>SMILES<tab>name``."""
    first, text, *rest = [*line.strip("\r\n").split("\t", 2), ""]
    return molecule_text(text), *_labels([first, *rest])


def _cell_of(mark: str, column: int, line: str) -> tuple[str, str, str]:
    """Return molecule, identifier and name of cells, the molecule in one of them."""
    cells = split_row(line, mark) or line.split(mark)
    if len(cells) < 2 or column >= len(cells):
        return "", "", ""
    return molecule_text(cells[column]), *_labels(cells[:column] + cells[column + 1 :])


def _labels(texts: list[str]) -> tuple[str, str]:
    """Recognise identifier and name among the texts beside a molecule.

    Examples
    --------
    >>> _labels(["CHEMBL25"]), _labels(["2-naphthol"]), _labels(["702", "ethanol"])
    (('CHEMBL25', ''), ('', '2-naphthol'), ('702', 'ethanol'))
    """
    first, second = [*map(one_line, texts), "", ""][:2]
    if second:
        return (second, first) if _is_name(first) and not _is_name(second) else (first, second)
    return ("", first) if _is_name(first) else (first, "")


def _is_name(text: str) -> bool:
    """Whether a text is a name: several words, one without digits, or one with a word in it."""
    if _IDENTIFIER.fullmatch(text):
        return False
    return " " in text or not any(map(str.isdigit, text)) or _WORD.search(text) is not None


def _read(
    source: Source, split: Split, has_header: bool, report: Report, origin: str
) -> Iterator[MoleculeRecord]:
    """Yield records of a list, line by line."""

    def skip(number: int, reason: str) -> None:
        report(f"{source.name}: line {number}", reason)

    with source.open() as stream:
        lines = bounded_lines(text_lines(stream), skip)
        if has_header:
            next(lines, None)
        for number, line in lines:
            text, identifier, name = split(line)
            if text:
                yield MoleculeRecord(
                    f"{source.name}: line {number}", text, identifier, name, origin
                )
            else:
                skip(number, Reason("has no molecule", "no-molecule"))
