"""Annotation in a notebook: spectra in, answers out, shown and saved."""

import csv
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mzseek.annotation.answering import Wanted
from mzseek.annotation.asking.instruments import stated_tolerances, tolerances
from mzseek.annotation.asking.ions import Ions
from mzseek.annotation.candidates.formulas import read_formulas
from mzseek.annotation.features import fault_of
from mzseek.annotation.job import FEW, more_facts, remarks
from mzseek.annotation.opening.setup import Setup, setup_of
from mzseek.annotation.pipeline import SetAside, Workshop, answered, answers
from mzseek.annotation.reading import FeatureFiles, Grouping, features_of, warnings_of
from mzseek.annotation.scoring import tolerance_of
from mzseek.annotation.writing import Settings
from mzseek.decision import UTILITIES
from mzseek.errors import AnnotationError, InputError, SpectrumError
from mzseek.files import StrPath
from mzseek.notebook.annotations import Annotations
from mzseek.registry import check_name
from mzseek.spectra import Spectrum, as_spectra
from mzseek.spectra.convert import is_spectrum
from mzseek.work import LocalEngine

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
    known: float | None = None,
    strict: bool | None = None,
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
    known : float, optional
        Share of features whose molecule is expected in the database; by default that of the kind
        of database.
    strict : bool, optional
        Only molecules of the database are candidates, whatever the library matches. By default
        for lists of single features.
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
    lines: tuple[str, ...] = ()
    given = _paths_or_spectra(spectra)
    if instrument is ppm is peak_ppm is None:
        paths = [each for each in given if isinstance(each, Path)]
        instrument, tolerance, peaks, lines = stated_tolerances(paths)
    else:
        tolerance, peaks = tolerances(instrument, ppm, peak_ppm)
    with _opened(database) as candidates:
        setup = setup_of(
            model=model, database=candidates, library=_folders(library), prior=prior,
            precursor=tolerance, most=most, peaks=peaks, instrument=instrument,
            smiles_column=smiles_column, name_column=name_column, remarks=lines, strict=strict,
            ions=Ions.parse([adduct] if isinstance(adduct, str) else adduct),
            formulas=_known_formulas(formulas), wanted=_wanted(objective, coverage, top, known),
        )  # fmt: skip
        grouping = Grouping(group, tolerance, rt_unit=rt_unit)
        try:
            return _annotated(given, setup, grouping, jobs)
        except InputError as error:
            if candidates is not database and error.where.endswith(GIVEN):
                raise AnnotationError(f"{GIVEN}: {error.reason}") from error
            raise


def _wanted(objective: str, *numbers: Any) -> Wanted:
    check_name(UTILITIES, objective, "objective", AnnotationError)
    return Wanted(objective, *numbers)


def _annotated(given: list[Any], setup: Setup, grouping: Grouping, jobs: int | None) -> Annotations:
    rejects: list[tuple[str, str]] = []
    shop = Workshop(setup)
    if shop.source.label == GIVEN:  # no path of a file that will be gone
        folder = f"{Path(setup.database or '').parent}{os.sep}"
        shop.rejects[:] = [(w.replace(folder, ""), r) for w, r in shop.rejects]
    named = shop.named()
    paths = [each for each in given if isinstance(each, Path)]
    if paths:
        files = FeatureFiles(paths, grouping, rejects)
        features, number, doubts = iter(files), len(files), files.warnings()
    else:
        listed = features_of(_usable(given, rejects), grouping)
        features, number, doubts = iter(listed), len(listed), warnings_of(listed, grouping)
    features = named.meet(features)
    if number > FEW:
        results = answers(features, setup, engine=LocalEngine(jobs), shop=shop)
    else:
        results = (one for feature in features for one in answered(shop, [feature]))
    found = []
    for result in results:
        if isinstance(result, SetAside):
            rejects.append((result.where, result.reason))
        else:
            found.append(result)
    facts, options = shop.facts(), asdict(setup)
    if shop.source.label == GIVEN:  # whose file is gone by now
        facts["database"]["path"] = options["database"] = GIVEN
    settings = Settings(
        title="annotations", inputs=tuple(map(str, paths)), database=shop.source.label,
        options=options, **tolerance_of(shop.fitted),
    )  # fmt: skip
    for line in [*doubts, *named.lines()]:
        warnings.warn(line, stacklevel=3)
    explained = [answer.best.explained for answer in found if answer.best]
    notes = [*doubts, *remarks(shop, named, explained)]
    removed = sum((Counter(answer.removed) for answer in found), Counter[str]())
    return Annotations(found, rejects, facts, settings, notes, more_facts(facts, named, removed))


def _known_formulas(
    formulas: StrPath | Mapping[str, str] | None,
) -> tuple[tuple[str, str], ...]:
    if formulas is None or isinstance(formulas, Mapping):
        return tuple((formulas or {}).items())
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
        for number, spectrum in enumerate(as_spectra(given, rejects), 1):
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
