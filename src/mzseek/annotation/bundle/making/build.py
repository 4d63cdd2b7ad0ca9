"""The whole recipe: data sets in, a bundle out."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mzseek.annotation.bundle.bundle import Bundle
from mzseek.annotation.bundle.layout import KIND
from mzseek.annotation.bundle.licences import MAY_BE_SHIPPED
from mzseek.annotation.bundle.making.export import Extras, export_run, fit_options
from mzseek.annotation.bundle.making.join import Joined, join_sets
from mzseek.errors import BundleError
from mzseek.evidence.channel import Channel
from mzseek.evidence.fitting.fit import FitOptions, fit
from mzseek.files import StrPath
from mzseek.files.owned import ensure_replaceable
from mzseek.files.source import content_hash
from mzseek.prepared import Prepared, prepare
from mzseek.runs.run import Run
from mzseek.work.progress import Progress, Say, silent, unheard

ALL, TRAIN = "all", "train"
_RUN, _PREPARED, _JOINED = "run", "prepared", "joined"


@dataclass(frozen=True)
class Recipe:
    """How a bundle is made.

    Attributes
    ----------
    candidates : str
        Name of the lists beside each table.
    licences : sequence of str
        Families of licences whose records are taken; ``any`` takes all.
    folds : str
        What the shipped channels learn from: ``all``, or ``train``, which can be measured on test.
    leave_out : sequence of str
        Contributors that are left out, so that the bundle can be tried on their spectra.
    """

    candidates: str = "mass"
    licences: Sequence[str] = MAY_BE_SHIPPED
    folds: str = ALL
    leave_out: Sequence[str] = ()


def build_bundle(
    tables: Sequence[StrPath],
    out: StrPath,
    channels: Sequence[Channel],
    recipe: Recipe | None = None,
    extras: Extras | None = None,
    *,
    work: StrPath | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Say = unheard,
) -> Bundle:
    """Join data sets, prepare them, fit channels and ranker, and make a bundle of the run.

    Parameters
    ----------
    tables : sequence of paths
        In MassSpecGym's columns, with candidate lists beside each.
    out : path
        Folder to make.
    channels : sequence of Channel
    recipe : Recipe, optional
    extras : Extras, optional
        What else goes into the bundle.
    work : path, optional
        Folder for what is made on the way, which is kept; a run that is there and fits is taken.

    Raises
    ------
    BundleError, DatasetError, EvidenceError, RunError
        Tables, lists or options that do not fit.
    BusyError, WriteError
        Another process is at it, or a folder cannot be written.
    """
    how, given = recipe or Recipe(), extras or Extras()
    if how.folds not in (ALL, TRAIN):
        raise BundleError(f"folds are {how.folds!r}, expected {ALL} or {TRAIN}")
    if not tables:
        raise BundleError("no tables of spectra, expected at least one")
    ensure_replaceable(Path(out), KIND, list(map(Path, tables)))
    with _work_folder(work) as folder:
        joined = _joined(tables, folder / _JOINED, how, progress)
        _tell(joined, say)
        prepared, _ = prepare(
            joined.files.spectra, joined.files.candidates, folder / _PREPARED,
            jobs=jobs, progress=progress, say=say,
        )  # fmt: skip
        run = _fitted(prepared, channels, folder / _RUN, how, jobs, progress, say)
        whole = replace(
            given,
            details=joined.details,
            lists=replace(given.lists, licences=how.licences),
            relearn=how.folds == ALL,
            made_of=_made_of(tables, joined),
        )
        return export_run(run, out, whole, jobs=jobs, progress=progress, say=say)


def _joined(tables: Sequence[StrPath], folder: Path, how: Recipe, progress: Progress) -> Joined:
    folder.mkdir(exist_ok=True)
    return join_sets(tables, how.candidates, folder, how.licences, how.leave_out, progress=progress)


@contextmanager
def _work_folder(work: StrPath | None) -> Iterator[Path]:
    if work is not None:
        Path(work).mkdir(parents=True, exist_ok=True)
        yield Path(work)
        return
    with tempfile.TemporaryDirectory(prefix="mzseek-bundle-") as folder:
        yield Path(folder)


def _fitted(
    prepared: Prepared,
    channels: Sequence[Channel],
    out: Path,
    how: Recipe,
    jobs: int | None,
    progress: Progress,
    say: Say,
) -> Run:
    """A run over the channels; one that is there is taken if it is of the same data and options."""
    options = FitOptions(candidates=how.candidates)
    if not (out / "run.json").exists():
        return fit(prepared, channels, out, options, jobs=jobs, progress=progress, say=say)
    run = Run.open(out)
    made = run.made.fitted
    named = [(c.name, dict(vars(c.options))) for c in channels]
    same = (
        run.finished
        and made is not None
        and run.facts["data"]["key"] == prepared.manifest["key"]
        and [(each["name"], dict(each["options"])) for each in made.channels] == named
        and fit_options(run) == options
    )
    if not same:
        raise BundleError(f"{out}: is a run of other data or options; name another --work")
    say(f"{out}: is fitted already, and taken as it is")
    return run


def _tell(joined: Joined, say: Say) -> None:
    kept = ", ".join(f"{number:,} {name or 'without'}" for name, number in joined.kept.items())
    say(f"{len(joined.details):,} spectra are kept: {kept}")
    if joined.left_out:
        left = ", ".join(f"{n:,} {name or 'without'}" for name, n in joined.left_out.items())
        say(f"{sum(joined.left_out.values()):,} spectra are left out for their licence: {left}")
    for name, number in joined.held_back.items():
        say(f"{number:,} spectra of {name} are held back")
    if joined.rejects:
        where, why = joined.rejects[0]
        say(f"{len(joined.rejects):,} records were set aside, first {where}: {why}")


def _made_of(tables: Sequence[StrPath], joined: Joined) -> dict[str, Any]:
    return {
        "spectra": [{"name": Path(t).name, "sha256": content_hash(Path(t))} for t in tables],
        "kept": dict(sorted(joined.kept.items())),
        "left_out": dict(sorted(joined.left_out.items())),
        "held_back": dict(sorted(joined.held_back.items())),
        "set_aside": len(joined.rejects),
    }
