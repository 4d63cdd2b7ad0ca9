"""Annotate in a notebook, and show, plot and save the results."""

import csv
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mzseek.annotation.annotation import Annotation, Candidate, Floats, Reference
from mzseek.annotation.annotator import Annotator, SkippedFeature, annotations, answered
from mzseek.annotation.candidates import read_formulas
from mzseek.annotation.config import AnnotateConfig, annotate_config
from mzseek.annotation.features import fault_of, normalise_name
from mzseek.annotation.hypotheses import Ions, stated_tolerances, tolerances
from mzseek.annotation.reading import FeatureFiles, Grouping, features_of, warnings_of
from mzseek.annotation.scoring import tolerance_of
from mzseek.chem.identifiers import links
from mzseek.core.errors import AnnotationError, InputError, SpectrumError
from mzseek.core.registry import check_name
from mzseek.core.tables import Table, Tabular
from mzseek.decision import UTILITIES
from mzseek.export.feature_tables import same_feature
from mzseek.export.job import FEW, SkippedCandidates, more_facts, paths_read, remarks, run_options
from mzseek.export.output import Output
from mzseek.export.report import report_writers
from mzseek.export.report_data import shown_spectrum
from mzseek.export.spectrum_plot import Stick, plot_sticks
from mzseek.export.tables import CHANNEL, FragmentSmiles, explained_peaks, several, summary_cells
from mzseek.export.writer import Settings, ranked
from mzseek.fragments import Explanation
from mzseek.io import StrPath
from mzseek.parallel import LocalEngine
from mzseek.spectra import Spectrum, as_spectra
from mzseek.spectra.convert import is_spectrum

# Columns of the summary that stay text, though they may look like numbers: names, levels.
_TEXTS = frozenset({"feature", "name", "level", "file", "notes"})
_SHOWN_NAMES = 5


