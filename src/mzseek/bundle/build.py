"""Build a bundle from data sets."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from mzseek.bundle.bundle import KIND, Bundle
from mzseek.bundle.export import ExportOptions, export_run, fit_options
from mzseek.bundle.write import MAY_BE_SHIPPED, is_allowed, licence_family
from mzseek.core.errors import BundleError, Reason
from mzseek.datasets.files import (
    DatasetFiles,
    dataset_of,
    read_candidates,
    read_table,
    write_candidates,
    write_table,
)
from mzseek.datasets.prepare import prepare
from mzseek.datasets.prepared import Prepared
from mzseek.evidence.fitting import FitOptions, fit
from mzseek.evidence.model import Channel
from mzseek.io import StrPath
from mzseek.io.manifest import ensure_replaceable
from mzseek.io.skipped import Report
from mzseek.io.sources import content_hash
from mzseek.parallel.engine import Log, Progress, no_log, silent
from mzseek.runs.run import Run
from mzseek.spectra import Spectrum

_EVERY = 1000  # spectra between two reports of progress
_DETAILS = ("collision_energy", "instrument_type", "contributor", "license")


@dataclass
class JoinedSets:
    """Data sets as one.

    Attributes
    ----------
    files : DatasetFiles
        The joined table and its lists.
    details : dict of str to dict
        By identifier: energy, instrument, contributor, licence and source of each spectrum.
    included, left_out : Counter
        Spectra by licence family.
    held_back : Counter
        Spectra by contributor, of those that were asked to be left out.
    skipped : list of (where, reason)
    """

    files: DatasetFiles
    details: dict[str, dict[str, str]] = field(default_factory=dict)
    included: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    held_back: Counter[str] = field(default_factory=Counter)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def skip(self, where: str, reason: str) -> None:
        """Note a record that cannot be used."""
        self.skipped.append((where, reason))


def join_sets(
    tables: Sequence[StrPath],
    candidates: str,
    out: Path,
    licences: Sequence[str] = MAY_BE_SHIPPED,
    leave_out: Sequence[str] = (),
    *,
    progress: Progress = silent,
) -> JoinedSets:
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
    for dataset in sets:
        if candidates not in dataset.candidates:
            known = ", ".join(dataset.candidates) or "none"
            raise BundleError(
                f"{dataset.spectra}: has no {candidates} candidates beside it: {known}"
            )
    path = out / "spectra.tsv.gz"
    joined = JoinedSets(
        DatasetFiles(path, {candidates: out / f"spectra_candidates_{candidates}.json.gz"})
    )
    molecules: dict[str, None] = {}
    write_table(path, _rows(sets, joined, licences, leave_out, molecules, progress))
    for name in leave_out:
        if not joined.held_back[name]:
            raise BundleError(f"no spectrum that could be left out is of the contributor {name!r}")
    if not joined.details:
        raise BundleError(
            f"no spectrum has a licence that allows it (left out: {_listed(joined.left_out)}); "
            "--licence names others, and `any` keeps all"
        )
    lists = _lists([dataset.candidates[candidates] for dataset in sets], molecules, joined)
    write_candidates(joined.files.candidates[candidates], lists)
    return joined


def _lists(
    paths: Sequence[Path], molecules: Mapping[str, None], joined: JoinedSets
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the first list of each molecule that has a spectrum."""
    seen: set[str] = set()
    for path in paths:
        for key, members in read_candidates(path, joined.skip):
            if key in molecules and key not in seen:
                seen.add(key)
                yield key, members


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name or 'without'}" for name, number in counts.items()) or "none"


def read_details(tables: Sequence[StrPath], report: Report) -> dict[str, dict[str, str]]:
    """Read the metadata of each spectrum, by its identifier: see `JoinedSets.details`."""
    return {
        spectrum.identifier: _details(spectrum, Path(table))
        for table in tables
        for spectrum in read_table(table, report)
    }


def _rows(
    sets: Sequence[DatasetFiles],
    joined: JoinedSets,
    licences: Sequence[str],
    leave_out: Sequence[str],
    molecules: dict[str, None],
    progress: Progress,
) -> Iterator[Mapping[str, object]]:
    """Yield rows of the joined table; the first record of an identifier stays."""
    for dataset in sets:
        for spectrum in read_table(dataset.spectra, joined.skip):
            details = _details(spectrum, dataset.spectra)
            family = licence_family(details["license"])
            if not is_allowed(details["license"], licences):
                joined.left_out[family] += 1
                continue
            if details["contributor"] in leave_out:
                joined.held_back[details["contributor"]] += 1
                continue
            if spectrum.identifier in joined.details:
                reason = Reason("is there a second time", "duplicate")
                joined.skip(f"{dataset.spectra}: {spectrum.identifier}", reason)
                continue
            joined.included[family] += 1
            joined.details[spectrum.identifier] = details
            molecules[spectrum.metadata["smiles"]] = None
            if len(joined.details) % _EVERY == 0:
                progress("joining spectra", len(joined.details))
            yield {
                **spectrum.metadata,
                "identifier": spectrum.identifier,
                "mzs": ",".join(map(repr, spectrum.mz.tolist())),
                "intensities": ",".join(map(repr, spectrum.intensities.tolist())),
                "precursor_mz": repr(spectrum.precursor_mz),
                "adduct": spectrum.adduct or "",
            }
    progress("joining spectra", len(joined.details))


