"""Which column of a table says what, and the record that a row makes."""

from collections.abc import Mapping, Sequence

from mzseek.database.record import MoleculeRecord
from mzseek.errors import InputError, MzseekError
from mzseek.files.streams.table import plain_name, shown_names, sole_column
from mzseek.registry import check_name

# By preference, written without case, blanks and marks: "Canonical SMILES" is canonicalsmiles.
KNOWN = {
    "smiles": (
        "smiles", "canonicalsmiles", "isomericsmiles", "isosmiles", "connectivitysmiles",
        "moleculesmiles", "compoundsmiles", "structuresmiles", "structure",
    ),
    "inchi": ("inchi", "standardinchi", "stdinchi"),
    "id": (
        "id", "dtxsid", "identifier", "accession", "pubchemcompoundcid", "databaseid", "cid",
        "pubchemcid", "compoundcid", "hmdbid", "chebiid", "chemblid", "moleculechemblid", "lmid",
        "drugbankid", "zincid", "compoundid", "moleculeid", "catalogid",
    ),
    "name": (
        "name", "title", "compoundname", "cmpdname", "genericname", "commonname", "preferredname",
        "prefname", "chemblprefname", "chebiname", "chemicalname", "moleculename", "compound",
        "pubchemiupacname", "iupacname", "systematicname",
    ),
    "source": ("source", "database"),
    # CompTox: desalted, neutral and without stereo, beside the substance as it is registered.
    "ms_ready_smiles": ("msreadysmiles",),
    # The feature that a candidate is for; looked for only where `named` has the meaning.
    "feature": (
        "feature", "featureid", "mappingfeatureid", "rowid", "scans", "scan", "query", "spectrum",
    ),
}  # fmt: skip
# By preference: the first that a row has is its molecule.
MOLECULE = ("ms_ready_smiles", "smiles", "inchi")
FEATURE = "feature"
# Value of `named` for a column that is looked for by its usual names.
USUAL = ""
# Columns of what `mzseek database export` and `search` write, where a molecule has all its names.
EXPORTED = ("smiles", "formula", "mass", "key", "sources", "identifiers", "names")
_NOTHING = {"", "-", "na", "n/a", "nan", "none", "null"}


def check_named(named: Mapping[str, str]) -> None:
    """Refuse columns for what no record has."""
    for meaning in named:
        check_name(KNOWN, meaning, "a column for", MzseekError)


def find_columns(file: object, names: Sequence[str], named: Mapping[str, str]) -> dict[str, int]:
    """Places of the columns that are there, by meaning.

    Of several names for one thing the first of `KNOWN` is taken.

    Parameters
    ----------
    file : object
        For the message.
    names : sequence of str
        Names of the table's columns.
    named : mapping of str to str
        Names that the user gave; for these meanings no other name is tried. ``{"feature": ""}``
        looks for a column of features by its usual names.

    Raises
    ------
    InputError
        Two columns have the name that is taken.

    Examples
    --------
    >>> find_columns("a.csv", ["CID", "Canonical SMILES", "Titel"], {"name": "Titel"})
    {'smiles': 1, 'id': 0, 'name': 2}
    """
    by_user = any(meaning in named for meaning in MOLECULE)
    places = {}
    for meaning, usual in KNOWN.items():
        if wanted := named.get(meaning, USUAL):
            place = sole_column(file, names, [wanted.strip()], exact=True)
            if place is None:
                place = sole_column(file, names, [plain_name(wanted)])
        elif (by_user and meaning in MOLECULE) or (meaning == FEATURE and FEATURE not in named):
            continue
        else:
            place = sole_column(file, names, usual)
        if place is not None:
            places[meaning] = place
    return places


def holds_molecules(places: Mapping[str, int]) -> bool:
    """Whether a column of molecules was found."""
    return any(meaning in places for meaning in MOLECULE)


def require_columns(
    file: str, names: Sequence[str], places: Mapping[str, int], named: Mapping[str, str]
) -> None:
    """Refuse a table without molecules, or without a column that the user named."""
    for meaning, name in named.items():
        if name and meaning not in places:
            raise InputError(file, f"no column is called {name!r}; it has {shown_names(names)}")
    if not holds_molecules(places):
        raise InputError(
            file,
            "no column is called smiles, canonical_smiles, isomeric_smiles, structure or inchi; "
            f"it has {shown_names(names)}; name the column with --smiles-column",
        )


def record_of(
    where: str, cells: Sequence[str], places: Mapping[str, int], source: str
) -> MoleculeRecord | None:
    """MoleculeRecord of a row; none where the row has no molecule.

    The molecule is the first of `MOLECULE` that the row has.
    """
    texts = (molecule_text(cells[places[m]]) for m in MOLECULE if m in places)
    text = next(filter(None, texts), "")
    if not text:
        return None
    identifier, name, own_source, feature = (
        one_line(cells[places[meaning]]) if meaning in places else ""
        for meaning in ("id", "name", "source", FEATURE)
    )
    return MoleculeRecord(
        where, text, identifier, name, own_source or source,
        feature=feature if FEATURE in places else None,
    )  # fmt: skip


def molecule_text(cell: str) -> str:
    """SMILES or InChI of a cell, without a CXSMILES extension; empty where it has none."""
    text = cell.strip()
    if " |" in text:
        text = text.partition(" |")[0].rstrip()
    return "" if len(text) <= 4 and text.lower() in _NOTHING else text


def one_line(text: str) -> str:
    """Text with each stretch of white space as one blank: names must not break tables."""
    return " ".join(text.split())
