"""Registry of fingerprints: names and versions. Loads neither RDKit nor numpy, for the shell."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.core.errors import MoleculeError
from mzseek.core.registry import LazyRegistry, choose

if TYPE_CHECKING:
    from mzseek.chem.fingerprint_kinds import Fingerprint

_KINDS = "mzseek.chem.fingerprint_kinds"
FINGERPRINTS: "LazyRegistry[Fingerprint]" = LazyRegistry(
    {
        "morgan2": f"{_KINDS}:MORGAN2",
        "morgan4": f"{_KINDS}:MORGAN4",
        "morgan6": f"{_KINDS}:MORGAN6",
        "morgan8": f"{_KINDS}:MORGAN8",
        "rdkit": f"{_KINDS}:RDKIT",
        "rdkit4": f"{_KINDS}:RDKIT4",
        "map4": f"{_KINDS}:MAP4_PAIRS",
        "maccs": f"{_KINDS}:MACCS_KEYS",
        "morgan2-maccs": f"{_KINDS}:MORGAN2_MACCS",
    }
)
PAPER_FINGERPRINTS = ("morgan2", "morgan4", "morgan6", "morgan8", "rdkit", "map4")

# How often the bits of a kind have changed, from 1. The third MAP4 has the bits of the original
# calculator, as published; the second Morgan fingerprints of large radii do not depend on the order
# of atoms.
_VERSIONS = {"map4": 3, "morgan6": 2, "morgan8": 2}


def fingerprint_kind(name: str) -> "Fingerprint":
    """Return the kind of that name; an unknown one is refused with the list of those there are."""
    return choose(FINGERPRINTS, name, "fingerprint", MoleculeError)


def manifest_version(name: str) -> dict[str, int]:
    """Return the entry of a kind in a manifest's versions; none if its bits never changed.

    Examples
    --------
    >>> manifest_version("map4"), manifest_version("morgan2")
    ({'map4 fingerprints': 3}, {})
    """
    # Not the name alone, which may be that of a library: rdkit is.
    return {f"{name} fingerprints": _VERSIONS[name]} if name in _VERSIONS else {}


def check_version(
    name: str, manifest: Mapping[str, Any], where: Path, error: type[Exception], again: str
) -> None:
    """Raise `error` if the bits of a kind have changed since the folder `where` was written.

    `again` says what to do about it.

    Examples
    --------
    >>> check_version("map4", {"versions": {"rdkit": "2025.3"}}, Path("old"), ValueError, "again!")
    Traceback (most recent call last):
    ...
    ValueError: old: has map4 fingerprints of version 1, expected 3: other bits are set; again!
    """
    versions = manifest.get("versions")
    version = versions.get(f"{name} fingerprints", 1) if isinstance(versions, dict) else 1
    expected = _VERSIONS.get(name, 1)
    if version != expected:
        raise error(
            f"{where}: has {name} fingerprints of version {str(version)[:20]}, expected "
            f"{expected}: other bits are set; {again}"
        )
