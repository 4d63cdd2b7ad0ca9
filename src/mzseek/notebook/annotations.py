"""Annotate in a notebook; show and save the results."""

import csv
import inspect
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.annotator import AnnotationRun, Annotator, config_for
from mzseek.annotation.config import SETTINGS, AnnotateConfig
from mzseek.annotation.feature_tables import same_feature
from mzseek.annotation.reading import spectra_source
from mzseek.bundle import Bundle
from mzseek.core.errors import AnnotationError, InputError
from mzseek.core.text import Table, Tabular
from mzseek.export.job import run_settings
from mzseek.export.output import Output
from mzseek.export.tables import candidate_values, free_texts, summary_values
from mzseek.export.writer import Settings
from mzseek.io import StrPath
from mzseek.parallel import Engine, engine_named

_SHOWN_NAMES = 5
# Label in messages and results of candidates that were given as objects.
IN_MEMORY = "the candidates given"


class Annotations(Tabular, Sequence[Annotation]):
    """Annotations of features, in the order of the features.

    ``annotations[0]`` is the first, ``annotations["17"]`` that of the feature with this id.

    Parameters
    ----------
    run : AnnotationRun
        Whose annotations are taken, to the end.
    skipped : list of (str, str)
        That the run adds where and why to, for each spectrum that is skipped.

    Attributes
    ----------
    skipped : list of (str, str)
    metadata : mapping
        What was searched: model, database, libraries; and the prior, if one was applied.
    notes : tuple of str
        Remarks on all features together.
    """

    def __init__(self, run: AnnotationRun, skipped: list[tuple[str, str]]) -> None:
        self._run, self.skipped = run, skipped
        self._annotations = tuple(run)
        self.metadata, self.notes = run.annotator.metadata(), tuple(run.remarks())
        config, paths = run.annotator.config, run.features.source.paths
        self._settings = run_settings(
            run.annotator, Settings(title="annotations", read=(*paths, *config.paths())), paths
        )
        if run.annotator.source.label == IN_MEMORY:  # whose file is gone by now
            options = {**self._settings.options, "database": IN_MEMORY}
            self._settings = replace(self._settings, options=options)
        by_name = {a.feature.name: a for a in reversed(self._annotations)}
        # Names as they are come before names by value, of which "007" is one of "7".
        self._by_name = {same_feature(name): a for name, a in by_name.items()} | by_name

    def __len__(self) -> int:
        return len(self._annotations)

    def __getitem__(self, index: Any) -> Any:
        """Return the annotation at an index (int), those of a slice, or that of a feature (str).

        Raises
        ------
        KeyError
            No feature has this id; the message names some that there are.
        """
        if not isinstance(index, str):
            return self._annotations[index]
        annotation = self._by_name.get(index) or self._by_name.get(same_feature(index))
        if annotation is None:
            names = ", ".join(repr(name) for name in self.features[:_SHOWN_NAMES])
            more = " …" if len(self) > _SHOWN_NAMES else ""
            raise KeyError(f"no feature is called {index!r}; there are {names or 'none'}{more}")
        return annotation

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item in self._by_name or same_feature(item) in self._by_name
        return item in self._annotations

    @property
    def features(self) -> list[str]:
        """Ids of the features, in their order."""
        return [annotation.feature.name for annotation in self._annotations]

    def to_frame(self) -> Any:
        """Return a data frame with one row a candidate: see `candidates`."""
        return self.candidates().to_frame()

    def candidates(self) -> Table:
        """Return one row a candidate, with the columns of ``candidates.tsv``.

        ``probability`` is that of the candidate if the molecule is in the database, ``confidence``
        that of the candidate in any case; of rank 1 it is the feature's. ``level`` stands in the
        row of rank 1 only, which it is about.
        """
        return _table(
            candidate_values(annotation, candidate, rank)
            for annotation in self._annotations
            for rank, candidate in enumerate(annotation.ranked, 1)
        )

    def to_table(self) -> Table:
        """Return one row a feature, with the columns of ``summary.tsv``."""
        return _table(map(summary_values, self._annotations))

    def save(self, path: StrPath, *, force: bool = False) -> Path:
        """Write a folder, or a file in the format of its suffix (`mzseek.export.SUFFIXES`).

        Parameters
        ----------
        path : path
        force : bool
            Replace what is there even if annotate has not written it, or it was changed since.

        Raises
        ------
        RunError
            What is there would be lost, or was read to make these annotations.
        """
        target = Path(path)
        with Output(target, self._settings, force=force) as output:
            for where, reason in self.skipped:
                output.skipped(where, reason)
            for annotation in self._annotations:
                output.write(annotation)
            inputs = dict.fromkeys(self._run.features.source.paths)
            output.finish(records=self._run.records, inputs=inputs, more=self._run.metadata())
        return target

    def __repr__(self) -> str:
        return f"Annotations({len(self):,} features, {len(self.skipped):,} spectra skipped)"


