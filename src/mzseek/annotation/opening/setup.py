"""What answers depend on, as users name it: plain data that travels to other processes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mzseek.annotation.answering import Wanted
from mzseek.annotation.asking.ions import Ions
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.prior import LEARNED
from mzseek.errors import AnnotationError
from mzseek.files import StrPath

NO_PRIOR = "none"
_MADE_BY_NAME = ("hmdb", "pubchem")  # commands of `mzseek database` that get their lists themselves
LIBRARY = "library"  # the name of a database that is the library's own molecules


@dataclass(frozen=True)
class Setup:
    """All that answers depend on.

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
    most : int
        Candidates of a feature that are scored, at the most.
    formulas : tuple of (str, str)
        Formulas that are known, by the feature's name.
    instrument : str or None
        Whose tolerances these are.
    wanted : Wanted
    prior : str or None
        What is counted in though no spectrum says it: ``learned``, or a table of weights; None for
        nothing.
    strict : bool or None
        Only molecules of the database are candidates: one whose reference spectrum matches is
        reported in a note. None: for lists of single features, and not for databases.
    """

    model: str | None = None
    database: str | None = None
    libraries: tuple[str, ...] = ()
    precursor: Tolerance = field(default_factory=Tolerance)
    peaks: Tolerance | None = None
    ions: Ions = field(default_factory=Ions)
    most: int = 5_000
    formulas: tuple[tuple[str, str], ...] = ()
    instrument: str | None = None
    wanted: Wanted = field(default_factory=Wanted)
    prior: str | None = None
    strict: bool | None = None


def setup_of(
    *,
    model: StrPath | None = None,
    database: StrPath | None = None,
    library: StrPath | Sequence[StrPath] | None = None,
    prior: StrPath | None = None,
    **options: Any,
) -> Setup:
    """A setup of paths as users give them."""
    libraries = [library] if isinstance(library, str | os.PathLike) else list(library or ())
    return Setup(
        model=None if model is None else str(Path(str(model)).resolve()),
        database=_resolved(database),
        libraries=tuple(str(Path(str(each)).resolve()) for each in libraries),
        prior=_resolved_prior(prior),
        **options,
    )


def _resolved(database: StrPath | None) -> str | None:
    if database is None or str(database) == LIBRARY:
        return None if database is None else LIBRARY
    path = Path(str(database))
    if not path.exists():
        first = f"; make it first: mzseek database {path} --out {path}"
        raise AnnotationError(
            f"{path}: no such file or folder, expected a database, or a list of candidates"
            f"{first if str(path) in _MADE_BY_NAME else ''}"
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
