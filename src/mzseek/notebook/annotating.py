"""Annotation in a notebook: spectra in, answers out, shown and saved."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.annotation.answering import Wanted
from mzseek.annotation.answers import Answer
from mzseek.annotation.asking.instruments import stated_tolerances, tolerances
from mzseek.annotation.asking.ions import Ions
from mzseek.annotation.candidates.formulas import read_formulas
from mzseek.annotation.features import fault_of
from mzseek.annotation.job import FEW, more_facts, remarks
from mzseek.annotation.opening.setup import Setup, setup_of
from mzseek.annotation.pipeline import SetAside, Workshop, answered, answers
from mzseek.annotation.reading import FeatureFiles, Grouping, features_of, warnings_of
from mzseek.annotation.writing import Output, Settings, ranked
from mzseek.annotation.writing.tables.candidates import candidate_cells
from mzseek.annotation.writing.tables.summary import summary_cells
from mzseek.decision import UTILITIES
from mzseek.errors import AnnotationError, SpectrumError
from mzseek.files import StrPath
from mzseek.registry import check_name
from mzseek.report.annotations import report_writers
from mzseek.spectra import Spectrum
from mzseek.spectra.record import Record, to_spectrum
from mzseek.tables import Table, Tabular
from mzseek.work import LocalEngine

# Columns that stay text, though they may look like numbers: names, levels.
_TEXTS = frozenset({"feature", "name", "level", "file", "notes"})


class Annotations(Tabular, Sequence[Answer]):
    """Answers to features, in the order of the features.

    Attributes
    ----------
    answers : tuple of Answer
    set_aside : list of (str, str)
        Where and why, for each record or feature that was not answered.
    facts : mapping
        What was searched: model, database, libraries; and the prior that was counted in.
    notes : tuple of str
        What should be read about all of them together.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        set_aside: Sequence[tuple[str, str]],
        facts: Mapping[str, Any],
        settings: Settings,
        notes: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.answers, self.set_aside = tuple(answers), list(set_aside)
        self.facts, self._settings = facts, settings
        self.notes, self._more = tuple(notes), dict(more or {})

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, place: Any) -> Any:
        return self.answers[place]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def to_frame(self) -> Any:
        """A data frame with one row a candidate: the columns of ``candidates.tsv``."""
        return self.candidates().to_frame()

    def candidates(self) -> Table:
        """One row a candidate."""
        return _table(
            candidate_cells(answer, candidate, rank)
            for answer in self.answers
            for rank, candidate in enumerate(ranked(answer), 1)
        )

    def to_table(self) -> Table:
        """One row a feature: the columns of ``summary.tsv``."""
        return _table(map(summary_cells, self.answers))

    def save(self, path: StrPath) -> Path:
        """Write the answers: a folder, or a file by its suffix (.tsv .json .html .mztab .graphml).

        Returns
        -------
        Path
        """
        target = Path(path)
        more = report_writers(self.facts)
        with Output(target, self._settings, more=more) as output:
            for where, reason in self.set_aside:
                output.set_aside(where, reason)
            for answer in self.answers:
                output.write(answer)
            output.finish(
                bundle=self.facts["model"],
                database=self.facts["database"],
                prior=self.facts["prior"],
                more=self._more,
            )
        return target

    def __repr__(self) -> str:
        return f"Annotations({len(self):,} features, {len(self.set_aside):,} set aside)"


def annotate(
    spectra: "StrPath | Spectrum | Iterable[Any]",
    database: StrPath | None = None,
    library: StrPath | Sequence[StrPath] | None = None,
    model: StrPath | None = None,
    objective: str = "hit",
    *,
    adduct: str | Sequence[str] = (),
    ppm: float | str | None = None,
    peak_ppm: float | str | None = None,
    instrument: str | None = None,
    coverage: float = 0.9,
    known: float = 0.5,
    formulas: StrPath | Mapping[str, str] | None = None,
    prior: StrPath | None = None,
    group: str = "id",
    rt_unit: str | None = None,
    most: int = 5_000,
    top: int = 100,
    jobs: int | None = None,
    smiles_column: str | None = None,
    name_column: str | None = None,
) -> Annotations:
    """Find the molecules behind spectra: ranked, with reasons and a confidence.

    Parameters
    ----------
    spectra : path, paths, Spectrum, or iterable of Spectrum or matchms spectra
    database : path, optional
        A database, a list of candidates, or ``"library"``; the small one in the box by default.
    library, model : paths, optional
        Reference spectra beside the bundle's, and a bundle; that of mzseek by default.
    objective : str
        "hit", "tanimoto", "cosine", "bits" or "f1": what the first candidate is decided for.
    adduct : str or sequence of str
        Ions that are tried, and no others; with a + before it, beside those of the file.
    ppm, peak_ppm : float or str, optional
        Tolerances of precursors (10 ppm, or as wide as one is coarse) and of peaks (the model's).
    instrument : str, optional
        "orbitrap", "qtof", "fticr" or "ion-trap": tolerances that are not given are its own. By
        default "qtof" where files state such an instrument.
    coverage, known : float
        Of prediction sets; share of features whose molecule is expected to be in the database.
    formulas : path or mapping of str to str, optional
        Formulas that are known, by feature.
    prior : path, optional
        "learned", or a table of SMILES or InChIKey and weight, to be counted in.
    group : str
        "id", "precursor" or "none": which spectra are one feature.
    rt_unit : str, optional
        "min" or "s": of retention times whose unit the file does not tell.
    most, top, jobs : int
        Candidates of a feature that are scored, and that are kept; processes.
    smiles_column, name_column : str, optional
        Columns of a list of candidates, where they are not the usual ones.

    Raises
    ------
    MzseekError: what is missing, damaged or unknown; a bad record is set aside instead.
    """
    lines: tuple[str, ...] = ()
    if instrument is ppm is peak_ppm is None:
        instrument, tolerance, peaks, lines = stated_tolerances(_paths(spectra) or ())
    else:
        tolerance, peaks = tolerances(instrument, ppm, peak_ppm)
    setup = setup_of(
        model=model, database=database, library=library, prior=prior, precursor=tolerance,
        most=most, peaks=peaks, instrument=instrument, smiles_column=smiles_column,
        name_column=name_column, remarks=lines,
        ions=Ions.parse([adduct] if isinstance(adduct, str) else adduct),
        formulas=_known_formulas(formulas), wanted=_wanted(objective, coverage, top, known),
    )  # fmt: skip
    grouping = Grouping(group, tolerance, rt_unit=rt_unit)
    return _annotated(spectra, setup, grouping, jobs)


