"""Folders that mzseek makes, and may therefore replace."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mzseek.errors import DatasetError

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


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}
