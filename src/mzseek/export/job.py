"""Annotate files: read spectra, annotate, write the output."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import (
    Annotator,
    SkippedFeature,
    annotations,
    answered,
    lending_lines,
)
from mzseek.annotation.config import LIBRARY, AnnotateConfig
from mzseek.annotation.hypotheses import instrument_notes, unexplained_remark
from mzseek.annotation.prior import LEARNED
from mzseek.annotation.query import Named
from mzseek.annotation.reading import FeatureFiles, Grouping
from mzseek.annotation.scoring import tolerance_of
from mzseek.core.errors import KilledError
from mzseek.export.output import SET_ASIDE, Output, ensure_not_read
from mzseek.export.run_record import versions
from mzseek.export.writer import Settings, Writer
from mzseek.io import StrPath
from mzseek.io.manifest import SourceGuard
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Log, Progress, no_log, silent

Make = Callable[[Path, str, Settings], Writer]
# What the command line calls options, where that is another name.
_OPTIONS = {
    "libraries": "library", "precursor": "ppm", "peaks": "peak-ppm", "ions": "adduct",
    "columns": "smiles-column, --name-column", "grouping": "group",
}  # fmt: skip
FEW = 64  # features: with fewer, processes take longer to begin than they save


@dataclass(frozen=True)
class AnnotationRun:
    """How a job has ended.

    Attributes
    ----------
    out : Path
    counts : mapping of str to int
        As `mzseek.export.Output.counts` gives them.
    levels : mapping of str to int
        Features by level, of those answered by this process.
    facts : mapping
        What was searched.
    said : list of str
        What the user should read.
    """

    out: Path
    counts: Mapping[str, int]
    levels: Mapping[str, int]
    facts: Mapping[str, Any]
    said: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether no feature has a candidate: nothing was readable, or nothing was found."""
        return not self.counts["with_candidates"]


def annotate_files(
    paths: Sequence[StrPath],
    out: StrPath,
    config: AnnotateConfig,
    *,
    grouping: Grouping | None = None,
    settings: Settings | None = None,
    more: Callable[[Mapping[str, Any]], Mapping[str, Make]] | None = None,
    resume: bool = False,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress = silent,
    say: Log = no_log,
) -> AnnotationRun:
    """Annotate the spectra of files.

    Parameters
    ----------
    paths : sequence of paths
        Any format that `mzseek.spectra.read_spectra` reads.
    out : path
    config : AnnotateConfig
    grouping : Grouping, optional
    settings : Settings, optional
    more : callable of facts, optional
        Makes further writers by name or suffix, given what will be searched.
    resume : bool
        Go on from what a killed process has left.
    force : bool
        Replace what is there even if annotate has not written it, as `Output` takes it.
    jobs : int, optional
    progress, say : callables

    Raises
    ------
    MzseekError
        A file that is missing or of another kind, a model or database that is damaged, an output
        in the way.
    """
    files = [Path(path) for path in paths]
    settings = replace(settings or Settings(), read=paths_read(files, config, settings))
    ensure_not_read(Path(out), settings.read)
    steady = SourceGuard(files)
    annotator = Annotator(config)  # whatever is missing is told before anything is made
    facts = annotator.facts()
    grouping = grouping or Grouping()
    known, own = _settings(settings, files, annotator, facts, grouping), more(facts) if more else {}
    signature = _signature(annotator, grouping, steady)
    levels, named, skipped = dict[str, int](), annotator.named(), SkippedCandidates()
    explained: list[float] = []
    with Output(
        Path(out), known, signature=signature, resume=resume, more=own, force=force
    ) as output:
        for note in output.notes:
            say(note)
        progress("reading", 0, None)
        features = FeatureFiles(files, grouping, output.set_aside)
        records = features.records + features.set_aside
        if before := output.resumed:
            say(f"{before:,} features were done before.")
        told = partial(_told, progress, before, len(features))
        for one in _annotations(features, named, output, annotator, jobs, told):
            _take(one, output, levels)
            if isinstance(one, Annotation):
                skipped.add(one)
                explained += [one.best.explained] if one.best else []
        steady.ensure_unchanged()
        counts = output.counts(records)
        said = output.finish(
            records=records, inputs=steady.hashes,
            bundle=facts["model"], database=facts["database"], prior=facts["prior"],
            more=more_facts(facts, named, skipped),
        )  # fmt: skip
    said = [*features.warnings(), *remarks(annotator, named, explained, skipped), *said,
            *_aside_lines(output)]  # fmt: skip
    return AnnotationRun(Path(out), counts, dict(sorted(levels.items())), facts, said)


