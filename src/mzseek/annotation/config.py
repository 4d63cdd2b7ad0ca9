"""What an annotation depends on, as users name it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.annotation.features import Tolerance
from mzseek.annotation.hypotheses import Ions
from mzseek.annotation.prior import LEARNED
from mzseek.core.errors import AnnotationError, is_installed
from mzseek.io import StrPath

NO_PRIOR = "none"
# Names that users may take for databases, and how to make each.
_MADE_BY = {
    "hmdb": "mzseek database hmdb --out hmdb",
    "pubchem": "mzseek database pubchem FOLDER-WITH-CID-SMILES.gz --out pubchem",
}
LIBRARY = "library"  # the name of a database that is the library's own molecules


@dataclass(frozen=True)
class AnnotateConfig:
    """All that annotations depend on.

    Attributes
    ----------
    model : str or None
        Folder of a bundle; None for the one in the box.
    database : str or None
        Folder of a store, a file of candidates, ``library`` for the library's own molecules, or
        None for the molecules in the box.
    libraries : tuple of str
        Folders of reference spectra beside the bundle's.
    precursor, peaks : Tolerance
        Peaks as the model has them, if None.
    ions : Ions
    max_candidates : int
        Candidates of a feature that are scored, at the most.
    formulas : tuple of (str, str)
        Formulas that are known, by the feature's name.
    instrument : str or None
        Whose tolerances these are.
    objective : str
        What is decided for.
    coverage : float
        Of the prediction set.
    top : int
        Candidates that are shown of each feature.
    expected_in_database : float or None
        Expected share of features whose molecule is in the database; None: the default of the
        kind of database.
    prior : str or None
        What is counted in though no spectrum says it: ``learned``, or a table of weights; None for
        nothing.
    columns : tuple of (str, str)
        Columns of a list of candidates that the user named, by meaning (``smiles``, ``name``).
    remarks : tuple of str
        Lines for the end of the run, about how it was set up.
    strict : bool or None
        Only molecules of the database are candidates: one whose reference spectrum matches is
        reported in a note. None: for lists of single features, and not for databases.
    keep_mass_mismatches : bool
        Candidates listed for a feature are kept where their mass contradicts its precursor.
    """

    model: str | None = None
    database: str | None = None
    libraries: tuple[str, ...] = ()
    precursor: Tolerance = field(default_factory=Tolerance)
    peaks: Tolerance | None = None
    ions: Ions = field(default_factory=Ions)
    max_candidates: int = 5_000
    formulas: tuple[tuple[str, str], ...] = ()
    instrument: str | None = None
    objective: str = "hit"
    coverage: float = 0.9
    top: int = 100
    expected_in_database: float | None = None
    prior: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()
    strict: bool | None = None
    keep_mass_mismatches: bool = False


def annotate_config(
    *,
    model: StrPath | None = None,
    database: StrPath | None = None,
    library: StrPath | Sequence[StrPath] | None = None,
    prior: StrPath | None = None,
    smiles_column: str | None = None,
    name_column: str | None = None,
    **options: Any,
) -> AnnotateConfig:
    """A config of paths and names of columns as users give them."""
    columns = [
        (meaning, name)
        for meaning, name in (("smiles", smiles_column), ("name", name_column))
        if name
    ]
    if columns and (database is None or str(database) == LIBRARY or Path(str(database)).is_dir()):
        raise AnnotationError(
            f"--{columns[0][0]}-column {columns[0][1]}: there is no list of candidates (CSV, .xlsx "
            "and the like) with such a column; give one as --database"
        )
    libraries = [library] if isinstance(library, str | os.PathLike) else list(library or ())
    return AnnotateConfig(
        model=None if model is None else str(Path(str(model)).resolve()),
        database=_resolved(database),
        libraries=tuple(str(Path(str(each)).resolve()) for each in libraries),
        prior=_resolved_prior(prior),
        columns=tuple(columns),
        **options,
    )


def larger_databases() -> tuple[str, ...]:
    """Commands that make a larger database than the bundle's from what pip can install.

    PubChem is not among them: its files have to be downloaded by other means.
    """
    install = "" if is_installed("pyopenms") else "pip install pyopenms && "
    return (f"{install}{_MADE_BY['hmdb']}", "mzseek database build YOUR-LIST.csv --out mine")


def _resolved(database: StrPath | None) -> str | None:
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


def _resolved_prior(prior: StrPath | None) -> str | None:
    if prior is None or str(prior) == NO_PRIOR:
        return None
    if str(prior) == LEARNED:
        return LEARNED
    path = Path(str(prior))
    if not path.is_file():
        raise AnnotationError(
            f"{path}: no such file, expected {NO_PRIOR}, {LEARNED} or a table of weights for the "
            "prior"
        )
    return str(path.resolve())
