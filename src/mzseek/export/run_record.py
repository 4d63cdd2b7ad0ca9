"""run.json: what made an annotation."""

import json
import math
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mzseek.io import content_hash
from mzseek.version import __version__

KIND = "mzseek annotation"
VERSION = 1
_PACKAGES = ("numpy", "scipy", "rdkit")


def checksums(paths: Iterable[Path] | Mapping[Path, str]) -> list[dict[str, Any]]:
    """Path, size and SHA-256 of files and folders; what cannot be read any more has none.

    A mapping gives the SHA-256 that each had when it was read.
    """
    known = paths if isinstance(paths, Mapping) else {}
    return [_checksum(path, known.get(path)) for path in paths]


def _checksum(path: Path, sha256: str | None) -> dict[str, Any]:
    try:
        size = path.stat().st_size if path.is_file() else None
        return {"path": str(path), "bytes": size, "sha256": sha256 or content_hash(path)}
    except OSError:
        return {"path": str(path), "bytes": None, "sha256": None}


def versions() -> dict[str, str]:
    """Of mzseek, of Python, and of what numbers depend on."""
    found = {"mzseek": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def run_facts(
    *,
    options: Mapping[str, Any],
    inputs: Iterable[Path] | Mapping[Path, str],
    bundle: Mapping[str, Any],
    database: Mapping[str, Any],
    counts: Mapping[str, int],
    seconds: float,
    files: Iterable[str] = (),
    prior: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All that ``run.json`` holds.

    Parameters
    ----------
    options : mapping
        Of the run, as they were used.
    inputs : iterable of Path, or mapping of Path to str
        Files of spectra, candidates, libraries: their checksums, where not given, are computed.
    bundle, database : mapping
        Name, version, checksum: as their rooms describe them.
    counts : mapping of str to int
        As `Output.counts` gives them.
    seconds : float
    files : iterable of str
        Names of what was written.
    prior : mapping, optional
        That probabilities have counted in, and how it is read.
    more : mapping, optional
        Further facts by name.
    """
    return {
        "kind": KIND,
        "version": VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "counts": dict(counts),
        "files": sorted(files),
        "options": dict(options),
        "inputs": checksums(inputs),
        "bundle": dict(bundle),
        "database": dict(database),
        "prior": None if prior is None else dict(prior),
        "versions": versions(),
        **(more or {}),
    }


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Write ``run.json``; numbers that are not finite are null, paths and the like are texts."""
    path.write_text(json.dumps(_plain(facts), indent=2, allow_nan=False) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    """Plain data that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if hasattr(value, "item") and not isinstance(value, str):  # a number of numpy's
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