def _aside_lines(output: Output) -> list[str]:
    """Where reasons are: in a table of the folder; of a single file, here."""
    aside = output.set_aside
    if not aside.count:
        return []
    if output.is_folder:
        return [f"What was set aside, and why: {output.target / SET_ASIDE}"]
    lines = [f"Set aside: {where}: {reason}" for where, reason in aside.first]
    left = aside.count - len(lines)
    return [*lines, *([f"… and {left:,} more: a folder as --out lists them all"] if left else [])]


def paths_read(
    files: Sequence[Path], config: AnnotateConfig, settings: Settings | None = None
) -> tuple[Path, ...]:
    """All files and folders that a run reads, and that must not be written over."""
    tables = [] if settings is None else [settings.network, settings.features, *settings.read]
    named = [config.model, *config.libraries]
    named += [config.database] if config.database != LIBRARY else []
    named += [config.prior] if config.prior != LEARNED else []
    return (*files, *(table for table in tables if table), *(Path(n) for n in named if n))


def _told(progress: Progress, before: int, total: int, done: int) -> None:
    progress("features", before + done, total)


class SkippedCandidates:
    """Counts of candidates that are no candidates after all, over features."""

    def __init__(self) -> None:
        self.by_ion_rules: Counter[str] = Counter()
        self.mismatches = self.features = 0

    def add(self, annotation: Annotation) -> None:
        """Count those of one feature."""
        self.by_ion_rules.update(annotation.removed)
        self.mismatches += annotation.mass_mismatches
        self.features += annotation.mass_mismatches > 0

    def lines(self, kept: bool) -> list[str]:
        """Return a line about masses that contradict precursors, if there are any."""
        if not self.mismatches:
            return []
        counts = (
            f"{self.mismatches:,} listed candidate{'s' if self.mismatches != 1 else ''} of "
            f"{self.features:,} feature{'s' if self.features != 1 else ''}"
        )
        mass = "mass contradicts the precursor under every ion tried"
        if kept:
            return [f"Kept {counts} whose {mass}."]
        return [f"Skipped {counts} whose {mass} (--keep-mass-mismatches keeps them)."]


def remarks(
    annotator: Annotator,
    named: Named,
    explained: Sequence[float],
    skipped: SkippedCandidates,
) -> list[str]:
    """What the user should read about all features together.

    Rows of the user's own lists and weights that cannot be used, what libraries have added, an
    instrument that the files state or that the model does not know, tolerances at which the best
    candidates explain nothing (`explained`: share of the intensity), listed candidates of another
    mass, and features of tables that no file has.
    """
    said = [
        f"Skipped {what}: {len(rejects):,}, the first: {rejects[0][0]}: {rejects[0][1]}"
        for what, rejects in (
            ("candidates", annotator.rejects),
            ("weights", annotator.prior_rejects),
        )
        if rejects
    ]
    said += lending_lines(annotator.added)
    said += [
        f"{note[0].upper()}{note[1:]}." for note in instrument_notes(annotator.config.instrument)
    ]
    said += annotator.config.remarks
    said += unexplained_remark(explained, annotator.config.peaks)
    said += skipped.lines(annotator.config.keep_mass_mismatches)
    return said + named.lines()


