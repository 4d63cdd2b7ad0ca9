"""Folders that mzseek makes, and may therefore replace."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mzseek.errors import DatasetError
from mzseek.files.source import content_hash

MANIFEST = "manifest.json"


def ensure_replaceable(out: Path, kind: str, sources: Iterable[Path]) -> None:
    """Refuse to replace anything that is not a folder of this kind, made by mzseek, untouched.

    Raises
    ------
    DatasetError
        ``out`` is a file, holds what mzseek did not write, or holds one of the sources.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise DatasetError(f"{out}: is a file, expected a folder to make")
    for source in sources:
        if source.resolve().is_relative_to(out.resolve()):
            raise DatasetError(f"{out}: holds the source {source.name}; name another --out")
    present = {path.name for path in out.iterdir()}
    if not present:
        return
    manifest = _manifest(out)
    if manifest.get("kind") != kind:
        raise DatasetError(f"{out}: exists and is no {kind}; name another --out")
    foreign = sorted(present - set(manifest.get("files", {})) - {MANIFEST})
    if foreign:
        raise DatasetError(f"{out}: holds {foreign[0]}, which is not its own; name another --out")


def check_files(
    folder: Path, files: Mapping[str, Mapping[str, Any]], error: type[Exception], remedy: str,
    *, checksums: bool = False,
) -> None:  # fmt: skip
    """Make sure that a folder's files are those of its manifest: there, as long, or as written.

    Parameters
    ----------
    folder : Path
    files : mapping of str to mapping
        Of the manifest: ``bytes`` and ``sha256`` by name.
    error : type of exception
        What is raised, in the words of the room that the folder belongs to.
    remedy : str
        What to do about it, such as "build it again".
    checksums : bool
        Read every file, too.
    """
    for name, facts in files.items():
        path = folder / name
        if not path.exists():
            raise error(f"{folder}: {name} is missing; {remedy}")
        size = path.stat().st_size
        if size != facts["bytes"]:
            raise error(
                f"{folder}: {name} has {size:,} bytes, expected {facts['bytes']:,}; {remedy}"
            )
        if checksums and content_hash(path) != facts["sha256"]:
            raise error(f"{folder}: {name} has changed; {remedy}")


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}
