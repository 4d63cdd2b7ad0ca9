"""Rank the formulas of the features of files into a table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mzseek.annotation.annotator import Annotator, SkippedFeature, config_for
from mzseek.annotation.config import AnnotateConfig
from mzseek.annotation.features import Feature
from mzseek.annotation.formulas import FeatureFormulas, feature_formulas
from mzseek.annotation.reading import Features, SpectrumFiles
from mzseek.core.errors import AnnotationError, Reason, RunError
from mzseek.export.output import ensure_not_read
from mzseek.export.tables import decimal, fraction, free_text, line
from mzseek.formulas import RankedFormula
from mzseek.io.manifest import SourceGuard
from mzseek.io.skipped import SkippedGroups
from mzseek.io.writing import atomic_file, sole_writer
from mzseek.parallel import LocalEngine
from mzseek.parallel.engine import Progress, silent
from mzseek.spectra.recalibration import describe_curves

COLUMNS = (
    "feature", "rank", "molecularFormula", "adduct", "probability", "errorPpm",
    "explainedIntensity", "explainedPeaks", "isotopeScore", "prior", "exactMass", "precursorMz",
    "found", "peakFormulas",
)  # fmt: skip
SUFFIXES = (".tsv", ".txt")
_BATCH = 16


@dataclass(frozen=True)
class FormulaTable:
    """What was written.

    Attributes
    ----------
    features, without : int
        Features in the table, and those for which no formula could be told.
    records : int
        Records of the files.
    skipped : SkippedGroups
    messages : list of str
        What the user should read.
    first : list of (Feature, FeatureFormulas)
        The first features.
    """

    features: int
    without: int
    records: int
    skipped: SkippedGroups
    messages: list[str]
    first: list[tuple[Feature, FeatureFormulas]]


def write_formulas(
    paths: Sequence[Path],
    out: Path | None,
    config: AnnotateConfig,
    *,
    top: int = 10,
    shown: int = 10,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress = silent,
) -> FormulaTable:
    """Rank the formulas of the features of files, and write one row for each formula.

    Parameters
    ----------
    paths : sequence of paths
    out : path, optional
        The table; without one nothing is written.
    config : AnnotateConfig
    top : int
        Formulas of a feature, at most.
    shown : int
        Features that are returned with their formulas.
    force : bool
        Replace a file that is no such table.
    jobs : int, optional
    progress : callable

    Raises
    ------
    MzseekError
        A file that is missing or of another kind, or an output in the way.
    """
    files = SpectrumFiles(paths)
    if out is None:
        return _write(files, None, config, top, shown, jobs, progress)
    ensure_not_read(out, [*files.paths, *config.paths()])
    if out.suffix.lower() not in SUFFIXES:
        raise RunError(f"{out}: expected a name that ends in {' or '.join(SUFFIXES)}")
    if not force and out.exists() and not _is_own(out):
        raise RunError(f"{out}: was not written by mzseek formula; name another --out, or --force")
    guard = SourceGuard(files.paths)
    with sole_writer(out, "ranking formulas"), atomic_file(out) as partial:
        table = _write(files, partial, config, top, shown, jobs, progress)
        guard.ensure_unchanged()
    return table


def _write(
    files: SpectrumFiles,
    path: Path | None,
    config: AnnotateConfig,
    top: int,
    shown: int,
    jobs: int | None,
    progress: Progress,
) -> FormulaTable:
    skipped = SkippedGroups()
    annotator = Annotator(config_for(config, files))
    progress("reading", 0, None)
    features = Features(files, annotator.config, skipped)
    progress("estimating mass errors", 0, None)
    annotator.recalibrate(features)
    first: list[tuple[Feature, FeatureFormulas]] = []
    done = without = 0
    stream = None if path is None else path.open("w", encoding="utf-8", newline="")
    try:
        if stream:
            stream.write(line(COLUMNS))
        for feature, result in ranked_features(annotator.config, features, top, jobs):
            done += 1
            progress("features", done, len(features))
            if isinstance(result, SkippedFeature):
                skipped(result.where, result.reason)
                continue
            without += not result.formulas
            if len(first) < shown:
                first.append((feature, result))
            if stream:
                for rank, formula in enumerate(result.formulas, 1):
                    stream.write(line(_cells(feature, rank, formula, result)))
    finally:
        if stream:
            stream.close()
    records = features.records + features.skipped
    messages = [*features.warnings(), *annotator.config.remarks, *describe_curves(features.curves)]
    return FormulaTable(len(features), without, records, skipped, messages, first)


@dataclass(frozen=True)
class _Ranking:
    """Ranks the formulas of a batch of features, in a worker process."""

    config: AnnotateConfig
    top: int

    def __call__(self, batch: Sequence[Feature]) -> list[FeatureFormulas | SkippedFeature]:
        results: list[FeatureFormulas | SkippedFeature] = []
        for feature in batch:
            try:
                results.append(feature_formulas(feature, self.config, self.top))
            except AnnotationError as error:
                reason = Reason(str(error), "not-annotated")
                where = f"{feature.where}: {feature.name}"
                results.append(SkippedFeature(where, reason, feature.records))
        return results


def ranked_features(
    config: AnnotateConfig, features: Features, top: int, jobs: int | None = None
) -> Iterator[tuple[Feature, FeatureFormulas | SkippedFeature]]:
    """Yield each feature with its formulas; many features are ranked by worker processes."""
    work = _Ranking(config, top)
    batches: list[list[Feature]] = []

    def dealt() -> Iterator[list[Feature]]:
        for batch in _batches(features):
            batches.append(batch)
            yield batch

    is_many = len(features) > 4 * _BATCH and jobs != 1
    found = LocalEngine(jobs).results(work, dealt()) if is_many else map(work, dealt())
    for results in found:
        yield from zip(batches.pop(0), results, strict=True)


def _batches(features: Iterable[Feature]) -> Iterator[list[Feature]]:
    batch: list[Feature] = []
    for feature in features:
        batch.append(feature)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _cells(
    feature: Feature, rank: int, formula: RankedFormula, result: FeatureFormulas
) -> Iterator[str]:
    values: list[Any] = [
        free_text(feature.name),
        str(rank),
        formula.formula,
        formula.adduct,
        fraction(formula.probability),
        decimal(formula.error_ppm, 2),
        fraction(round(formula.explained, 4)),
        str(formula.peaks_explained),
        decimal(formula.isotope_score, 2),
        decimal(formula.prior, 2),
        decimal(formula.mass, 5),
        decimal(feature.precursor_mz, 5),
        str(result.found),
        " ".join(f"{peak.mz:.4f}:{peak.formula}" for peak in formula.peaks),
    ]
    return iter(values)


def _is_own(path: Path) -> bool:
    """Return whether a file is a table of formulas."""
    head = line(COLUMNS[:5]).strip().encode()
    try:
        with path.open("rb") as stream:
            return stream.read(len(head)) == head
    except OSError:
        return False
