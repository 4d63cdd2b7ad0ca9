"""A first look at what a command is given, before its libraries take seconds to load.

Whatever is refused here is refused by the rooms below in the same words; tests compare them.
"""

from pathlib import Path

from mzseek.cli.options import FINGERPRINT_NAMES
from mzseek.errors import (
    CacheError,
    DatabaseError,
    DatasetError,
    InputError,
    MoleculeError,
    RunError,
)

_MANIFEST = "manifest.json"
_RUN = "run.json"


def look_for_prepared(folder: Path) -> None:
    """Refuse a folder that `mzseek prepare` has not made."""
    if not (folder / _MANIFEST).exists():
        raise CacheError(f"{folder}: is no prepared folder ({_MANIFEST} is missing)")


def look_for_run(folder: Path) -> None:
    """Refuse a folder that `mzseek train` has not made."""
    if not (folder / _RUN).is_file():
        raise RunError(f"{folder}: is no run folder ({_RUN} is missing)")


def look_for_database(folder: Path) -> None:
    """Refuse a folder that `mzseek database build` has not made."""
    folder = folder.resolve()
    if not (folder / _MANIFEST).is_file():
        raise DatabaseError(f"{folder}: is no molecule database ({_MANIFEST} is missing)")


def look_for_folder(folder: Path) -> None:
    """Refuse what is no folder."""
    if not folder.is_dir():
        what = "is a file, expected a folder" if folder.exists() else "no such folder"
        raise DatasetError(f"{folder}: {what}")


def look_for_file(path: Path) -> None:
    """Refuse what is not there."""
    if not path.exists():
        raise InputError(path, "no such file")


def look_at_fingerprint(name: str) -> None:
    """Refuse a kind of fingerprint that is unknown."""
    known = FINGERPRINT_NAMES.split()
    if name not in known:
        raise MoleculeError(f"fingerprint {name!r} is unknown, expected one of {', '.join(known)}")