@dataclass(frozen=True, eq=False)
class _Shown(Annotation):
    """The annotation for one feature, with its peaks as a data frame and as a plot.

    Attributes
    ----------
    settings : Settings
        With the tolerance of peaks that candidates were scored with.
    """

    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(cls, annotation: Annotation, settings: Settings) -> "_Shown":
        """Return an annotation with the settings that its peaks are explained by."""
        return cls(**{**vars(annotation), "settings": settings})

    def candidate(self, rank: int = 1) -> Candidate:
        """Return the candidate of a rank; 1 is the annotation.

        Raises
        ------
        AnnotationError
            There is no candidate of this rank.
        """
        listed = ranked(self)
        if not 1 <= rank <= len(listed):
            have = f"1 to {len(listed):,}" if listed else "none: it has no candidates"
            raise AnnotationError(f"feature {self.feature.name}: rank is {rank}, expected {have}")
        return listed[rank - 1]

    def peaks(self, rank: int = 1) -> Any:
        """Annotate all peaks with fragments of a candidate.

        Parameters
        ----------
        rank : int
            Of the candidate.

        Returns
        -------
        pandas.DataFrame
            One row a peak: ``spectrum``, ``mz``, ``intensity``, ``relative`` (to the strongest peak
            of its spectrum), and of explained peaks ``formula``, ``error_ppm``, ``charge``,
            ``bonds`` broken, ``hydrogens`` moved and the ``fragment`` as SMILES. A feature without
            candidates has unexplained peaks only.

        Raises
        ------
        AnnotationError, MissingExtra
            There is no candidate of this rank; pandas is not installed.
        """
        candidate = self._explaining(rank)
        fragments = FragmentSmiles(candidate)
        found = [
            (spectrum, peak)
            for spectrum in self.feature.spectra
            for peak in explained_peaks(spectrum, candidate, self.settings)
        ]
        peaks = [peak for _, peak in found]
        copied = ("formula", "error_ppm", "charge", "bonds", "hydrogens")
        return Table(
            {
                "spectrum": [spectrum.identifier for spectrum, _ in found],
                "mz": [peak.mz for peak in peaks],
                "intensity": [peak.intensity for peak in peaks],
                "relative": [peak.intensity / _strongest(s.intensities) for s, peak in found],
                **{name: [getattr(peak, name) for peak in peaks] for name in copied},
                "fragment": [fragments.smiles(peak.atoms) or None for peak in peaks],
            }
        ).to_frame()

    def plot(self, rank: int = 1, *, mirror: bool = False) -> Any:
        """Draw the spectrum with the peaks that a candidate explains.

        Of several spectra the one with the most peaks is drawn.

        Parameters
        ----------
        rank : int
            Of the candidate.
        mirror : bool
            Draw the candidate's reference spectrum below: its library match, else its analog.

        Returns
        -------
        matplotlib.figure.Figure, or Svg (a str) where matplotlib is not installed

        Raises
        ------
        AnnotationError
            There is no candidate of this rank, or no reference spectrum to mirror.
        """
        candidate = self._explaining(rank)
        spectrum = shown_spectrum(self.feature)
        sticks, title, below = self._sticks(spectrum, candidate), self.feature.name, ""
        if candidate is not None:
            title += f": {candidate.name or candidate.smiles} ({candidate.adduct}), confidence "
            title += f"{self.confidence_of(candidate):.0%}"
        if mirror:
            reference = self._reference(candidate)
            strongest = _strongest(reference.intensities)
            sticks += [
                Stick(float(mz), -float(intensity) / strongest, "reference")
                for mz, intensity in zip(reference.mz, reference.intensities, strict=True)
            ]
            same = candidate is not None and reference is candidate.match
            name = reference.name or (candidate.name if same and candidate else "")
            below = f"{reference.record} ({name or reference.smiles}), "
            below += f"similarity {reference.similarity:.2f}"
        return plot_sticks(sticks, spectrum.precursor_mz, title, below)

    def _explaining(self, rank: int) -> Candidate | None:
        return None if not self.candidates and rank == 1 else self.candidate(rank)

    def _reference(self, candidate: Candidate | None) -> Reference:
        found = None if candidate is None else candidate.match or candidate.analog
        if found is None:
            raise AnnotationError(
                f"feature {self.feature.name}: no reference spectrum stands behind this candidate, "
                "so there is nothing to mirror"
            )
        return found

    def _sticks(self, spectrum: Spectrum, candidate: Candidate | None) -> list[Stick]:
        strongest = _strongest(spectrum.intensities)
        return [
            Stick(peak.mz, peak.intensity / strongest, "explained" if peak.formula else "other",
                  _ion(peak))
            for peak in explained_peaks(spectrum, candidate, self.settings)
        ]  # fmt: skip

    def __repr__(self) -> str:
        best = self.best
        name = "no candidate" if best is None else f"{best.name or best.smiles} {best.adduct}"
        return (
            f"Annotation({self.feature.name!r}, {name}, confidence {self.confidence:.2f}, "
            f"level {self.level.number})"
        )