def _table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return rows of equal columns as a table; several texts of a cell as one."""
    listed = list(rows)
    return Table(
        {
            name: [
                free_texts(value) if isinstance(value := row[name], tuple) else value
                for row in listed
            ]
            for name in (listed[0] if listed else ())
        }
    )


def load_model(path: StrPath | None = None) -> Bundle:
    """Open a model (a bundle of `mzseek model build`); the one that comes with mzseek by default.

    Examples
    --------
    >>> len(load_model().library) > 10_000
    True
    """
    return Bundle.open(path)


def annotate(
    spectra: Any,
    database: Any = None,
    library: Any = (),
    model: Any = None,
    objective: str = "hit",
    *,
    jobs: int | None = None,
    engine: str | Engine = "local",
    address: str | None = None,
    **settings: Any,
) -> Annotations:
    """Find the molecules behind spectra: ranked, with reasons and a confidence.

    Parameters
    ----------
    spectra : path, paths, Spectrum, matchms spectrum, or iterable of spectra
    jobs : int, optional
        Processes; all cores by default.
    engine : str or Engine
        ``local``, or ``ray`` for a Ray cluster, whose workers must reach all files by their paths.
    address : str, optional
        Of the cluster; it is started on this machine by default.
    database : path, Database, pandas.DataFrame or iterable of str, optional
        Also a data frame with the columns of a list of molecules, or SMILES.
    library : path, Library, or several of them
    model : path, or what `load_model` returns
    formulas : path or mapping of str to str
    {settings}

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
    skipped = list[tuple[str, str]]()
    settings |= {
        "library": _folders(library),
        "model": getattr(model, "folder", model),
        "objective": objective,
    }
    with _database_path(database) as path:
        config = AnnotateConfig(database=None if path is None else str(path), **settings)
        source = spectra_source(spectra, config.spectrum_columns)
        config = config_for(config, source)
        try:
            annotator = Annotator(config)
        except InputError as error:
            if error.where.endswith(IN_MEMORY):
                raise AnnotationError(f"{IN_MEMORY}: {error.reason}") from error
            raise
        if annotator.source.label == IN_MEMORY:
            _forget_folder(annotator)
        if isinstance(engine, str):
            engine = engine_named(engine, jobs, address)
        run = annotator.run(source, skipped=skipped, engine=engine)
        annotations = Annotations(run, skipped)
    for line in run.warnings():
        warnings.warn(line, stacklevel=2)
    return annotations


def _describe_settings() -> None:
    """Give `annotate` the settings of `AnnotateConfig` as arguments, with their meanings."""
    known = inspect.signature(annotate).parameters
    parameters = [known[name] for name in ("spectra", "database", "library", "model", "objective")]
    keyword = inspect.Parameter.KEYWORD_ONLY
    others = [setting for setting in SETTINGS if setting.name not in known]
    parameters += [
        inspect.Parameter(setting.name, keyword, default=setting.default, annotation=setting.type)
        for setting in others
    ]
    annotate.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*parameters, *(known[name] for name in ("jobs", "engine", "address"))],
        return_annotation=Annotations,
    )
    lines = [f"{setting.name}\n        {setting.metadata['meaning']}" for setting in SETTINGS]
    if annotate.__doc__:
        annotate.__doc__ = annotate.__doc__.replace("{settings}", "\n    ".join(lines))


def _folders(library: Any) -> Any:
    """Return paths of libraries; an opened one stands for its folder."""
    if library is None or isinstance(library, str | os.PathLike):
        return library
    several = library if isinstance(library, list | tuple) else [library]
    return [getattr(item, "folder", item) for item in several]


def _forget_folder(annotator: Annotator) -> None:
    """Forget the path of a file that will be gone."""
    folder = f"{Path(str(annotator.config.database)).parent}{os.sep}"
    annotator.skipped_candidates[:] = [
        (where.replace(folder, ""), reason) for where, reason in annotator.skipped_candidates
    ]
    annotator.source.base_metadata["path"] = IN_MEMORY  # type: ignore[attr-defined]


@contextmanager
def _database_path(database: Any) -> Iterator[StrPath | None]:
    """Open the path of a database; write candidates in memory to a temporary file.

    So columns, features and unreadable molecules are dealt with as those of a file.
    """
    if database is None or isinstance(database, str | os.PathLike):
        yield database
    elif hasattr(database, "by_mass"):  # an opened Database
        yield database.folder
    else:
        with TemporaryDirectory(prefix="mzseek-") as folder:
            path = Path(folder, IN_MEMORY)
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


_describe_settings()
