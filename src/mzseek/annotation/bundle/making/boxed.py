"""Molecules for the database in the box: those of the library, and lists that may be shipped."""

from collections.abc import Mapping, Sequence
from typing import Any

from mzseek.annotation.bundle.molecules import BoxedMolecules, molecule_table
from mzseek.chem.describe import DescribedMolecule, describe_structure
from mzseek.database.record import MoleculeRecord
from mzseek.database.sources.files import read_molecules
from mzseek.errors import BundleError, MoleculeError
from mzseek.files import StrPath
from mzseek.rejects import Report
from mzseek.work.progress import Progress, silent

LIBRARY = "library"
_EVERY = 1000


def boxed_molecules(
    library: Sequence[DescribedMolecule],
    files: Sequence[StrPath] = (),
    sources: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    *,
    report: Report,
    progress: Progress = silent,
) -> BoxedMolecules:
    """The library's molecules, and those of lists, each once, in standard form.

    Parameters
    ----------
    library : sequence of DescribedMolecule
        Their source is called "library".
    files : sequence of paths
        Lists of molecules, in any format that `mzseek database build` reads.
    sources : sequence of str, optional
        Of the lists only molecules of these sources; all by default.
    names : mapping of str to str, optional
        A name for the key of a molecule; for those that have none of their own.
    report : callable
        Gets where and why for each record set aside.

    Raises
    ------
    BundleError
        No molecule comes from one of the sources.
    """
    given = names or {}
    rows = [_row(molecule, LIBRARY, "", given.get(molecule.key, "")) for molecule in library]
    found: set[str] = set()
    done = 0
    for record in read_molecules(list(files), report) if files else ():
        if sources is not None and record.source not in sources:
            continue
        found.add(record.source)
        molecule = _described(record, report)
        if molecule is not None:
            name = record.name or given.get(molecule.key, "")
            rows.append(_row(molecule, record.source, record.identifier, name))
        done += 1
        if done % _EVERY == 0:
            progress("molecules", done)
    unknown = [name for name in sources or () if files and name not in found]
    if unknown:
        raise BundleError(f"no molecule of the lists comes from the source {unknown[0]!r}")
    return BoxedMolecules(molecule_table(rows))


def _described(record: MoleculeRecord, report: Report) -> DescribedMolecule | None:
    try:
        if record.is_block:
            raise MoleculeError("is a MOL block; give a list of SMILES or InChI")
        return describe_structure(record.text)
    except MoleculeError as error:
        report(record.where, str(error))
        return None


def _row(molecule: DescribedMolecule, source: str, identifier: str, name: str) -> dict[str, Any]:
    return {
        "key": molecule.key,
        "smiles": molecule.smiles,
        "formula": molecule.formula,
        "mass": molecule.mass,
        "sources": [source],
        "identifiers": [identifier] if identifier else [],
        "names": [name] if name else [],
    }
