"""Sources that must stay as they are while they are read."""

from collections.abc import Iterable
from pathlib import Path

from mzseek.errors import InputError
from mzseek.files.source import content_hash, files_below

_Stamp = tuple[tuple[str, int, int, int, int], ...]


class SteadySources:
    """Files and folders, with the hashes that they had when work on them began.

    Parameters
    ----------
    paths : iterable of Path

    Attributes
    ----------
    hashes : dict of Path to str
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._stamps = {path: _stamp(path) for path in paths}  # before their content is read
        self.hashes = {path: _hash(path) for path in self._stamps}

    def ensure_unchanged(self) -> None:
        """Refuse what was made of sources that have changed since: it would be of neither.

        Content is read once more only where size, time or place of a file say that it may differ.

        Raises
        ------
        InputError
            One has changed, or is gone.
        """
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp and _hash(path) != self.hashes[path]:
                raise InputError(path, "has changed while it was read; run the command again")


def _stamp(path: Path) -> _Stamp:
    try:
        return tuple(
            (str(file), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
            for file in (files_below(path) if path.is_dir() else [path])
            for facts in [file.stat()]
        )
    except FileNotFoundError as error:
        raise InputError(path, "no such file") from error


def _hash(path: Path) -> str:
    try:
        return content_hash(path)
    except FileNotFoundError as error:
        raise InputError(path, "no such file") from error