def _details(spectrum: Spectrum, table: Path) -> dict[str, str]:
    stated = spectrum.metadata
    details = {name: stated.get(name, "") for name in _DETAILS}
    details["license"] = details["license"] or stated.get("licence", "")
    return details | {"source": table.name}


ALL, TRAIN = "all", "train"


@dataclass(frozen=True)
class BuildOptions:
    """How a bundle is built.

    Attributes
    ----------
    candidates : str
        Name of the lists beside each table.
    licences : sequence of str
        Families of licences whose records are taken; ``any`` takes all.
    folds : str
        What the shipped channels are fitted on: ``all``, or ``train``, which leaves test unseen.
    leave_out : sequence of str
        Contributors that are left out, so that the bundle can be tried on their spectra.
    augment : int
        Corrupted copies of each spectrum to fit on: see `FitOptions`.
    """

    candidates: str = "mass"
    licences: Sequence[str] = MAY_BE_SHIPPED
    folds: str = ALL
    leave_out: Sequence[str] = ()
    augment: int = FitOptions.augment


def build_bundle(
    tables: Sequence[StrPath],
    out: StrPath,
    channels: Sequence[Channel],
    options: BuildOptions | None = None,
    export: ExportOptions | None = None,
    *,
    work: StrPath | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> Bundle:
    """Join data sets, prepare them, fit channels and ranker, and make a bundle of the run.

    Parameters
    ----------
    tables : sequence of paths
        In MassSpecGym's columns, with candidate lists beside each.
    out : path
        Folder to make.
    channels : sequence of Channel
    options : BuildOptions, optional
    export : ExportOptions, optional
        What else goes into the bundle.
    work : path, optional
        Folder for intermediate files, which are kept; a run that is there and fits is reused.

    Raises
    ------
    BundleError, DatasetError, EvidenceError, RunError
        Tables, lists or options that do not fit.
    BusyError, WriteError
        Another process is at it, or a folder cannot be written.
    """
    how, exported = options or BuildOptions(), export or ExportOptions()
    if how.folds not in (ALL, TRAIN):
        raise BundleError(f"folds are {how.folds!r}, expected {ALL} or {TRAIN}")
    if not tables:
        raise BundleError("no tables of spectra, expected at least one")
    ensure_replaceable(Path(out), KIND, list(map(Path, tables)))
    with ExitStack() as stack:
        if work is None:
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix="mzseek-bundle-"))
        folder = Path(work)
        (folder / "joined").mkdir(parents=True, exist_ok=True)
        joined = join_sets(
            tables, how.candidates, folder / "joined", how.licences, how.leave_out,
            progress=progress,
        )  # fmt: skip
        _report(joined, say)
        prepared, _ = prepare(
            joined.files.spectra, joined.files.candidates, folder / "prepared",
            jobs=jobs, progress=progress, say=say,
        )  # fmt: skip
        run = _fitted(prepared, channels, folder / "run", how, jobs, progress, say)
        made_of = {
            "spectra": [{"name": Path(t).name, "sha256": content_hash(Path(t))} for t in tables],
            "kept": dict(sorted(joined.included.items())),
            "left_out": dict(sorted(joined.left_out.items())),
            "held_back": dict(sorted(joined.held_back.items())),
            "set_aside": len(joined.skipped),
        }
        whole = replace(
            exported,
            details=joined.details,
            lists=replace(exported.lists, licences=how.licences),
            refit=how.folds == ALL,
            made_of=made_of,
        )
        return export_run(run, out, whole, jobs=jobs, progress=progress, say=say)


def _fitted(
    prepared: Prepared,
    channels: Sequence[Channel],
    out: Path,
    how: BuildOptions,
    jobs: int | None,
    progress: Progress,
    say: Log,
) -> Run:
    """Fit a run; one that is there is reused if it is of the same data and options."""
    options = FitOptions(candidates=how.candidates, augment=how.augment)
    if not (out / "run.json").exists():
        return fit(prepared, channels, out, options, jobs=jobs, progress=progress, say=say)
    run = Run.open(out)
    fitted = run.description.fitted
    named = [(channel.name, dict(vars(channel.options))) for channel in channels]
    if not (
        run.finished
        and fitted is not None
        and run.metadata["data"]["key"] == prepared.manifest["key"]
        and [
            (channel_fields["name"], dict(channel_fields["options"]))
            for channel_fields in fitted.channels
        ]
        == named
        and fit_options(run) == options
    ):
        raise BundleError(f"{out}: is a run of other data or options; name another --work")
    say(f"{out}: is fitted already, and taken as it is")
    return run


def _report(joined: JoinedSets, say: Log) -> None:
    say(f"{len(joined.details):,} spectra are kept: {_listed(joined.included)}")
    if joined.left_out:
        number = sum(joined.left_out.values())
        say(f"{number:,} spectra are left out for their licence: {_listed(joined.left_out)}")
    for name, number in joined.held_back.items():
        say(f"{number:,} spectra of {name} are held back")
    if joined.skipped:
        where, why = joined.skipped[0]
        say(f"{len(joined.skipped):,} records were skipped, first {where}: {why}")
