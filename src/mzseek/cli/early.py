"""A first look at what a command is given, before its libraries take seconds to load.

Whatever is refused here is refused by the rooms below in the same words; tests compare them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from typer.core import TyperCommand

from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.core.errors import (
    BundleError,
    CacheError,
    DatabaseError,
    DatasetError,
    InputError,
    LibraryError,
    MoleculeError,
    RunError,
)
from mzseek.core.registry import check_name

Function = TypeVar("Function", bound=Callable[..., None])
Look = Callable[[Path], None]


def early(**looks: Look) -> Callable[[Function], Function]:
    """Have options of a command looked at as they are written, one after the other."""

    def mark(function: Function) -> Function:
        function.early = looks  # type: ignore[attr-defined]
        return function

    return mark


def aliases(**names: str) -> Callable[[Function], Function]:
    """Accept former names of options that the help does not show (``most="max-candidates"``)."""

    def mark(function: Function) -> Function:
        function.aliases = {  # type: ignore[attr-defined]
            f"--{former.replace('_', '-')}": f"--{name}" for former, name in names.items()
        }
        return function

    return mark


class EarlyCommand(TyperCommand):
    """A command that looks before it leaps: typer takes a while to tell a path from a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Look at what is written, then take it for what it says."""
        former: dict[str, str] = getattr(self.callback, "aliases", {})
        if former:
            parts = [text.partition("=") for text in args]
            args = [former.get(name, name) + equals + value for name, equals, value in parts]
        looks: dict[str, Look] = getattr(self.callback, "early", {})
        if looks:
            written, _, _ = self.make_parser(ctx).parse_args(list(args))
            for name, look in () if written.get("help") else looks.items():
                values = written.get(name)
                for text in (values,) if isinstance(values, str) else values or ():
                    look(Path(text))
        return super().parse_args(ctx, args)


def look_for_prepared(folder: Path) -> None:
    """Refuse a folder that `mzseek prepare` has not made."""
    _look_for(folder, "prepared folder", "manifest.json", CacheError)


def look_for_run(folder: Path) -> None:
    """Refuse a folder that `mzseek train` has not made."""
    _look_for(folder, "run folder", "run.json", RunError)


def look_for_prior(folder: Path) -> None:
    """Refuse a folder that `mzseek train` has not made; ``uniform`` is none."""
    if str(folder) != "uniform":
        look_for_run(folder)


def look_for_database(folder: Path) -> None:
    """Refuse a folder that `mzseek database build` has not made."""
    _look_for(folder.resolve(), "molecule database", "manifest.json", DatabaseError)


def look_for_library(folder: Path) -> None:
    """Refuse a folder that `mzseek library build` has not made."""
    _look_for(folder, "spectral library", "manifest.json", LibraryError)


def look_for_bundle(folder: Path) -> None:
    """Refuse a folder that `mzseek model` has not made."""
    _look_for(folder, "model bundle", "manifest.json", BundleError)


def _look_for(folder: Path, kind: str, name: str, error: type[Exception]) -> None:
    if not folder.exists():  # the usual slip, told without a look at how files are read
        raise error(f"{folder}: is no {kind} (there is no such folder)")
    from mzseek.io.manifest import kind_of, why_not

    if not (folder / name).is_file() or (kind_of(folder) or kind) != kind:
        raise error(f"{folder}: {why_not(folder, kind)}")


def look_for_folder(folder: Path) -> None:
    """Refuse what is no folder."""
    if not folder.is_dir():
        what = "is a file, expected a folder" if folder.exists() else "no such folder"
        raise DatasetError(f"{folder}: {what}")


def look_for_file(path: Path) -> None:
    """Refuse what is not there."""
    if not path.exists():
        raise InputError(path, "no such file")


def look_at_fingerprint(name: Path | str) -> None:
    """Refuse a kind of fingerprint that is unknown."""
    check_name(FINGERPRINTS, str(name), "fingerprint", MoleculeError)