def more_facts(
    facts: Mapping[str, Any], named: Named, skipped: SkippedCandidates
) -> dict[str, Any]:
    """What ``run.json`` says of the expected share, libraries, tables and ion rules."""
    return {
        "expected_share": facts["expected_share"],
        "libraries": facts["libraries"],
        "added": facts["added"],
        "tables": named.facts(),
        "renamed_features": named.renamed(),
        "candidates_removed_by_ion_rules": dict(sorted(skipped.by_ion_rules.items())),
        "mass_mismatches": {"candidates": skipped.mismatches, "features": skipped.features},
    }


def _settings(
    given: Settings,
    files: Sequence[Path],
    annotator: Annotator,
    facts: Mapping[str, Any],
    grouping: Grouping,
) -> Settings:
    """What writers must know, filled in."""
    return replace(
        given,
        inputs=tuple(str(path) for path in files),
        database=annotator.source.label,
        database_version=_digest(facts["database"])[:16],
        options=run_options(annotator.config, grouping) | _joined(given),
        **tolerance_of(annotator.fitted),  # peaks are explained as they were scored
    )


def _take(one: Annotation | SkippedFeature, output: Output, levels: dict[str, int]) -> None:
    """Write an annotation, or set its records aside, each with the reason."""
    if isinstance(one, SkippedFeature):
        for number in range(1, one.spectra + 1):
            which = f", spectrum {number} of {one.spectra}" if one.spectra > 1 else ""
            output.set_aside(f"{one.where}{which}", one.reason)
    else:
        output.write(one)
        levels[one.level.number] = levels.get(one.level.number, 0) + 1


def _annotations(
    features: FeatureFiles,
    named: Named,
    output: Output,
    annotator: Annotator,
    jobs: int | None,
    told: Callable[[int], None],
) -> Iterator[Annotation | SkippedFeature]:
    """Answers to what is not done: to few features by what is open, to many by processes."""
    left = (each for each in named.meet(features) if not output.was_done(each))
    if len(features) - output.resumed > FEW:
        try:
            yield from annotations(
                left, annotator.config, engine=LocalEngine(jobs), annotator=annotator, progress=told
            )
        except KilledError as error:
            if not output.resumed:
                raise
            raise KilledError(
                f"{error}; {output.resumed:,} features are written, and the same command with "
                "--resume goes on after them"
            ) from error
        return
    for done, feature in enumerate(left, 1):
        yield from answered(annotator, [feature])
        told(done)


def run_options(config: AnnotateConfig, grouping: Grouping) -> dict[str, Any]:
    """All options that annotations depend on, as ``run.json`` has them."""
    return _plain(config) | {"grouping": asdict(grouping)}


def _plain(config: AnnotateConfig) -> dict[str, Any]:
    """The config as plain data."""
    return dict(json.loads(json.dumps(asdict(config))))


def _joined(settings: Settings) -> dict[str, Any]:
    """Tables and networks that annotations are joined to, for the options of a run."""
    tables = {"features": settings.features, "network": settings.network}
    return {name: None if path is None else str(path.resolve()) for name, path in tables.items()}


def _signature(annotator: Annotator, grouping: Grouping, steady: SourceGuard) -> dict[str, str]:
    """Checksums of all that annotations depend on, by the name that users have for it."""
    plain = _plain(annotator.config)
    wanted = plain.pop("wanted")
    options = {**plain, **wanted, "grouping": asdict(grouping)}
    contents = annotator.contents()
    parts = {
        **{f"input {path}": sha256 for path, sha256 in steady.hashes.items()},
        "the order of inputs": [str(path) for path in steady.hashes],
        **{
            f"--{_OPTIONS.get(name, name)}": [value, contents.get(name)]
            for name, value in options.items()
        },
        "the versions": versions(),
    }
    return {name: _digest(value) for name, value in parts.items()}


def _digest(facts: Any) -> str:
    return sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
