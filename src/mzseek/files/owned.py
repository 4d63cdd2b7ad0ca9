"""Folders that mzseek makes, and may therefore replace."""

from collections.abc import Callable, Iterable
from pathlib import Path

from mzseek.errors import DatasetError
from mzseek.files.json_file import read_object
from mzseek.files.manifest import MANIFEST, kind_of


def ensure_replaceable(
    out: Path,
    kind: str,
    sources: Iterable[Path],
    is_leftover: Callable[[str], bool] = lambda name: False,
) -> None:
    """Refuse to replace anything that is not a folder of this kind, made by mzseek, untouched.

    Parameters
    ----------
    out : Path
    kind : str
    sources : iterable of Path
    is_leftover : callable of str
        Whether a file that the manifest does not list is what a killed process has left.

    Raises
    ------
    DatasetError
        ``out`` is a file, holds what mzseek did not write, holds one of the sources, or lies in
        one of them.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise DatasetError(f"{out}: is a file, expected a folder to make")
    for source in sources:
        if source.resolve().is_relative_to(out.resolve()):
            raise DatasetError(f"{out}: holds the source {source.name}; name another --out")
        if out.resolve().is_relative_to(source.resolve()):
            raise DatasetError(f"{out}: lies in the source {source}; name another --out")
    present = {path.name for path in out.iterdir()}
    if not present:
        return
    try:
        manifest = read_object(out / MANIFEST, DatasetError) if MANIFEST in present else {}
    except DatasetError as error:
        raise DatasetError(
            f"{out}: exists and is no {kind} ({error}); name another --out"
        ) from None
    if manifest.get("kind") != kind:
        other = kind_of(out)
        hint = f" (it is a {other})" if other else ""
        raise DatasetError(f"{out}: exists and is no {kind}{hint}; name another --out")
    files = manifest.get("files")
    own = {MANIFEST, *(files if isinstance(files, dict) else ())}
    foreign = [
        name
        for name in sorted(present - own)
        if not name.startswith(f".{MANIFEST}.") and not is_leftover(name)
    ]
    if foreign:
        raise DatasetError(f"{out}: holds {foreign[0]}, which is not its own; name another --out")