def _wanted(objective: str, *numbers: Any) -> Wanted:
    check_name(UTILITIES, objective, "objective", AnnotationError)
    return Wanted(objective, *numbers)


def _annotated(spectra: Any, setup: Setup, grouping: Grouping, jobs: int | None) -> Annotations:
    rejects: list[tuple[str, str]] = []
    shop = Workshop(setup)
    named, paths = shop.named(), _paths(spectra)
    if paths is not None:
        files = FeatureFiles(paths, grouping, rejects)
        features, number, doubts = iter(files), len(files), files.warnings()
    else:
        one_or_more = [spectra] if isinstance(spectra, Spectrum) else spectra
        listed = features_of(_spectra(one_or_more, rejects), grouping.rt_unit)
        features, number, doubts = iter(listed), len(listed), warnings_of(listed, grouping)
    features = named.meet(features)
    if number > FEW:
        said = answers(features, setup, engine=LocalEngine(jobs), shop=shop)
    else:
        said = (one for feature in features for one in answered(shop, [feature]))
    found = []
    for one in said:
        if isinstance(one, SetAside):
            rejects.append((one.where, one.reason))
        else:
            found.append(one)
    settings = Settings(
        title="annotations", inputs=tuple(map(str, paths or ())), database=shop.source.label
    )
    explained = [answer.best.explained for answer in found if answer.best]
    notes, facts = [*doubts, *remarks(shop, named, explained)], shop.facts()
    for line in [*doubts, *named.lines()]:
        warnings.warn(line, stacklevel=3)
    removed = sum((Counter(answer.removed) for answer in found), Counter[str]())
    more = more_facts(facts, named, removed)
    return Annotations(found, rejects, facts, settings, notes, more)


def _known_formulas(
    formulas: StrPath | Mapping[str, str] | None,
) -> tuple[tuple[str, str], ...]:
    if formulas is None or isinstance(formulas, Mapping):
        return tuple((formulas or {}).items())
    return tuple(read_formulas(formulas).items())


def _paths(spectra: Any) -> list[Path] | None:
    """Paths, if that is what was given."""
    if isinstance(spectra, str | Path):
        return [Path(spectra)]
    if isinstance(spectra, list | tuple) and spectra and isinstance(spectra[0], str | Path):
        return [Path(each) for each in spectra]
    return None


def _spectra(spectra: Iterable[Any], rejects: list[tuple[str, str]]) -> Iterator[Spectrum]:
    """Spectra of objects: mzseek's own, or any with ``peaks`` and ``metadata`` as matchms has."""
    for place, each in enumerate(spectra, 1):
        if isinstance(each, Spectrum):
            if (fault := fault_of(each)) is None:
                yield each
            else:
                rejects.append((f"spectrum {place}", fault))
            continue
        try:
            peaks, metadata = each.peaks, each.metadata
            mz, intensities = np.asarray(peaks.mz), np.asarray(peaks.intensities)
        except AttributeError as error:
            raise AnnotationError(
                f"spectrum {place} is a {type(each).__name__}, expected a Spectrum, one of "
                "matchms, or a path"
            ) from error
        record = Record(f"spectrum {place}", mz=mz, intensities=intensities,
                        fallback_name=f"record {place}")  # fmt: skip
        for key, value in dict(metadata).items():
            record.add(str(key), "" if value is None else str(value))
        try:
            spectrum = to_spectrum(record)
            if (fault := fault_of(spectrum)) is not None:
                raise SpectrumError(fault)
            yield spectrum
        except SpectrumError as error:
            rejects.append((record.where, str(error)))


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
