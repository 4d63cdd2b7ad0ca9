"""Names and identifiers of molecules, from records and from tables of known molecules."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mzseek.annotation.bundle.licences import is_allowed
from mzseek.annotation.writing.links import canonical, link
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.errors import InputError
from mzseek.files import StrPath, open_source
from mzseek.files.streams.table import open_table, plain_name, shown_names
from mzseek.rejects import Report
from mzseek.spectra import read_spectra

_LONGEST = 120
# Columns of a table of known molecules that hold identifiers, and what goes before each.
_IDENTIFIERS = {
    "pubchemcid": "CID:", "hmdb": "", "chebi": "CHEBI:", "kegg": "KEGG:", "lipidmaps": "",
    "dtxsid": "",
}  # fmt: skip
_REQUIRED = ("inchikey", "smiles", "name")
# Isotope labels: "-[1,2,3,4-13C4]", "-[d11]", " (2,5-D2)", "(1-D)" at the end, "-d5", "-13C6".
_LABEL = re.compile(
    r"[\s-]*[(\[][\w,'-]*?(?:(?:13C|15N|18O)\d*|[dD]\d+)[)\]]|[\s-]*\([\d,'-]+-D\)$"
    r"|-(?:13C|15N|18O)\d*\b|-d\d{1,2}\b"
)
_REMARK = re.compile(r"\s+\([A-Za-z][^()]*\)$")  # "(NMR)", "(PFTeDA)"
_CODE = re.compile(r"[A-Za-z]+_\w*\d|_BTP_|\[?\d?M[+-](?:H|Na|K|NH4)\b|\d{5}|^[\d.,;: -]+$|[?]")
_WORD = re.compile(r"[A-Za-z][a-z]{3}|[A-Z]{6}")
_CAPITALS = re.compile(r"[A-Z]{3,}|\b(?:AL|DI|EN|OL|ON|YL|YN)\b|^[MP](?=-)")
_MARKS = re.compile(r"[\d()\[\]{},;]")
_SALT = re.compile(r"\b(?:hydro(?:chlor|brom)ide|(?:di)?sodium|potassium|salt|hydrate)\b", re.I)


@dataclass(frozen=True)
class KnownMolecule:
    """A molecule of a table that names it.

    Attributes
    ----------
    where : str
        File and line, for messages.
    key : str
        First block of the InChIKey, as the table states it.
    smiles, name : str
    identifiers : tuple of str
        In canonical form, see `mzseek.annotation.writing.links`.
    is_measured : bool
        Whether the table says that the reference sets hold a spectrum of it.
    """

    where: str
    key: str
    smiles: str
    name: str
    identifiers: tuple[str, ...]
    is_measured: bool


def best_name(names: Iterable[str]) -> str:
    """Return the plainest of several names; empty where none can be shown.

    The order counts: another name than the first is taken where that one is a code, an
    abbreviation, an anion, all capitals, or full of locants and brackets. Isotope labels and
    remarks in brackets are cut off.

    Examples
    --------
    >>> best_name(["1,3,7-trimethylpurine-2,6-dione", "Caffeine"])
    'Caffeine'
    >>> best_name(["Malic acid-[1,2,3,4-13C4]", "L-Malate", "Malic acid"])
    'Malic acid'
    >>> best_name(["LID_265.1546_9.2", "2-[[2-(diethylamino)acetyl]amino]-3-methylbenzoic acid"])
    '2-[[2-(diethylamino)acetyl]amino]-3-methylbenzoic acid'
    >>> best_name(["4-PENTYLPYRIDINE"]), best_name(["PC 36:5"]), best_name(["CID 7"])
    ('4-Pentylpyridine', 'PC 36:5', '')
    """
    scored = []
    for place, given in enumerate(names):
        name = _REMARK.sub("", _LABEL.sub("", " ".join(given.split())))
        if is_named(name) and not link(name):
            later = 2.0 + min(place, 5) if place else 0.0
            scored.append((_penalty(name) + later, place, name))
    return _lowered(min(scored)[2]) if scored else ""


def _penalty(name: str) -> float:
    """Score a name: near 0 for a short word, more for what is harder to read."""
    is_anion = " " not in name and name.lower().endswith("ate")
    return (
        len(name) / 12
        + 0.6 * len(_MARKS.findall(name))
        + 3.0 * name.isupper()
        + 4.0 * is_anion
        + 4.0 * bool(_SALT.search(name))
        + 8.0 * (not _WORD.search(name))
        + 50.0 * bool(_CODE.search(name))
    )


def _lowered(name: str) -> str:
    """Return a name that is all capitals in lower case; locants and abbreviations stay."""
    if not name.isupper() or not _WORD.search(name):
        return name
    lowered = _CAPITALS.sub(lambda match: match[0].lower(), name)
    return re.sub(r"[a-z]{2}", lambda match: match[0].capitalize(), lowered, count=1)


def read_names(paths: Sequence[StrPath], licences: Sequence[str], report: Report) -> dict[str, str]:
    """Read the names that records of spectra give to molecules.

    Parameters
    ----------
    paths : sequence of paths
        Files of spectra, folders or zip archives; MassBank's records, for instance.
    licences : sequence of str
        Families of licences under which records are read.
    report : callable
        Gets where and why for each record that cannot be read.

    Returns
    -------
    dict of str to str
        The best name by the first block of the InChIKey.
    """
    names: dict[str, dict[str, None]] = {}
    for path in paths:
        for spectrum in read_spectra(path, report):
            stated = spectrum.metadata
            licence = stated.get("license") or stated.get("licence", "")
            key = stated.get("inchikey", "")[:BLOCK_LENGTH].upper()
            if len(key) == BLOCK_LENGTH and is_allowed(licence, licences):
                names.setdefault(key, {})[stated.get("compound_name", "")] = None
    best = {
        key: best_name(sorted(own, key=lambda name: (_penalty(name), name)))
        for key, own in names.items()
    }
    return {key: name for key, name in best.items() if name}


def read_known(path: StrPath, report: Report) -> list[KnownMolecule]:
    """Read a table of known molecules with their names and identifiers.

    Parameters
    ----------
    path : path
        Columns ``inchikey``, ``smiles`` and ``name``; where they are there, ``synonyms`` (with
        ``|`` between them), ``pubchem_cid``, ``hmdb``, ``chebi``, ``kegg``, ``lipidmaps``,
        ``dtxsid`` (with blanks between several), and ``in_sets`` (yes or no).
    report : callable
        Gets where and why for each row that is skipped.

    Raises
    ------
    InputError
        The file cannot be read, or is no such table.
    """
    source = open_source(path)
    table = open_table(source, lambda names: set(_REQUIRED) <= set(map(plain_name, names)))
    if table is None:
        raise InputError(path, f"is no table of molecules with {shown_names(_REQUIRED)}")
    columns = [plain_name(name) for name in table.names]
    known: list[KnownMolecule] = []
    for number, cells in table.rows(lambda line, why: report(f"{source.name}: line {line}", why)):
        where = f"{source.name}: line {number}"
        if len(cells) != len(columns):
            report(where, f"has {len(cells)} columns, expected {len(columns)}")
            continue
        row = dict(zip(columns, map(str.strip, cells), strict=True))
        if not row["smiles"] or len(row["inchikey"]) < BLOCK_LENGTH:
            report(where, "has no SMILES or no InChIKey")
            continue
        known.append(
            KnownMolecule(
                where,
                row["inchikey"][:BLOCK_LENGTH].upper(),
                row["smiles"],
                best_name([row["name"], *row.get("synonyms", "").split("|")]),
                _identifiers(row),
                row.get("insets") == "yes",
            )
        )
    return known


def _identifiers(row: dict[str, str]) -> tuple[str, ...]:
    """Return the first identifier of each resource that has a page for it, in canonical form."""
    texts = [
        before + text.split()[0].removeprefix(before)
        for column, before in _IDENTIFIERS.items()
        if (text := row.get(column, ""))
    ]
    return tuple(canonical(text) for text in texts if link(text))


def is_named(name: str) -> bool:
    r"""Return whether a text can be shown as a molecule's name.

    Examples
    --------
    >>> is_named("Caffeine"), is_named(""), is_named("a\x1bb")
    (True, False, False)
    """
    return 0 < len(name) <= _LONGEST and name.isprintable()
