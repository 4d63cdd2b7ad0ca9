"""Several data sets as one: spectra whose licences allow it, and one list for each molecule."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mzseek.annotation.bundle.licences import MAY_BE_SHIPPED, is_allowed, licence_family
from mzseek.datasets.candidates import read_candidates
from mzseek.datasets.table import (
    DatasetFiles,
    dataset_of,
    read_table,
    write_candidates,
    write_table,
)
from mzseek.errors import BundleError
from mzseek.files import StrPath
from mzseek.rejects import Report
from mzseek.spectra import Spectrum
from mzseek.work.progress import Progress, silent

_EVERY = 1000  # spectra between two reports of progress
_DETAILS = ("collision_energy", "instrument_type", "contributor", "license")


@dataclass
class Joined:
    """Data sets as one.

    Attributes
    ----------
    files : DatasetFiles
        The joined table and its lists.
    details : dict of str to dict
        By identifier: energy, instrument, contributor, licence and source of each spectrum.
    kept, left_out : Counter
        Spectra by licence family.
    held_back : Counter
        Spectra by contributor, of those that were asked to be left out.
    rejects : list of (where, reason)
    """

    files: DatasetFiles
    details: dict[str, dict[str, str]] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    held_back: Counter[str] = field(default_factory=Counter)
    rejects: list[tuple[str, str]] = field(default_factory=list)

    def set_aside(self, where: str, reason: str) -> None:
        """Note a record that cannot be used."""
        self.rejects.append((where, reason))


def join_sets(
    tables: Sequence[StrPath],
    candidates: str,
    out: Path,
    licences: Sequence[str] = MAY_BE_SHIPPED,
    leave_out: Sequence[str] = (),
    *,
    progress: Progress = silent,
) -> Joined:
    """Write one data set made of several.

    Parameters
    ----------
    tables : sequence of paths
        Tables in MassSpecGym's columns, with a licence for each record, and lists beside each.
    candidates : str
        Name of the lists: ``mass``.
    out : Path
        Folder to write the table and the lists to; it is there.
    licences : sequence of str
        Families that are kept; ``any`` keeps all.
    leave_out : sequence of str
        Contributors whose spectra are not taken, so that the bundle can be tried on them.

    Raises
    ------
    BundleError, DatasetError, InputError
        A table has no such lists or cannot be read, or nothing is left.
    """
    sets = [dataset_of(table) for table in tables]
    for each in sets:
        if candidates not in each.candidates:
            known = ", ".join(each.candidates) or "none"
            raise BundleError(f"{each.spectra}: has no {candidates} candidates beside it: {known}")
    path = out / "spectra.tsv.gz"
    joined = Joined(
        DatasetFiles(path, {candidates: out / f"spectra_candidates_{candidates}.json.gz"})
    )
    molecules: dict[str, None] = {}
    write_table(path, _rows(sets, joined, licences, leave_out, molecules, progress))
    for name in leave_out:
        if not joined.held_back[name]:
            raise BundleError(f"no spectrum that could be left out is of the contributor {name!r}")
    if not joined.details:
        left = ", ".join(
            f"{number:,} {name or 'without'}" for name, number in joined.left_out.items()
        )
        raise BundleError(
            f"no spectrum has a licence that allows it (left out: {left or 'none'}); --licence "
            "names others, and `any` keeps all"
        )
    write_candidates(
        joined.files.candidates[candidates], _lists(sets, candidates, molecules, joined)
    )
    return joined


def read_details(tables: Sequence[StrPath], report: Report) -> dict[str, dict[str, str]]:
    """What tables say of each spectrum, by its identifier: see `Joined.details`."""
    return {
        spectrum.identifier: _details(spectrum, Path(table))
        for table in tables
        for spectrum in read_table(table, report)
    }


def _rows(
    sets: Sequence[DatasetFiles],
    joined: Joined,
    licences: Sequence[str],
    leave_out: Sequence[str],
    molecules: dict[str, None],
    progress: Progress,
) -> Iterator[Mapping[str, object]]:
    """Rows of the joined table; the first record of an identifier stays."""
    for each in sets:
        for spectrum in read_table(each.spectra, joined.set_aside):
            details = _details(spectrum, each.spectra)
            family = licence_family(details["license"])
            if not is_allowed(details["license"], licences):
                joined.left_out[family] += 1
                continue
            if details["contributor"] in leave_out:
                joined.held_back[details["contributor"]] += 1
                continue
            if spectrum.identifier in joined.details:
                joined.set_aside(f"{each.spectra}: {spectrum.identifier}", "is there a second time")
                continue
            joined.kept[family] += 1
            joined.details[spectrum.identifier] = details
            molecules[spectrum.metadata["smiles"]] = None
            if len(joined.details) % _EVERY == 0:
                progress("joining spectra", len(joined.details))
            yield _row(spectrum)
    progress("joining spectra", len(joined.details))


def _details(spectrum: Spectrum, table: Path) -> dict[str, str]:
    stated = spectrum.metadata
    found = {name: stated.get(name, "") for name in _DETAILS}
    found["license"] = found["license"] or stated.get("licence", "")
    return found | {"source": table.name}


def _row(spectrum: Spectrum) -> dict[str, object]:
    return {
        **spectrum.metadata,
        "identifier": spectrum.identifier,
        "mzs": ",".join(map(repr, spectrum.mz.tolist())),
        "intensities": ",".join(map(repr, spectrum.intensities.tolist())),
        "precursor_mz": repr(spectrum.precursor_mz),
        "adduct": spectrum.adduct or "",
    }


def _lists(
    sets: Sequence[DatasetFiles], candidates: str, molecules: Mapping[str, None], joined: Joined
) -> Iterator[tuple[str, Sequence[str]]]:
    """The first list of each molecule that has a spectrum."""
    seen: set[str] = set()
    for each in sets:
        for key, members in read_candidates(each.candidates[candidates], joined.set_aside):
            if key in molecules and key not in seen:
                seen.add(key)
                yield key, members
