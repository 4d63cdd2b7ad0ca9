"""The fingerprints by name, and where the code of each stands: one line each, without RDKit."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mzseek.errors import MoleculeError
from mzseek.registry import LazyRegistry, choose

if TYPE_CHECKING:
    from mzseek.chem.fingerprinting.kinds import Fingerprint

_HERE = "mzseek.chem.fingerprinting.kinds"

FINGERPRINTS: "LazyRegistry[Fingerprint]" = LazyRegistry(
    {
        "morgan2": f"{_HERE}:MORGAN2",
        "morgan4": f"{_HERE}:MORGAN4",
        "morgan6": f"{_HERE}:MORGAN6",
        "morgan8": f"{_HERE}:MORGAN8",
        "rdkit": f"{_HERE}:RDKIT",
        "rdkit4": f"{_HERE}:RDKIT4",
        "map4": f"{_HERE}:MAP4_PAIRS",
        "maccs": f"{_HERE}:MACCS_KEYS",
        "morgan2-maccs": f"{_HERE}:MORGAN2_MACCS",
    }
)
OF_THE_PAPER = ("morgan2", "morgan4", "morgan6", "morgan8", "rdkit", "map4")

# How often the bits of a kind have changed, from 1. The second MAP4 is the published one; the
# second Morgan fingerprints of large radii do not depend on the order of atoms.
_VERSIONS = {"map4": 2, "morgan6": 2, "morgan8": 2}


def fingerprint_kind(name: str) -> "Fingerprint":
    """Kind of that name; an unknown one is refused with the list of those there are."""
    return choose(FINGERPRINTS, name, "fingerprint", MoleculeError)


def kept_version(name: str) -> dict[str, int]:
    """What a manifest's versions say of a kind; nothing of one whose bits never changed.

    Examples
    --------
    >>> kept_version("map4"), kept_version("morgan2")
    ({'map4 fingerprints': 2}, {})
    """
    return {_kept_as(name): _VERSIONS[name]} if name in _VERSIONS else {}


def check_version(
    name: str, manifest: Mapping[str, Any], where: Path, error: type[Exception], again: str
) -> None:
    """Refuse rows of a kind whose bits have changed since: two sorts of them tell nothing together.

    Parameters
    ----------
    name : str
        The kind.
    manifest : mapping
        What the folder says of itself.
    where : Path
        The folder.
    error : type of exception
    again : str
        What to do about it.

    Examples
    --------
    >>> check_version("map4", {"versions": {"rdkit": "2025.3"}}, Path("old"), ValueError, "again!")
    Traceback (most recent call last):
    ...
    ValueError: old: has map4 fingerprints of version 1, expected 2: other bits are set; again!
    """
    said = manifest.get("versions")
    found = said.get(_kept_as(name), 1) if isinstance(said, dict) else 1
    expected = _VERSIONS.get(name, 1)
    if found != expected:
        raise error(
            f"{where}: has {name} fingerprints of version {str(found)[:20]}, expected {expected}: "
            f"other bits are set; {again}"
        )


def _kept_as(name: str) -> str:
    return f"{name} fingerprints"  # the name alone may be a library's: rdkit is
