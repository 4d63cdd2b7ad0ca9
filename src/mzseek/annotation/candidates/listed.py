"""Molecules in memory, in the order of their masses: the box, a library, a list of one's own."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.annotation.candidates.source import Molecule, Source
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.database.formats.columns import FEATURE, USUAL
from mzseek.database.record import MoleculeRecord
from mzseek.database.rows import RecordsAt, describe_records
from mzseek.database.sources.files import read_molecules
from mzseek.errors import AnnotationError, InputError
from mzseek.files import StrPath, content_hash
from mzseek.library import Library
from mzseek.rejects import Rejects, Report, reporter

_KIND = "morgan2"  # of the fingerprints that describing computes along
_AT_ONCE = 2_000
_COLUMNS = ("smiles", "key", "formula", "mass", "names", "sources", "identifiers", "place")


class ListedSource(Source):
    """Molecules in memory.

    Parameters
    ----------
    label : str
    molecules : sequence of Molecule
    facts : mapping
        What a run folder says of them.
    lists : mapping of str to list of int, optional
        For each feature the places of its own molecules; without it all are looked up by mass.

    Attributes
    ----------
    molecules, given, lists
        What it was made of: the molecules, the facts and the lists.
    """

    def __init__(
        self,
        label: str,
        molecules: Sequence[Molecule],
        facts: Mapping[str, Any],
        lists: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        masses = np.array([each.mass for each in molecules], np.float64)
        order = np.argsort(masses, kind="stable")
        self.label, self.given = label, dict(facts)
        self.molecules = list(molecules)
        self._order, self._masses = order, masses[order]
        self.lists = lists
        self.by_feature = lists is not None

    def __len__(self) -> int:
        return len(self.molecules)

    def within(self, mass: float, reach: float) -> list[Molecule]:
        """Molecules whose mass is at most `reach` away."""
        low, high = np.searchsorted(self._masses, [mass - reach, mass + reach])
        high = int(np.searchsorted(self._masses, mass + reach, side="right"))
        return [self.molecules[place] for place in self._order[low:high]]

    def of_feature(self, name: str) -> list[Molecule]:
        """Molecules that are listed for a feature; none for one that the list does not name."""
        if self.lists is None:
            return super().of_feature(name)
        return [self.molecules[place] for place in self.lists.get(name, ())]

    def features(self) -> Collection[str]:
        """Features that it has lists for."""
        return self.lists or ()

    def facts(self) -> dict[str, Any]:
        """What a run folder says of it."""
        return {**self.given, "molecules": len(self)}


def file_source(
    path: StrPath, rejects: Rejects, columns: Mapping[str, str] | None = None
) -> ListedSource:
    """Candidates of a user's own file: any that `mzseek database build` reads.

    With a column or SDF data field ``feature`` (or ``feature_id``, ``scans``, ``row ID``) every
    feature has the molecules of its own rows; without one, all are looked up by mass for all
    features.

    Parameters
    ----------
    path : Path
    rejects : list or callable of (where, reason)
        Gets what cannot be read, and rows of a list by feature that name none.
    columns : mapping of str to str, optional
        Names of columns that are not the usual ones, as `read_molecules` takes them.

    Raises
    ------
    InputError
        The file is missing, or none of its rows holds a molecule.
    """
    path = Path(path)
    report = reporter(rejects)
    records = list(read_molecules([path], report, columns={**(columns or {}), FEATURE: USUAL}))
    molecules, places = _described(records, report)
    lists: dict[str, list[int]] | None = None
    if any(record.feature is not None for record in records):
        lists = {}
        for at, record in enumerate(records):
            if not record.feature:
                report(record.where, "names no feature, as other rows do")
                places[at] = -1
            elif places[at] >= 0:
                lists.setdefault(record.feature, []).append(places[at])
    if not molecules:
        raise InputError(path, "holds no molecule that can be read")
    facts = {
        "kind": "file",
        "path": str(path.resolve()),
        "sha256": content_hash(path),
        "set_aside": len(records) - sum(place >= 0 for place in places),
    }
    return ListedSource(path.name, molecules, facts, lists)


def _described(
    records: Sequence[MoleculeRecord], report: Report
) -> tuple[list[Molecule], list[int]]:
    """Molecules, each text described once, and the place of each record's (−1: set aside)."""
    first: dict[tuple[str, str, str], int] = {}
    for at, record in enumerate(records):
        first.setdefault((record.text, record.name, record.identifier), at)
    distinct = list(first.values())
    molecules: list[Molecule] = []
    place_of: dict[int, int] = {}
    for start in range(0, len(distinct), _AT_ONCE):
        batch = [records[at] for at in distinct[start : start + _AT_ONCE]]
        described = describe_records(RecordsAt(batch, start), _KIND)
        for where, reason in described.rejects:
            report(where, reason)
        columns = (described.table[name].to_pylist() for name in _COLUMNS)
        for smiles, key, formula, mass, names, sources, identifiers, place in zip(
            *columns, strict=True
        ):
            place_of[distinct[place]] = len(molecules)
            molecules.append(
                Molecule(smiles, key[:BLOCK_LENGTH], formula, mass, names[0] if names else "",
                         tuple(sources), tuple(identifiers))
            )  # fmt: skip
    return molecules, [
        place_of.get(first[record.text, record.name, record.identifier], -1) for record in records
    ]


def library_source(library: Library, label: str) -> ListedSource:
    """The molecules of a library of reference spectra as candidates."""
    table = library.molecules
    rows = zip(*(table[name].to_pylist() for name in ("smiles", "inchikey", "formula", "mass")),
               strict=True)  # fmt: skip
    molecules = [
        Molecule(smiles, key[:BLOCK_LENGTH], formula, mass, sources=(label,))
        for smiles, key, formula, mass in rows
    ]
    if not molecules:
        raise AnnotationError(f"{label}: the library holds no molecule")
    return ListedSource(label, molecules, {"kind": "library", "path": str(library.folder)})
