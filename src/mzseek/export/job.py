"""Annotate files into an output folder or file."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import Annotator, config_for
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.reading import SpectrumFiles
from mzseek.core.errors import KilledError
from mzseek.export.output import Output, ensure_not_read, is_folder
from mzseek.export.proposals import PROPOSALS
from mzseek.export.tables import SKIPPED
from mzseek.export.writer import IN_FULL, Settings, Writer
from mzseek.io import StrPath
from mzseek.io.manifest import SourceGuard
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Engine, Log, Progress, no_log, silent
from mzseek.version import PACKAGES, versions

HAS_PROPOSALS = (".json", ".html")  # suffixes of single files that hold proposed structures


@dataclass(frozen=True)
class FinishedRun:
    """How a run has ended.

    Attributes
    ----------
    out : Path
    counts : mapping of str to int
        As `mzseek.export.Output.counts` gives them.
    levels : mapping of str to int
        Features by level, of those annotated by this process.
    searched : mapping
        What was searched.
    messages : list of str
        What the user should read.
    routine : sequence of str
        Those of the messages that need no look.
    """

    out: Path
    counts: Mapping[str, int]
    levels: Mapping[str, int]
    searched: Mapping[str, Any]
    messages: list[str]
    routine: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no feature has a candidate: nothing was readable, or nothing was found."""
        return not self.counts["with_candidates"]


def annotate_files(
    paths: Sequence[StrPath] | SpectrumFiles,
    out: StrPath,
    config: AnnotateConfig | None = None,
    *,
    settings: Settings | None = None,
    resume: bool = False,
    force: bool = False,
    jobs: int | None = None,
    engine: Engine | None = None,
    progress: Progress = silent,
    log: Log = no_log,
) -> FinishedRun:
    """Annotate the spectra of files, and write the results.

    Parameters
    ----------
    paths : sequence of paths, or SpectrumFiles
        Any format that `mzseek.spectra.read_spectra` reads.
    out : path
    config : AnnotateConfig, optional
    settings : Settings, optional
    resume : bool
        Go on from what a killed process has left.
    force : bool
        Replace what is there even if annotate has not written it, as `Output` takes it.
    jobs : int, optional
        Processes of this machine.
    engine : Engine, optional
        Where features are annotated instead of these.
    progress, log : callables

    Raises
    ------
    MzseekError
        A file that is missing or of another kind, a model or database that is damaged, an output
        in the way.
    """
    steps = annotating_files(
        paths, out, config, settings=settings, resume=resume, force=force, jobs=jobs,
        engine=engine, progress=progress, log=log,
    )  # fmt: skip
    while True:
        try:
            next(steps)
        except StopIteration as end:
            finished: FinishedRun = end.value
            return finished


