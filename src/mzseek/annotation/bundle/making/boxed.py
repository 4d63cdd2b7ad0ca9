"""Molecules for the database in the box: those of the library, and lists that may be shipped."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from mzseek.annotation.bundle.molecules import SCHEMA, BoxedMolecules, molecule_table
from mzseek.chem.describe import DescribedMolecule
from mzseek.database.record import MoleculeRecord
from mzseek.database.rows import RecordsAt, describe_records
from mzseek.database.sources.files import read_molecules
from mzseek.errors import BundleError
from mzseek.files import StrPath
from mzseek.rejects import Report
from mzseek.work.local import LocalEngine
from mzseek.work.progress import Progress, silent

LIBRARY = "library"
_KIND = "morgan2"  # a fingerprint that is made on the way, quickly, and not kept
_AT_ONCE = 500


def boxed_molecules(
    library: Sequence[DescribedMolecule],
    files: Sequence[StrPath] = (),
    sources: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    *,
    report: Report,
    jobs: int | None = None,
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
    jobs : int, optional
        Processes that describe molecules; all cores by default.

    Raises
    ------
    BundleError
        No molecule comes from one of the sources.
    """
    given = names or {}
    rows = [_row(molecule, given) for molecule in library]
    wanted = read_molecules(list(files), report) if files else iter(())
    chosen = (record for record in wanted if sources is None or record.source in sources)
    work = partial(describe_records, kind=_KIND)
    done = 0
    for batch in LocalEngine(jobs).results(work, _batches(chosen)):
        for where, why in batch.rejects:
            report(where, why)
        own = batch.table.select(SCHEMA.names).to_pylist()
        rows += [row | {"names": row["names"] or _named(row["key"], given)} for row in own]
        done += len(own)
        progress("molecules", done)
    found = {source for row in rows[len(library) :] for source in row["sources"]}
    unknown = [name for name in sources or () if files and name not in found]
    if unknown:
        raise BundleError(f"no molecule of the lists comes from the source {unknown[0]!r}")
    return BoxedMolecules(molecule_table(rows))


def _batches(records: Iterator[MoleculeRecord]) -> Iterator[RecordsAt]:
    first = 0
    while batch := list(islice(records, _AT_ONCE)):
        yield RecordsAt(batch, first)
        first += len(batch)


def _named(key: str, names: Mapping[str, str]) -> list[str]:
    return [names[key]] if key in names else []


def _row(molecule: DescribedMolecule, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "key": molecule.key,
        "smiles": molecule.smiles,
        "formula": molecule.formula,
        "mass": molecule.mass,
        "sources": [LIBRARY],
        "identifiers": [],
        "names": _named(molecule.key, names),
    }
