"""The fingerprints by name, and where the code of each stands: one line each, without RDKit."""

from typing import TYPE_CHECKING

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
        "map4": f"{_HERE}:MAP4_PAIRS",
        "maccs": f"{_HERE}:MACCS_KEYS",
    }
)
OF_THE_PAPER = ("morgan2", "morgan4", "morgan6", "morgan8", "rdkit", "map4")


def fingerprint_kind(name: str) -> "Fingerprint":
    """Kind of that name; an unknown one is refused with the list of those there are."""
    return choose(FINGERPRINTS, name, "fingerprint", MoleculeError)
