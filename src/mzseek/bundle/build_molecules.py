"""Collect the molecules of the bundled database, their names and identifiers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rdkit import Chem, rdBase
from rdkit.Chem import Mol
from rdkit.Chem.rdMolDescriptors import CalcExactMolWt

from mzseek.bundle.molecules import SCHEMA, BundledMolecules, molecule_table
from mzseek.bundle.write import MAY_BE_SHIPPED, is_allowed
from mzseek.chem.identifiers import canonical, link
from mzseek.chem.molecules import BLOCK_LENGTH, DescribedMolecule, parse_molecule, standardise
from mzseek.core.errors import BundleError, InputError, MoleculeError, Reason
from mzseek.database.records import MoleculeRecord, RecordsAt, describe_records
from mzseek.database.sources import read_molecules
from mzseek.io import StrPath, open_source
from mzseek.io.skipped import Report
from mzseek.io.text_tables import format_names, list_cell, normalise_name, open_table
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import LocalEngine
from mzseek.spectra import read_spectra

_MAX_LENGTH = 120
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
        In canonical form, see `mzseek.chem.identifiers`.
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
    for position, text in enumerate(names):
        name = _REMARK.sub("", _LABEL.sub("", " ".join(text.split())))
        if is_named(name) and not link(name):
            later = 2.0 + min(position, 5) if position else 0.0
            scored.append((_penalty(name) + later, position, name))
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
        key: best_name(sorted(candidates, key=lambda name: (_penalty(name), name)))
        for key, candidates in names.items()
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
    table = open_table(source, lambda names: set(_REQUIRED) <= set(map(normalise_name, names)))
    if table is None:
        raise InputError(path, f"is no table of molecules with {format_names(_REQUIRED)}")
    columns = [normalise_name(name) for name in table.names]
    known: list[KnownMolecule] = []

    def skip(line: int, why: str) -> None:
        report(f"{source.name}: line {line}", why)

    for number, cells in table.whole_rows(skip):
        where = f"{source.name}: line {number}"
        row = dict(zip(columns, map(str.strip, cells), strict=True))
        if not row["smiles"] or len(row["inchikey"]) < BLOCK_LENGTH:
            report(where, Reason("has no SMILES or no InChIKey", "no-molecule"))
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
    return 0 < len(name) <= _MAX_LENGTH and name.isprintable()


LIBRARY = "library"
_KIND = "morgan2"  # a fingerprint that is made on the way, quickly, and not kept
_BATCH = 500
_ELEMENTS = frozenset(["H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "As", "Se", "Br", "I"])
# Can take up or lose a proton, or carry a permanent charge.
_IONISABLE = frozenset(["N", "O", "P", "S", "As", "Se"])
_MIN_MASS = 50.0  # Da; instruments rarely record ions below
_SILYL = Chem.MolFromSmarts("[O,N,S;!$([O,N,S][Si][O,N])][Si;X4]([CH3])([CH3])[CH3]")
_IMINOL = Chem.MolFromSmarts("[CX3;!a](-[OX2H])=[NX2;+0]")
_ACID = Chem.MolFromSmarts("[OX2H1:1]-[$(C=O),$(S(=O)=O),$(P=O)]")


@dataclass(frozen=True)
class MoleculeLists:
    """Sources of the bundled database, besides the molecules of the library.

    Attributes
    ----------
    molecules : sequence of paths
        Lists of molecules, in any format that `mzseek database build` reads.
    sources : sequence of str or None
        Of these lists only molecules of these sources; all by default.
    known : sequence of paths
        Tables of known molecules with names and identifiers, see `names.read_known`.
    names : sequence of paths
        Records of spectra that name molecules, see `names.read_names`.
    licences : sequence of str
        Families of licences under which these records are read.
    electrospray_only : bool
        Skip molecules that electrospray does not ionise, see `unfit_for_electrospray`; those that
        the library or the sets behind a known table hold a spectrum of stay.
    """

    molecules: Sequence[StrPath] = ()
    sources: Sequence[str] | None = None
    known: Sequence[StrPath] = ()
    names: Sequence[StrPath] = ()
    licences: Sequence[str] = MAY_BE_SHIPPED
    electrospray_only: bool = False

    @property
    def files(self) -> list[Path]:
        """All files that are read."""
        return [Path(path) for path in (*self.molecules, *self.known, *self.names)]


def bundled_molecules(
    library: Sequence[DescribedMolecule],
    lists: MoleculeLists,
    *,
    report: Report,
    jobs: int | None = None,
    progress: Progress = silent,
) -> BundledMolecules:
    """Gather the molecules of a bundle, each once, in standard form, with names and identifiers.

    Parameters
    ----------
    library : sequence of DescribedMolecule
        Their source is called "library".
    lists : MoleculeLists
    report : callable
        Gets where and why for each record that is skipped.
    jobs : int, optional
        Processes that describe molecules; all cores by default.

    Raises
    ------
    BundleError
        No molecule comes from one of the sources.
    """
    known = {path: read_known(path, report) for path in lists.known}
    by_key = {molecule.key: molecule for table in known.values() for molecule in table}
    record_names = {
        key: [name] for key, name in read_names(lists.names, lists.licences, report).items()
    }
    rows = [_library_row(molecule) for molecule in library]
    measured = {(row["key"], row["mass"]) for row in rows}
    records = _records(lists, known, report)
    seen: set[str] = set()
    done = 0
    for described, skipped in LocalEngine(jobs).results(_describe, _batches(records)):
        for where, reason in skipped:
            report(where, reason)
        for row, where, why in described:
            seen.update(row["sources"])
            stated = by_key.get(row["key"])
            is_measured = (row["key"], row["mass"]) in measured or (
                stated is not None and stated.is_measured and not _is_labelled(row["smiles"])
            )
            if why and lists.electrospray_only and not is_measured:
                report(where, why)
            else:
                rows.append(row)
        done += len(described)
        progress("molecules", done)
    unknown = [name for name in lists.sources or () if lists.molecules and name not in seen]
    if unknown:
        raise BundleError(f"no molecule of the lists comes from the source {unknown[0]!r}")
    merged = molecule_table(rows).to_pylist()
    return BundledMolecules(
        molecule_table([_with_name(row, by_key, record_names) for row in merged])
    )


def unfit_for_electrospray(molecule: Mol) -> str | None:
    """Return why a molecule is not to be expected in electrospray; None where it is.

    Parameters
    ----------
    molecule : rdkit Mol
        In standard form: one fragment.

    Examples
    --------
    >>> [unfit_for_electrospray(Chem.MolFromSmiles(text)) for text in ("CCCCCC", "CCCCCO")]
    ['has no atom that takes or loses a proton', None]
    >>> unfit_for_electrospray(Chem.MolFromSmiles("C[N+](C)(C)CCO"))
    >>> unfit_for_electrospray(Chem.MolFromSmiles("[2H]C([2H])([2H])N1C=NC=C1"))
    'is labelled with isotopes'
    """
    atoms = list(molecule.GetAtoms())
    symbols = {atom.GetSymbol() for atom in atoms}
    cationic = {atom.GetSymbol() for atom in atoms if atom.GetFormalCharge() > 0}
    if "C" not in symbols or not symbols <= _ELEMENTS:
        return "is inorganic or holds a metal"
    if any(atom.GetNumRadicalElectrons() for atom in atoms):
        return "is a radical"
    if any(atom.GetIsotope() for atom in atoms):
        return "is labelled with isotopes"
    if not symbols & _IONISABLE:
        return "has no atom that takes or loses a proton"
    if Chem.GetFormalCharge(molecule) < 0 or not cationic <= _IONISABLE:
        return "has a charge that is not that of a permanent cation"
    if CalcExactMolWt(molecule) < _MIN_MASS:
        return f"is lighter than {_MIN_MASS:g} Da"
    if molecule.HasSubstructMatch(_SILYL):
        return "is a trimethylsilyl derivative for gas chromatography"
    return None


def inner_salt(smiles: str) -> str:
    """Return a permanent cation that has an acid group as the neutral inner salt.

    Sources write carnitine as a cation or as an inner salt; as the latter it has one entry, and
    ions such as [M+H]+ and [M-H]-.

    Examples
    --------
    >>> inner_salt("C[N+](C)(C)CC(O)CC(=O)O")
    'C[N+](C)(C)CC(O)CC(=O)[O-]'
    >>> inner_salt("C[N+](C)(C)CCO"), inner_salt("no molecule")
    ('C[N+](C)(C)CCO', 'no molecule')
    """
    try:
        molecule = standardise(parse_molecule(smiles))
    except MoleculeError:
        return smiles  # reported where all molecules are read
    acids = [match[0] for match in molecule.GetSubstructMatches(_ACID)]
    charge = Chem.GetFormalCharge(molecule)
    if charge < 1 or not acids:
        return smiles
    for index in acids[:charge]:
        atom = molecule.GetAtomWithIdx(index)
        atom.SetFormalCharge(-1)
        atom.SetNumExplicitHs(0)
        atom.SetNoImplicit(True)
    with rdBase.BlockLogs():
        Chem.SanitizeMol(molecule)
    return str(Chem.MolToSmiles(molecule))


def amide_form(smiles: str) -> str:
    """Return a molecule that is written as an iminol as the amide that chemists draw.

    Some records have structures made from InChI, which writes paracetamol as an iminol: its
    fragments and fingerprint would not be comparable with those of amides beside it.

    Examples
    --------
    >>> amide_form("CC(O)=Nc1ccc(O)cc1"), amide_form("Oc1ccccn1")
    ('CC(=O)Nc1ccc(O)cc1', 'Oc1ccccn1')
    """
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or not molecule.HasSubstructMatch(_IMINOL):
        return smiles
    editable = Chem.RWMol(molecule)
    while match := editable.GetSubstructMatch(_IMINOL):
        carbon, oxygen, nitrogen = match
        editable.GetBondBetweenAtoms(carbon, oxygen).SetBondType(Chem.BondType.DOUBLE)
        editable.GetBondBetweenAtoms(carbon, nitrogen).SetBondType(Chem.BondType.SINGLE)
        editable.GetAtomWithIdx(oxygen).SetNumExplicitHs(0)
        atom = editable.GetAtomWithIdx(nitrogen)
        atom.SetNumExplicitHs(atom.GetTotalNumHs() + 1)
        Chem.SanitizeMol(editable)
    amide = standardise(editable.GetMol())
    with rdBase.BlockLogs():
        is_same = (
            Chem.MolToInchiKey(amide)[:BLOCK_LENGTH] == Chem.MolToInchiKey(molecule)[:BLOCK_LENGTH]
        )
    return str(Chem.MolToSmiles(amide)) if is_same else smiles


def _describe(
    batch: RecordsAt,
) -> tuple[list[tuple[dict[str, Any], str, str | None]], list[tuple[str, str]]]:
    """Return rows with where each stood and why it is unfit (or None), and skipped records."""
    records = [
        record._replace(text=inner_salt(record.text)) if "+" in record.text else record
        for record in batch.records
    ]
    described = describe_records(RecordsAt(records, batch.first), _KIND)
    where = [records[number - batch.first].where for number in described.table["place"].to_pylist()]
    rows = described.table.select(SCHEMA.names).to_pylist()
    for row in rows:
        row["smiles"] = amide_form(row["smiles"])
        row["identifiers"] = list(dict.fromkeys(map(canonical, row["identifiers"])))
    unfit = [unfit_for_electrospray(parse_molecule(row["smiles"])) for row in rows]
    return list(zip(rows, where, unfit, strict=True)), described.skipped


def _records(
    lists: MoleculeLists, known: dict[StrPath, list[KnownMolecule]], report: Report
) -> Iterator[MoleculeRecord]:
    for path, table in known.items():
        # The source of massbank_known.tsv.gz is "massbank".
        source = re.sub(r"_known$", "", Path(path).name.split(".")[0])
        for molecule in table:
            yield MoleculeRecord(
                molecule.where, molecule.smiles, list_cell(molecule.identifiers),
                list_cell([molecule.name]), source, is_listed=True,
            )  # fmt: skip
    for record in read_molecules(list(lists.molecules), report) if lists.molecules else ():
        if lists.sources is None or record.source in lists.sources:
            yield record


def _batches(records: Iterator[MoleculeRecord]) -> Iterator[RecordsAt]:
    first = 0
    while batch := list(islice(records, _BATCH)):
        yield RecordsAt(batch, first)
        first += len(batch)


def _library_row(molecule: DescribedMolecule) -> dict[str, Any]:
    return {
        "key": molecule.key,
        "smiles": amide_form(molecule.smiles),
        "formula": molecule.formula,
        "mass": molecule.rounded_mass,
        "sources": [LIBRARY],
        "identifiers": [],
        "names": [],
    }


def _with_name(
    row: dict[str, Any], known: dict[str, KnownMolecule], names: dict[str, list[str]]
) -> dict[str, Any]:
    """Give a molecule one name, and the identifiers that its key has; labelled ones stay."""
    if _is_labelled(row["smiles"]):
        return row
    stated = known.get(row["key"])
    name = stated.name if stated is not None else ""
    name = name or best_name(row["names"] or names.get(row["key"], []))
    if "+" in row["formula"]:  # named after a salt of it
        name = re.sub(r" (?:chloride|bromide|iodide)$", "", name)
    identifiers = [*row["identifiers"], *(stated.identifiers if stated is not None else ())]
    return row | {
        "identifiers": list(dict.fromkeys(identifiers)),
        "names": [name] if name else [],
    }


def _is_labelled(smiles: str) -> bool:
    """Return whether a SMILES states isotopes.

    Examples
    --------
    >>> _is_labelled("[2H]C"), _is_labelled("C[N+](C)C"), _is_labelled("c1c[nH]c1")
    (True, False, False)
    """
    return re.search(r"\[\d", smiles) is not None
