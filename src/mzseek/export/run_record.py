"""run.json: what made an annotation."""

import json
import math
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mzseek.export.writer import Settings
from mzseek.io import content_hash
from mzseek.version import __version__

KIND = "mzseek annotation"
VERSION = 1
_PACKAGES = ("numpy", "scipy", "rdkit")


def versions() -> dict[str, str]:
    """Return the versions of mzseek, of Python, and of packages that numbers depend on."""
    by_package = {"mzseek": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            by_package[package] = version(package)
        except PackageNotFoundError:
            continue
    return by_package


def run_record(
    settings: Settings,
    *,
    inputs: Mapping[Path, str | None],
    counts: Mapping[str, int],
    seconds: float,
    files: Iterable[str],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Return all that ``run.json`` holds.

    Parameters
    ----------
    settings : Settings
        With the options of the run and what was searched.
    inputs : mapping of Path to str or None
        SHA-256 of files of spectra when they were read; None to compute it now.
    counts : mapping of str to int
        As `Output.counts` gives them.
    seconds : float
    files : iterable of str
        Names of what was written.
    more : mapping
        Further entries by name.
    """
    searched = settings.searched
    return {
        "kind": KIND,
        "version": VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "counts": dict(counts),
        "files": sorted(files),
        "options": dict(settings.options),
        "inputs": [checksum(path, sha256) for path, sha256 in inputs.items()],
        "bundle": searched.get("model", {}),
        "database": searched.get("database", {}),
        "prior": searched.get("prior"),
        "versions": versions(),
        **more,
    }


def checksum(path: Path, sha256: str | None = None) -> dict[str, Any]:
    """Return path, size and SHA-256 of a file or folder; what cannot be read has none."""
    try:
        size = path.stat().st_size if path.is_file() else None
        return {"path": str(path), "bytes": size, "sha256": sha256 or content_hash(path)}
    except OSError:
        return {"path": str(path), "bytes": None, "sha256": None}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json``; numbers that are not finite become null, paths and the like texts."""
    path.write_text(json.dumps(_plain(record), indent=2, allow_nan=False) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, str):  # a number of numpy's
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