class Annotations(Tabular, Sequence[_Shown]):
    """Answers for features, in the order of the features.

    ``annotations[0]`` is the first, ``annotations["17"]`` that of the feature with this id.

    Attributes
    ----------
    annotations : tuple of Annotation
    set_aside : list of (str, str)
        Where and why, for each record or feature that was skipped.
    facts : mapping
        What was searched: model, database, libraries; and the prior, if one was applied.
    notes : tuple of str
        Remarks on all features together.
    """

    def __init__(
        self,
        annotations: Sequence[Annotation],
        set_aside: Sequence[tuple[str, str]],
        facts: Mapping[str, Any],
        settings: Settings,
        notes: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.annotations = tuple(_Shown.of(annotation, settings) for annotation in annotations)
        self.set_aside, self.facts, self._settings = list(set_aside), facts, settings
        self.notes, self._more = tuple(notes), dict(more or {})
        self._by_name = {
            annotation.feature.name: annotation for annotation in reversed(self.annotations)
        }
        self._by_number = {same_feature(name): found for name, found in self._by_name.items()}

    def __len__(self) -> int:
        return len(self.annotations)

    def __getitem__(self, place: Any) -> Any:
        """Return the annotation at a place (int), those of a slice, or that of a feature (str).

        Raises
        ------
        KeyError
            No feature has this id; the message names some that there are.
        """
        if not isinstance(place, str):
            return self.annotations[place]
        found = self._by_name.get(place) or self._by_number.get(same_feature(place))
        if found is None:
            names = ", ".join(repr(name) for name in self.features[:_SHOWN_NAMES])
            more = " …" if len(self) > _SHOWN_NAMES else ""
            raise KeyError(f"no feature is called {place!r}; there are {names or 'none'}{more}")
        return found

    def __contains__(self, wanted: object) -> bool:
        if isinstance(wanted, str):
            return wanted in self._by_name or same_feature(wanted) in self._by_number
        return any(wanted is annotation for annotation in self.annotations)

    def __iter__(self) -> Iterator[_Shown]:
        return iter(self.annotations)

    @property
    def features(self) -> list[str]:
        """Ids of the features, in their order."""
        return [annotation.feature.name for annotation in self.annotations]

    def to_frame(self) -> Any:
        """Return a data frame with one row a candidate: see `candidates`."""
        return self.candidates().to_frame()

    def candidates(self) -> Table:
        """Return one row a candidate: the columns of ``candidates.tsv``, and two more.

        ``probability`` is that of the candidate if the molecule is in the database, ``confidence``
        that of the candidate in any case; of rank 1 it is the feature's. ``level`` stands in the
        row of rank 1 only, which it is about.
        """
        rows = [
            _candidate_row(annotation, candidate, rank)
            for annotation in self.annotations
            for rank, candidate in enumerate(ranked(annotation), 1)
        ]
        names = list(rows[0]) if rows else []
        return Table({name: [row[name] for row in rows] for name in names})

    def to_table(self) -> Table:
        """Return one row a feature: the columns of ``summary.tsv``."""
        return _table(map(summary_cells, self.annotations))

    def save(self, path: StrPath, *, force: bool = False) -> Path:
        """Write a folder, or a file by its suffix (.tsv .json .html .mztab .graphml).

        Peaks are explained with the tolerance that candidates were scored with.

        Parameters
        ----------
        path : path
        force : bool
            Replace what is there even if annotate has not written it, or it was changed since.

        Returns
        -------
        Path

        Raises
        ------
        RunError
            What is there would be lost, or was read to make these annotations.
        """
        target = Path(path)
        more = report_writers(self.facts)
        with Output(target, self._settings, more=more, force=force) as output:
            for where, reason in self.set_aside:
                output.set_aside(where, reason)
            for annotation in self.annotations:
                output.write(annotation)
            output.finish(
                inputs=map(Path, self._settings.inputs),
                bundle=self.facts["model"],
                database=self.facts["database"],
                prior=self.facts["prior"],
                more=self._more,
            )
        return target

    def __repr__(self) -> str:
        return f"Annotations({len(self):,} features, {len(self.set_aside):,} set aside)"


def _strongest(intensities: Floats) -> float:
    return float(intensities.max(initial=0.0)) or 1.0


def _ion(peak: Explanation) -> str:
    """Formula and charge of an explained peak; empty for others."""
    if peak.formula is None:
        return ""
    charge = peak.charge or 0
    size = "" if abs(charge) < 2 else str(abs(charge))
    return peak.formula + (f"{size}{'+' if charge > 0 else '-'}" if charge else "")


def _candidate_row(annotation: Annotation, candidate: Candidate, rank: int) -> dict[str, Any]:
    """Values of a candidate, under the names of ``candidates.tsv``."""
    match, analog = candidate.match, candidate.analog
    kinds = set(annotation.kinds.values())
    parts = zip(annotation.channels, candidate.parts, strict=True)
    return {
        "feature": annotation.feature.name,
        "rank": rank,
        "smiles": candidate.smiles,
        "InChIkey2D": candidate.key,
        "molecularFormula": candidate.formula,
        "adduct": candidate.adduct,
        "probability": candidate.probability,
        "confidence": annotation.confidence_of(candidate),
        "level": annotation.level.number if rank == 1 else None,
        "inSet": candidate.in_set,
        "name": candidate.name,
        "mass": candidate.mass,
        "errorPpm": candidate.error_ppm,
        "score": candidate.score,
        **{f"{CHANNEL}{channel}": part for channel, part in parts},
        **{
            kind: annotation.nats(candidate, kind) if kind in kinds else None
            for kind in ("evidence", "analogy", "match", "prior")
        },
        "explainedIntensity": candidate.explained,
        "explainedPeaks": candidate.peaks_explained,
        "libraryMatch": _of(match, lambda found: found.record),
        "librarySimilarity": _of(match, lambda found: found.similarity),
        "analogRecord": _of(analog, lambda found: found.record),
        "analogSimilarity": _of(analog, lambda found: found.similarity),
        "analogLikeness": _of(analog, lambda found: found.likeness),
        "sources": several(candidate.sources),
        "links": several(links(candidate.identifiers)),
    }


def _of(reference: Reference | None, value: Callable[[Reference], Any]) -> Any:
    return None if reference is None else value(reference)


def _table(rows: Iterable[Mapping[str, str]]) -> Table:
    """Cells of a table; columns of numbers as numbers, what is empty as None."""
    listed = list(rows)
    names = list(listed[0]) if listed else []
    return Table({name: _column(name, [row[name] for row in listed]) for name in names})


def _column(name: str, cells: list[str]) -> list[Any]:
    if name in _TEXTS:
        return cells
    try:
        return [None if not cell else float(cell) for cell in cells]
    except ValueError:
        return cells


# What messages and results call candidates that were given as objects.
GIVEN = "the candidates given"


def annotate(
    spectra: "StrPath | Spectrum | Iterable[Any]",
    database: "StrPath | Iterable[str] | Any | None" = None,
    library: StrPath | Sequence[StrPath] | None = None,
    model: StrPath | None = None,
    objective: str = "hit",
    *,
    adduct: str | Sequence[str] = (),
    ppm: float | str | None = None,
    peak_ppm: float | str | None = None,
    instrument: str | None = None,
    coverage: float = 0.9,
    expected_in_database: float | None = None,
    strict: bool | None = None,
    formulas: StrPath | Mapping[str, str] | None = None,
    keep_mass_mismatches: bool = False,
    prior: StrPath | None = None,
    group: str = "id",
    rt_window: float = 10.0,
    rt_unit: str | None = None,
    max_candidates: int = 5_000,
    top: int = 100,
    jobs: int | None = None,
    smiles_column: str | None = None,
    name_column: str | None = None,
) -> Annotations:
    """Find the molecules behind spectra: ranked, with reasons and a confidence.

    Parameters
    ----------
    spectra : path, paths, Spectrum, matchms spectrum, or iterable of spectra
    database : path, Database, pandas.DataFrame or iterable of str, optional
        A database, a file of candidates, or ``"library"``; a data frame with the columns of such a
        file (with a column ``feature``: a list for each feature); or SMILES. The small database of
        the bundle by default.
    library, model : paths, optional
        Reference spectra in addition to the bundle's, and a bundle; that of mzseek by default.
    objective : str
        "hit", "tanimoto", "cosine", "bits" or "f1": what the first candidate is decided for.
    adduct : str or sequence of str
        Ions that are tried, and no others; with a + before it, beside those of the file.
    ppm, peak_ppm : float or str, optional
        Tolerances of precursors (10 ppm, or as wide as one is coarse) and of peaks (the model's).
    instrument : str, optional
        "orbitrap", "qtof", "fticr" or "ion-trap": tolerances that are not given are its own. By
        default "qtof" where files state such an instrument.
    coverage : float
        Of prediction sets.
    expected_in_database : float, optional
        Share of features whose molecule is expected in the database; by default that of the kind
        of database.
    strict : bool, optional
        Only molecules of the database are candidates, whatever the library matches. By default
        for lists of single features.
    formulas : path or mapping of str to str, optional
        Formulas that are known, by feature (``file:id`` where several files have the id).
    keep_mass_mismatches : bool
        Keep candidates listed for a feature whose mass contradicts its precursor under every ion
        that is tried; by default they are skipped and counted.
    prior : path, optional
        "learned", or a table of SMILES or InChIKey and weight, to be counted in.
    group : str
        "id", "precursor" or "none": which spectra are one feature.
    rt_window : float
        Seconds, for ``group="precursor"``.
    rt_unit : str, optional
        "min" or "s": of retention times whose unit the file does not tell.
    max_candidates, top, jobs : int
        Candidates of a feature that are scored, and that are kept; processes.
    smiles_column, name_column : str, optional
        Columns of a list of candidates, where they are not the usual ones.

    Returns
    -------
    Annotations

    Raises
    ------
    MzseekError
        Something is missing, damaged or unknown. A spectrum that cannot be used is skipped, and
        listed in the result.

    Examples
    --------
    >>> found = annotate("mine.mgf", database=["CCO", "COC"])  # doctest: +SKIP
    >>> found["17"].peaks()  # doctest: +SKIP
    """
    check_name(UTILITIES, objective, "objective", AnnotationError)
    lines: tuple[str, ...] = ()
    given = _paths_or_spectra(spectra)
    if instrument is ppm is peak_ppm is None:
        paths = [each for each in given if isinstance(each, Path)]
        instrument, tolerance, peaks, lines = stated_tolerances(paths)
    else:
        tolerance, peaks = tolerances(instrument, ppm, peak_ppm)
    with _opened(database) as candidates:
        config = annotate_config(
            model=model, database=candidates, library=_folders(library), prior=prior,
            precursor=tolerance, max_candidates=max_candidates, peaks=peaks, instrument=instrument,
            smiles_column=smiles_column, name_column=name_column, remarks=lines, strict=strict,
            keep_mass_mismatches=keep_mass_mismatches,
            ions=Ions.parse([adduct] if isinstance(adduct, str) else adduct),
            formulas=_known_formulas(formulas), objective=objective,
            coverage=coverage, top=top, expected_in_database=expected_in_database,
        )  # fmt: skip
        grouping = Grouping(group, tolerance, rt_window, rt_unit)
        table = isinstance(formulas, str | os.PathLike)
        read = (Path(formulas),) if table else ()  # type: ignore[arg-type]
        try:
            return _annotated(given, config, grouping, read, jobs)
        except InputError as error:
            if candidates is not database and error.where.endswith(GIVEN):
                raise AnnotationError(f"{GIVEN}: {error.reason}") from error
            raise


def _annotated(
    given: list[Any],
    config: AnnotateConfig,
    grouping: Grouping,
    read: tuple[Path, ...],
    jobs: int | None,
) -> Annotations:
    rejects: list[tuple[str, str]] = []
    annotator = Annotator(config)
    if annotator.source.label == GIVEN:  # no path of a file that will be gone
        folder = f"{Path(config.database or '').parent}{os.sep}"
        annotator.rejects[:] = [(w.replace(folder, ""), r) for w, r in annotator.rejects]
    named = annotator.named()
    paths = [each for each in given if isinstance(each, Path)]
    if paths:
        files = FeatureFiles(paths, grouping, rejects)
        features, number, doubts = iter(files), len(files), files.warnings()
    else:
        listed = features_of(_usable(given, rejects), grouping)
        features, number, doubts = iter(listed), len(listed), warnings_of(listed, grouping)
    features = named.meet(features)
    if number > FEW:
        results = annotations(features, config, engine=LocalEngine(jobs), annotator=annotator)
    else:
        results = (one for feature in features for one in answered(annotator, [feature]))
    found = []
    for result in results:
        if isinstance(result, SkippedFeature):
            rejects.append((result.where, result.reason))
        else:
            found.append(result)
    facts, options = annotator.facts(), run_options(config, grouping)
    if annotator.source.label == GIVEN:  # whose file is gone by now
        facts["database"]["path"] = options["database"] = GIVEN
    settings = Settings(
        title="annotations", inputs=tuple(map(str, paths)), database=annotator.source.label,
        options=options, read=paths_read(paths, config, Settings(read=read)),
        **tolerance_of(annotator.fitted),
    )  # fmt: skip
    explained = [annotation.best.explained for annotation in found if annotation.best]
    skipped = SkippedCandidates()
    for annotation in found:
        skipped.add(annotation)
    for line in [*doubts, *skipped.lines(config.keep_mass_mismatches), *named.lines()]:
        warnings.warn(line, stacklevel=3)
    notes = [*doubts, *remarks(annotator, named, explained, skipped)]
    return Annotations(found, rejects, facts, settings, notes, more_facts(facts, named, skipped))


def _known_formulas(
    formulas: StrPath | Mapping[str, str] | None,
) -> tuple[tuple[str, str], ...]:
    if formulas is None or isinstance(formulas, Mapping):
        return tuple((normalise_name(str(name)), text) for name, text in (formulas or {}).items())
    return tuple(read_formulas(formulas).items())


def _paths_or_spectra(given: Any) -> list[Any]:
    """Return paths, or spectra, as a list; paths as `Path`."""
    if isinstance(given, str | os.PathLike):
        return [Path(given)]
    if is_spectrum(given) or not isinstance(given, Iterable):
        return [given]
    listed = [Path(each) if isinstance(each, str | os.PathLike) else each for each in given]
    if len({isinstance(each, Path) for each in listed}) > 1:
        raise AnnotationError("paths and spectra were given together, expected one kind")
    return listed


def _usable(given: list[Any], rejects: list[tuple[str, str]]) -> Iterator[Spectrum]:
    """Yield spectra that a molecule can be looked for; the others are noted."""
    try:
        for number, spectrum in enumerate(as_spectra(given, rejects, skip_bad_peaks=True), 1):
            fault = fault_of(spectrum)
            if fault is None:
                yield spectrum
            else:
                rejects.append((f"spectrum {number}: {spectrum.identifier}", fault))
    except SpectrumError as error:
        raise AnnotationError(f"{error}, or a path") from error


def _folders(library: Any) -> Any:
    """Return paths of libraries; an opened one stands for its folder."""
    if library is None or isinstance(library, str | os.PathLike):
        return library
    several = library if isinstance(library, list | tuple) else [library]
    return [getattr(each, "folder", each) for each in several]


@contextmanager
def _opened(database: Any) -> Iterator[StrPath | None]:
    """Path of a database; candidates in memory become a file for as long as they are needed.

    So that columns, features and unreadable molecules are dealt with as those of a file.
    """
    if database is None or isinstance(database, str | os.PathLike):
        yield database
    elif hasattr(database, "by_mass"):  # an opened Database
        yield database.folder
    else:
        with TemporaryDirectory(prefix="mzseek-") as folder:
            path = Path(folder, GIVEN)
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, delimiter="\t", lineterminator="\n")
                writer.writerows([_cell(value) for value in row] for row in _rows(database))
            yield path


def _rows(database: Any) -> Iterator[Sequence[Any]]:
    """Header and rows of a data frame, or of SMILES."""
    if hasattr(database, "columns") and hasattr(database, "itertuples"):
        index = database.index.name
        is_named = index is not None and index not in database.columns
        frame = database.reset_index() if is_named else database
        yield list(frame.columns)
        yield from frame.itertuples(index=False, name=None)
        return
    if not isinstance(database, Iterable) or isinstance(database, bytes | Mapping):
        raise AnnotationError(
            f"database is a {type(database).__name__}, expected a path, a Database, a data frame "
            "or a list of SMILES"
        )
    yield ["smiles", "id"]
    for number, smiles in enumerate(database, 1):
        if smiles is not None and not isinstance(smiles, str):
            raise AnnotationError(
                f"database: item {number} is a {type(smiles).__name__}, expected a SMILES"
            )
        yield [smiles, ""]


def _cell(value: Any) -> str:
    """Text of a value on one line; whole numbers without a point, nothing for NaN and None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.0f}" if value.is_integer() else str(value)
    text = " ".join(str(value).split())
    return "" if text in ("<NA>", "NaT") else text