def annotating_files(
    paths: Sequence[StrPath] | SpectrumFiles,
    out: StrPath,
    config: AnnotateConfig | None = None,
    *,
    settings: Settings | None = None,
    resume: bool = False,
    force: bool = False,
    jobs: int | None = None,
    engine: Engine | None = None,
    at_once: int | None = None,
    more: Mapping[str, type[Writer]] | None = None,
    open_annotator: Callable[[AnnotateConfig], Annotator] = Annotator,
    progress: Progress = silent,
    log: Log = no_log,
) -> Generator[Annotation, None, FinishedRun]:
    """Annotate as `annotate_files` does; yield each annotation when it is written.

    A generator that is closed early leaves a partial output, which ``resume`` goes on with.

    Parameters
    ----------
    at_once : int, optional
        As `Annotator.run` takes it.
    more : mapping of str to Writer class, optional
        Further files of an output folder, by name.
    open_annotator : callable of AnnotateConfig
        Returns an annotator, which may have been opened before.

    Returns
    -------
    FinishedRun
    """
    config = config or AnnotateConfig()
    files = (
        paths if isinstance(paths, SpectrumFiles) else SpectrumFiles(paths, config.spectrum_columns)
    )
    settings = settings or Settings()
    if settings.features is not None:  # its isotope patterns count, however it was given
        config = replace(config, features=str(settings.features))
    tables = [table for table in (settings.network,) if table]
    read = (*files.paths, *tables, *settings.read, *config.paths())
    ensure_not_read(Path(out), read)
    guard = SourceGuard(files.paths)
    has_report = is_folder(Path(out)) or Path(out).suffix.lower() == ".html"
    config = replace(config_for(config, files), explain=IN_FULL if has_report else 0)
    annotator = open_annotator(config)  # whatever is missing is reported before anything is made
    searched = annotator.metadata()
    known = run_settings(annotator, replace(settings, read=read), files.paths)
    signature = _signature(annotator, guard)
    with Output(
        Path(out), known, signature=signature, resume=resume, force=force, more=more
    ) as output:
        for note in output.notes:
            log(note)
        run = annotator.run(
            files, skipped=output.skipped, was_done=output.was_done, done=output.resumed,
            at_once=at_once, engine=engine or LocalEngine(jobs), progress=progress,
        )  # fmt: skip
        if output.resumed:
            log(f"{output.resumed:,} features were done before.")
        try:
            for annotation in run:
                output.write(annotation)
                yield annotation
        except KilledError as error:
            if not output.resumed:
                raise
            raise KilledError(
                f"{error}; {output.resumed:,} features are written, and the same command with "
                "--resume goes on after them"
            ) from error
        guard.ensure_unchanged()
        counts = output.counts(run.records)
        messages = output.finish(records=run.records, inputs=guard.hashes, more=run.metadata())
    levels = dict(sorted(run.levels.items()))
    messages = [
        *run.remarks(),
        *messages,
        *_skipped_lines(output),
        *_proposal_lines(config, output),
    ]
    return FinishedRun(Path(out), counts, levels, searched, messages, run.routine())


def run_settings(annotator: Annotator, settings: Settings, paths: Sequence[Path]) -> Settings:
    """Return what writers must know of a run: inputs, database and options."""
    if annotator.config.features is not None:
        settings = replace(settings, features=Path(annotator.config.features))
    tables = {"features": settings.features, "network": settings.network}
    joined = {name: None if path is None else str(path.resolve()) for name, path in tables.items()}
    return replace(
        settings,
        inputs=tuple(map(str, paths)),
        database=annotator.source.label,
        database_version=_digest(annotator.source.metadata())[:16],
        options=annotator.config.to_dict() | joined,
        searched=annotator.metadata(),
    )


def _skipped_lines(output: Output) -> list[str]:
    """Return lines about where reasons are: in a table of the folder; of a single file, here."""
    skipped = output.skipped
    if not skipped.count:
        return []
    if output.is_folder:
        return [f"What was skipped, and why: {output.target / SKIPPED}"]
    lines = [f"Skipped: {where}: {reason}" for where, reason in skipped.first]
    left = skipped.count - len(lines)
    return [*lines, *([f"… and {left:,} more: a folder as --out lists them all"] if left else [])]


def _proposal_lines(config: AnnotateConfig, output: Output) -> list[str]:
    """Return a line if structures were proposed that a single file has no place for."""
    if not config.propose or output.is_folder or output.target.suffix in HAS_PROPOSALS:
        return []
    return [
        f"Proposed structures are not in {output.target.name}: a folder as --out has them in "
        f"{PROPOSALS}"
    ]


def _signature(annotator: Annotator, guard: SourceGuard) -> dict[str, str]:
    """Return checksums of all that annotations depend on, by the name that users have for it."""
    contents = annotator.contents()
    parts = {
        **{f"input {path}": sha256 for path, sha256 in guard.hashes.items()},
        "the order of inputs": [str(path) for path in guard.hashes],
        **{
            f"--{name.replace('_', '-')}": [value, contents.get(name)]
            for name, value in annotator.config.to_dict().items()
        },
        "the versions": versions(*PACKAGES),
    }
    return {name: _digest(value) for name, value in parts.items()}


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
