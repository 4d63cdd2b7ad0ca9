"""Settings of an annotation, declared once.

The command line, `mzseek.annotate`, ``run.json`` and the check of ``--resume`` all read the fields
of `AnnotateConfig`. Nothing heavy is imported here, since ``mzseek annotate --help`` needs it.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import AnnotationError, is_installed
from mzseek.core.registry import check_name

if TYPE_CHECKING:
    from mzseek.annotation.features import Tolerance
    from mzseek.annotation.hypotheses import Ions
    from mzseek.annotation.reading import Grouping

GROUPINGS = ("id", "precursor", "none")
INSTRUMENT_NAMES = ("orbitrap", "qtof", "fticr", "ion-trap")
LEARNED_PRIOR, NO_PRIOR = "learned", "none"
LIBRARY = "library"  # the name of a database that is the library's own molecules
# Names that users may take for databases, and how to make each.
_MADE_BY = {
    "hmdb": "mzseek database hmdb --out hmdb",
    "pubchem": "mzseek database pubchem FOLDER-WITH-CID-SMILES.gz --out pubchem",
}


def _setting(default: Any, meaning: str, **more: Any) -> Any:
    return field(default=default, metadata={"meaning": meaning, **more})


@dataclass(frozen=True)
class AnnotateConfig:
    """All settings that annotations depend on, as users write them.

    Fields with a ``meaning`` are options of the command line and arguments of `mzseek.annotate`.
    Paths become absolute, single values of ``library`` and ``adduct`` tuples, and a table or
    mapping of ``formulas`` pairs. The others say where settings come from.

    Attributes
    ----------
    formulas_path : str or None
        The table that ``formulas`` were read from.
    instrument_from_files : bool
        Whether ``instrument`` was taken from the files: its precursor tolerance then is widened
        where a precursor is written with few decimals.
    remarks : tuple of str
        Lines for the end of the run about where settings come from.
    explain : int
        For how many candidates of a feature, in the order of their ranks, peaks are annotated and
        structures are laid out with the scoring; others are on demand.

    Raises
    ------
    AnnotationError
        A value is unknown, out of range, or names a file that is not there.

    Examples
    --------
    >>> AnnotateConfig(adduct="[M+H]+", ppm=5).adduct
    ('[M+H]+',)
    """

    database: str | None = _setting(
        None,
        "Candidates: a database (`mzseek database build`), a list of molecules (CSV, TSV, SMILES, "
        "SDF, Parquet, .xlsx, MetFrag's .psv; with a column feature: a list for each), or library "
        "for its own molecules. The small one that comes with mzseek by default.",
    )
    library: tuple[str, ...] = _setting(
        None,
        "Your reference spectra (`mzseek library build`), for matches and analogs.",
        option=list[Path],
    )
    model: str | None = _setting(
        None, "A bundle; the one that comes with mzseek by default.", option=Path | None
    )
    objective: str = _setting(
        "hit", "What the first candidate is decided for: hit, tanimoto, cosine, bits or f1."
    )
    adduct: tuple[str, ...] = _setting(
        None,
        "Adduct: only these are tried; with a + before it, also. Several times.",
        option=list[str],
    )
    ppm: str | float | None = _setting(
        None,
        "Tolerance of precursors: ppm, or 0.01Da; by default 10, or as wide as a precursor is "
        "coarse.",
        option=str | None,
    )
    peak_ppm: str | float | None = _setting(
        None, "Tolerance of peaks; that of the model by default.", option=str | None
    )
    instrument: str | None = _setting(
        None,
        f"Tolerances by instrument, where not given: {', '.join(INSTRUMENT_NAMES)}. By default "
        "qtof, where all files state such an instrument.",
    )
    coverage: float = _setting(0.9, "Of the prediction set: how often it should hold the molecule.")
    expected_in_database: float | None = _setting(
        None,
        "Share of your features whose molecule you expect in the database; by default 0.07 to "
        "0.17, by its size.",
    )
    strict: bool | None = _setting(
        None,
        "Only molecules of the database are candidates, also where a reference spectrum of another "
        "one matches; by default for lists of single features.",
    )
    keep_mass_mismatches: bool = _setting(
        False, "Keep candidates listed for a feature whose mass contradicts its precursor."
    )
    formulas: tuple[tuple[str, str], ...] = _setting(
        None, "Table of feature and formula, where it is known.", option=Path | None
    )
    prior: str = _setting(
        NO_PRIOR,
        "Apply a prior that no spectrum supports: learned (which molecules people measure), or a "
        "table of SMILES or InChIKey and weight. In a column of its own.",
    )
    group: str = _setting("id", "Spectra are one feature by id, by precursor and time, or none.")
    rt_window: float = _setting(10.0, "Seconds, for --group precursor.")
    rt_unit: str | None = _setting(
        None, "Unit of retention times that the file states without one: min or s."
    )
    max_candidates: int = _setting(5_000, "Candidates of a feature, at most: the nearest by mass.")
    top: int = _setting(100, "Candidates of a feature that are shown.")
    smiles_column: str | None = _setting(None, "Column with SMILES, in a list of molecules.")
    name_column: str | None = _setting(None, "Column with names, in a list of molecules.")
    formulas_path: str | None = None
    instrument_from_files: bool = False
    remarks: tuple[str, ...] = ()
    explain: int = 0

    def __post_init__(self) -> None:
        """Bring values into one form, and refuse those that cannot be used."""
        put = object.__setattr__
        for name in ("library", "adduct"):
            value = getattr(self, name)
            several = [value] if isinstance(value, str | os.PathLike) else value or ()
            put(self, name, tuple(map(str, several)))
        put(self, "library", tuple(str(Path(path).resolve()) for path in self.library))
        put(self, "model", None if self.model is None else str(Path(self.model).resolve()))
        put(self, "database", _resolved_database(self.database))
        put(self, "prior", _resolved_prior(self.prior))
        self._read_formulas()
        self._check()

    def _read_formulas(self) -> None:
        from mzseek.annotation.features import normalise_name

        formulas: Any = self.formulas or ()
        if isinstance(formulas, str | os.PathLike):
            from mzseek.annotation.candidates import read_formulas

            object.__setattr__(self, "formulas_path", str(Path(formulas).resolve()))
            formulas = read_formulas(formulas)
        if isinstance(formulas, Mapping):
            formulas = formulas.items()
        pairs = tuple((normalise_name(str(name)), str(text)) for name, text in formulas)
        object.__setattr__(self, "formulas", pairs)

    def _check(self) -> None:
        from mzseek.decision import UTILITIES

        check_name(UTILITIES, self.objective, "objective", AnnotationError)
        for name in ("max_candidates", "top"):
            if getattr(self, name) < 1:
                raise AnnotationError(f"{name} is {getattr(self, name)}, expected 1 or more")
        columns = self.columns
        is_list = self.database not in (None, LIBRARY) and not Path(str(self.database)).is_dir()
        if columns and not is_list:
            meaning, column = next(iter(columns.items()))
            raise AnnotationError(
                f"--{meaning}-column {column}: there is no list of candidates (CSV, .xlsx and the "
                "like) with such a column; give one as --database"
            )
        _ = self.precursor_tolerance, self.peak_tolerance, self.ions, self.grouping

    @property
    def columns(self) -> dict[str, str]:
        """Columns of a list of candidates that the user named, by meaning."""
        named = {"smiles": self.smiles_column, "name": self.name_column}
        return {meaning: column for meaning, column in named.items() if column}

    @property
    def precursor_tolerance(self) -> "Tolerance":
        """Tolerance of precursors: what is given, the instrument's, or 10 ppm."""
        from mzseek.annotation.hypotheses import tolerances

        return tolerances(
            self.instrument, self.ppm, self.peak_ppm, is_strict=not self.instrument_from_files
        )[0]

    @property
    def peak_tolerance(self) -> "Tolerance | None":
        """Tolerance of peaks; None for that of the model."""
        from mzseek.annotation.hypotheses import tolerances

        return tolerances(self.instrument, self.ppm, self.peak_ppm)[1]

    @property
    def ions(self) -> "Ions":
        """Adducts that are tried instead of, or beside, those of the file."""
        from mzseek.annotation.hypotheses import Ions

        return Ions.parse(self.adduct)

    @property
    def grouping(self) -> "Grouping":
        """How spectra become features."""
        from mzseek.annotation.reading import Grouping

        return Grouping(self.group, self.precursor_tolerance, self.rt_window, self.rt_unit)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that users can make, as JSON has them; tolerances as they were used.

        Examples
        --------
        >>> AnnotateConfig(peak_ppm="17").to_dict()["peak_ppm"]
        '17 ppm'
        """
        peaks = self.peak_tolerance
        return {setting.name: getattr(self, setting.name) for setting in SETTINGS} | {
            "library": list(self.library),
            "adduct": list(self.adduct),
            "formulas": [list(pair) for pair in self.formulas],
            "ppm": str(self.precursor_tolerance),
            "peak_ppm": None if peaks is None else str(peaks),
        }

    def paths(self) -> list[Path]:
        """Return all files and folders that the settings name: they must not be written over."""
        database = None if self.database == LIBRARY else self.database
        prior = None if self.prior in (LEARNED_PRIOR, NO_PRIOR) else self.prior
        named = (self.model, *self.library, database, prior, self.formulas_path)
        return [Path(path) for path in named if path]


SETTINGS: tuple["Field[Any]", ...] = tuple(
    setting for setting in fields(AnnotateConfig) if "meaning" in setting.metadata
)


def larger_databases() -> tuple[str, ...]:
    """Commands that make a larger database than the bundle's from what pip can install.

    PubChem is not among them: its files have to be downloaded by other means.
    """
    install = "" if is_installed("pyopenms") else "pip install pyopenms && "
    return (f"{install}{_MADE_BY['hmdb']}", "mzseek database build YOUR-LIST.csv --out mine")


def _resolved_database(database: Any) -> str | None:
    if database is None or str(database) == LIBRARY:
        return None if database is None else LIBRARY
    path = Path(str(database))
    if not path.exists():
        command = _MADE_BY.get(str(path))
        raise AnnotationError(
            f"{path}: no such file or folder, expected a database, or a list of candidates"
            f"{f'; make it first: {command}' if command else ''}"
        )
    return str(path.resolve())


def _resolved_prior(prior: Any) -> str:
    if prior is None or str(prior) in (NO_PRIOR, LEARNED_PRIOR):
        return NO_PRIOR if prior is None else str(prior)
    path = Path(str(prior))
    if not path.is_file():
        raise AnnotationError(
            f"{path}: no such file, expected {NO_PRIOR}, {LEARNED_PRIOR} or a table of "
            "weights for the prior"
        )
    return str(path.resolve())
