"""Settings of an annotation, declared once.

The command line, `mzseek.annotate`, ``run.json`` and the check of ``--resume`` all read the fields
of `AnnotateConfig`. Nothing heavy is imported here, since ``mzseek annotate --help`` needs it.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mzseek.core.errors import AnnotationError, is_installed
from mzseek.core.registry import check_name

GROUPINGS = ("id", "precursor", "none")
TIME_UNITS = ("s", "min")
LEARNED_PRIOR, NO_PRIOR = "learned", "none"
AUTO, OFF = "auto", "off"
LIBRARY = "library"  # the name of a database that is the library's own molecules
# Names that users may take for databases, and how to make each.
_MADE_BY = {
    "hmdb": "mzseek database hmdb --out hmdb",
    "pubchem": "mzseek database pubchem FOLDER-WITH-CID-SMILES.gz --out pubchem",
}
_TOLERANCE = re.compile(r"\s*([0-9.eE+-]+)\s*(ppm|da|mda|)\s*", re.IGNORECASE)
_MAX_PPM, _MAX_MZ = 1000.0, 5.0
_MIDDLE_MZ, _COARSE = 200.0, 0.05  # m/z: wider tolerances are of low-resolution instruments
_MAX_WEIGHT = 100.0  # log-odds


@dataclass(frozen=True)
class Tolerance:
    """A tolerance, the larger of two: one that grows with m/z, and one that does not.

    Attributes
    ----------
    ppm : float
    least : float
        In m/z.
    strict : bool
        The user's own: not widened where a precursor is known less well.
    """

    ppm: float = 10.0
    least: float = 0.0
    strict: bool = False

    def __post_init__(self) -> None:
        """Refuse what no instrument has."""
        if not (0 <= self.ppm <= _MAX_PPM and 0 <= self.least <= _MAX_MZ):
            raise AnnotationError(
                f"the tolerance is {self}, expected 0 to {_MAX_PPM:g} ppm or 0 to {_MAX_MZ:g} Da"
            )
        if self.ppm == 0 and self.least == 0:
            raise AnnotationError("a tolerance of 0: nothing would be found")

    @classmethod
    def parse(cls, text: "str | float | Tolerance") -> "Tolerance":
        """Read a text: ``10``, ``10 ppm``, ``0.01 Da`` or ``5 mDa``; a number alone is in ppm.

        A tolerance that a user states is strict.

        Examples
        --------
        >>> Tolerance.parse("5 mDa")
        Tolerance(ppm=0.0, least=0.005, strict=True)
        >>> Tolerance.parse(7).of(100.0)
        0.0007
        """
        if isinstance(text, Tolerance):
            return text
        match = _TOLERANCE.fullmatch(str(text))
        try:
            value, unit = float(match[1] if match else ""), match[2].lower() if match else ""
        except ValueError:
            raise AnnotationError(
                f"tolerance {str(text)[:40]!r}: expected a number with ppm, Da or mDa"
            ) from None
        if unit in ("", "ppm"):
            return cls(ppm=value, strict=True)
        return cls(ppm=0.0, least=value * (1e-3 if unit == "mda" else 1.0), strict=True)

    def of(self, mz: float) -> float:
        """Half of the window around an m/z."""
        return max(mz * self.ppm * 1e-6, self.least)

    def __str__(self) -> str:
        terms = [f"{self.ppm:g} ppm"] if self.ppm else []
        return " or ".join([*terms, f"{self.least:g} Da"] if self.least else terms)


@dataclass(frozen=True)
class Instrument:
    """A kind of instrument.

    Attributes
    ----------
    precursor : Tolerance
    peaks : Tolerance or None
        None: as the model has them.
    fitted : bool
        Whether models are fitted on spectra of such instruments.
    """

    precursor: Tolerance
    peaks: Tolerance | None = None
    fitted: bool = True


INSTRUMENTS: Mapping[str, Instrument] = {
    # Of peaks that a fragment of the molecule explains, 98 % are within 5 ppm (1,500 Orbitrap
    # spectra of MassBank); the model's own tolerance ranks as well as a narrower one.
    "orbitrap": Instrument(Tolerance(5.0, strict=True)),
    # Likewise 92 % are within 20 ppm and 70 % within 10 (1,500 QTOF spectra of MassBank).
    "qtof": Instrument(Tolerance(20.0, strict=True), Tolerance(20.0, 0.001)),
    # Makers promise about 1 ppm; not measured, so that peaks are left as the model has them.
    "fticr": Instrument(Tolerance(3.0, strict=True)),
    # Of unit resolution: masses are told to a few tenths, and many molecules fit.
    "ion-trap": Instrument(Tolerance(0.0, 0.5, strict=True), Tolerance(0.0, 0.3), fitted=False),
}


@dataclass(frozen=True)
class Ions:
    """Ions that the user asks for.

    Attributes
    ----------
    only : tuple of str
        Tried for every feature of their mode, and no others; empty: as the file says.
    also : tuple of str
        Tried beside those of the file.
    """

    only: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @classmethod
    def parse(cls, names: Sequence[str]) -> "Ions":
        """Read names of ions: ``[M+Na]+`` is tried alone, ``+[M+K]+`` beside the usual ones.

        Examples
        --------
        >>> Ions.parse(["[M+H]+", "+[M+K]+"])
        Ions(only=('[M+H]+',), also=('[M+K]+',))
        """
        from mzseek.chem.adducts import parse_adduct

        only: list[str] = []
        also: list[str] = []
        for name in names:
            widens = name.strip().startswith("+[")
            parsed = parse_adduct(name.strip().removeprefix("+") if widens else name).name
            (also if widens else only).append(parsed)
        return cls(tuple(dict.fromkeys(only)), tuple(dict.fromkeys(also)))


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
        f"Tolerances by instrument, where not given: {', '.join(INSTRUMENTS)}. By default "
        "qtof, where all files state such an instrument.",
    )
    recalibrate: str = _setting(
        AUTO,
        "Estimate the mass error of each file from its peaks, and take it off where it is "
        "significant: auto or off.",
    )
    clean: str = _setting(
        AUTO,
        "Remove peaks that are no fragments (isotope peaks, side lobes, noise, peaks above the "
        "precursor) before scoring: auto or off.",
    )
    coverage: float = _setting(
        0.9,
        "Share of prediction sets that should contain the molecule, given that it is among the "
        "candidates.",
    )
    expected_in_database: float | None = _setting(
        None,
        "Share of your features whose molecule you expect in the database; by default 0.02 to "
        "0.05, by its size, and 0.08 for lists of single features.",
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
    scores: str | None = _setting(
        None,
        "Table of scores of other programs: a feature, a molecule, and a column for each score "
        "(higher is better). In columns of their own.",
        option=Path | None,
    )
    score_weight: tuple[str, ...] = _setting(
        None,
        "Weight of a score of --scores, as NAME=WEIGHT: log-odds for one standard deviation within "
        "a list; 1 by default.",
        option=list[str],
    )
    features: str | None = _setting(
        None,
        "Feature table of MZmine, MS-DIAL, Progenesis QI, MetaboScape or XCMS: its isotope "
        "patterns are used where spectra have no survey scan; annotate --out also writes it again "
        "with annotations joined.",
        option=Path | None,
    )
    group: str = _setting(
        "id",
        "Spectra are one feature by id, by precursor and time, none, or by any field of the "
        "records that names the molecule or sample (molecule_id): then of all files. Ions of one "
        "neutral mass, also of both polarities, are pooled.",
    )
    columns: tuple[str, ...] = _setting(
        None,
        "Columns of tables of spectra (Parquet, Arrow, CSV, TSV) that have other names than usual: "
        "mz=ms2_mzs,intensity=ms2_intensities,id=molecule_id,precursor=…,adduct=….",
        option=list[str],
    )
    rt_window: float = _setting(10.0, "Seconds, for --group precursor.")
    rt_unit: str | None = _setting(
        None, "Unit of retention times that the file states without one: min or s."
    )
    max_candidates: int = _setting(5_000, "Candidates of a feature, at most: the nearest by mass.")
    top: int = _setting(100, "Candidates of a feature that are shown.")
    class_confidence: float = _setting(
        0.7,
        "The compound class is named down to the deepest level (superclass, class, subclass) with "
        "at least this probability.",
    )
    smiles_column: str | None = _setting(None, "Column with SMILES, in a list of molecules.")
    name_column: str | None = _setting(None, "Column with names, in a list of molecules.")
    rank_formulas: bool = _setting(
        True, "Also rank the formulas that a feature may have, without a database."
    )
    elements: str = _setting(
        "CHNOPSFClBrI",
        "Elements of these formulas; with a + before them, beside the default ones: +Si,B,Se,Na,K.",
    )
    propose: int = _setting(
        0,
        "Propose up to so many structures that need be in no database, made of analogs and related "
        "molecules; in a table of their own.",
    )
    formulas_path: str | None = None
    instrument_from_files: bool = False
    remarks: tuple[str, ...] = ()
    explain: int = 0

    def __post_init__(self) -> None:
        """Bring values into one form, and refuse those that cannot be used."""
        put = object.__setattr__
        for name in ("library", "adduct", "score_weight"):
            value = getattr(self, name)
            several = [value] if isinstance(value, str | os.PathLike) else value or ()
            put(self, name, tuple(map(str, several)))
        put(self, "columns", _named_columns(self.columns))
        put(self, "library", tuple(str(Path(path).resolve()) for path in self.library))
        put(self, "model", None if self.model is None else str(Path(self.model).resolve()))
        put(self, "database", _resolved_database(self.database))
        put(self, "prior", _resolved_prior(self.prior))
        for name in ("scores", "features"):
            path = getattr(self, name)
            put(self, name, None if path is None else str(Path(path).resolve()))
        self._read_formulas()
        self._check()

    def _read_formulas(self) -> None:
        formulas: Any = self.formulas or ()
        if isinstance(formulas, str | os.PathLike):
            from mzseek.annotation.candidates import read_formulas

            object.__setattr__(self, "formulas_path", str(Path(formulas).resolve()))
            formulas = read_formulas(formulas)
        if isinstance(formulas, Mapping):
            formulas = formulas.items()
        if formulas:
            from mzseek.annotation.features import normalise_name

            formulas = ((normalise_name(str(name)), str(text)) for name, text in formulas)
        object.__setattr__(self, "formulas", tuple(formulas))

    def _check(self) -> None:
        from mzseek.decision import UTILITIES

        check_name(UTILITIES, self.objective, "objective", AnnotationError)
        if not self.group.strip():
            raise AnnotationError(f"group is empty, expected {', '.join(GROUPINGS)} or a field")
        if self.instrument is not None:
            check_name(INSTRUMENTS, self.instrument, "instrument", AnnotationError)
        check_name((AUTO, OFF), self.recalibrate, "recalibration", AnnotationError)
        check_name((AUTO, OFF), self.clean, "cleaning", AnnotationError)
        if self.rt_unit is not None:
            check_name(TIME_UNITS, self.rt_unit, "unit of retention times", AnnotationError)
        for name in ("max_candidates", "top"):
            if getattr(self, name) < 1:
                raise AnnotationError(f"{name} is {getattr(self, name)}, expected 1 or more")
        if not 0 < self.class_confidence <= 1:
            raise AnnotationError(
                f"class_confidence is {self.class_confidence:g}, expected above 0, at most 1"
            )
        if self.propose < 0:
            raise AnnotationError(f"propose is {self.propose}, expected 0 or more")
        if not self.rt_window >= 0:
            raise AnnotationError(
                f"retention times within {self.rt_window:g} s, expected 0 or more"
            )
        is_list = self.database not in (None, LIBRARY) and not Path(str(self.database)).is_dir()
        if self.list_columns and not is_list:
            meaning, column = next(iter(self.list_columns.items()))
            raise AnnotationError(
                f"--{meaning}-column {column}: there is no list of candidates (CSV, .xlsx and the "
                "like) with such a column; give one as --database"
            )
        if self.score_weight and not self.scores:
            raise AnnotationError(f"--score-weight {self.score_weight[0]}: there are no --scores")
        _ = self.precursor_tolerance, self.peak_tolerance, self.ions, self.score_weights
        _ = self.formula_elements

    @property
    def spectrum_columns(self) -> dict[str, str]:
        """Columns of tables of spectra that the user named, by what they hold."""
        return dict(pair.split("=", 1) for pair in self.columns)

    @property
    def list_columns(self) -> dict[str, str]:
        """Columns of a list of candidates that the user named, by meaning."""
        named = {"smiles": self.smiles_column, "name": self.name_column}
        return {meaning: column for meaning, column in named.items() if column}

    @cached_property
    def precursor_tolerance(self) -> Tolerance:
        """Tolerance of precursors: what is given, the instrument's, or 10 ppm."""
        if self.ppm is not None:
            return Tolerance.parse(self.ppm)
        if self.instrument is None:
            return Tolerance()
        tolerance = INSTRUMENTS[self.instrument].precursor
        return replace(tolerance, strict=False) if self.instrument_from_files else tolerance

    @cached_property
    def peak_tolerance(self) -> Tolerance | None:
        """Tolerance of peaks: what is given, the instrument's, or None for that of the model."""
        if self.peak_ppm is not None:
            return Tolerance.parse(self.peak_ppm)
        return None if self.instrument is None else INSTRUMENTS[self.instrument].peaks

    @property
    def is_coarse(self) -> bool:
        """Whether peaks are searched within a tolerance of no high-resolution instrument."""
        tolerance = self.peak_tolerance
        return tolerance is not None and tolerance.of(_MIDDLE_MZ) > _COARSE

    @cached_property
    def ions(self) -> Ions:
        """Adducts that are tried instead of, or beside, those of the file."""
        return Ions.parse(self.adduct)

    @cached_property
    def formula_elements(self) -> tuple[str, ...]:
        """Elements of formulas that are enumerated."""
        from mzseek.formulas.enumeration import parse_elements

        return parse_elements(self.elements)

    @cached_property
    def score_weights(self) -> dict[str, float]:
        """Weights of external scores, by name."""
        weights = {}
        for text in self.score_weight:
            name, _, value = text.rpartition("=")
            try:
                weights[name.strip()] = float(value)
            except ValueError:
                raise AnnotationError(
                    f"--score-weight {text[:40]}: expected NAME=WEIGHT, such as cfmid=0.5"
                ) from None
            if not name.strip() or not 0 <= weights[name.strip()] <= _MAX_WEIGHT:
                raise AnnotationError(
                    f"--score-weight {text[:40]}: expected a name and a weight from 0 to "
                    f"{_MAX_WEIGHT:g}"
                )
        return weights

    @cached_property
    def formula_of(self) -> dict[str, str]:
        """Formulas that are known, by the name of the feature."""
        return dict(self.formulas)

    @property
    def instrument_notes(self) -> tuple[str, ...]:
        """What every annotation about spectra of the instrument should say."""
        if self.instrument is None or INSTRUMENTS[self.instrument].fitted:
            return ()
        return (
            f"the model was not fitted on spectra of {self.instrument} instruments: probabilities "
            "are unsure",
        )

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
            "score_weight": list(self.score_weight),
            "columns": list(self.columns),
            "formulas": [list(pair) for pair in self.formulas],
            "ppm": str(self.precursor_tolerance),
            "peak_ppm": None if peaks is None else str(peaks),
        }

    def paths(self) -> list[Path]:
        """Return all files and folders that the settings name: they must not be written over."""
        database = None if self.database == LIBRARY else self.database
        prior = None if self.prior in (LEARNED_PRIOR, NO_PRIOR) else self.prior
        tables = self.formulas_path, self.scores, self.features
        named = (self.model, *self.library, database, prior, *tables)
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


def _named_columns(columns: Any) -> tuple[str, ...]:
    """Return NAME=COLUMN for each column, given as such (several in a text) or as a mapping."""
    if not columns:
        return ()
    from mzseek.spectra.formats.tables import parse_columns

    if isinstance(columns, Mapping):
        columns = [f"{role}={name}" for role, name in columns.items()]
    return tuple(f"{role}={name}" for role, name in parse_columns(columns).items())


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
