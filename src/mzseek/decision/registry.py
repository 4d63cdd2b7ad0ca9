"""The utilities by name: one file each in `mzseek.decision.decoders`, and one line here."""

from mzseek.decision.utility import Utility
from mzseek.errors import DecisionError
from mzseek.registry import choose

_HERE = "mzseek.decision.decoders"

UTILITIES: dict[str, Utility] = {
    utility.name: utility
    for utility in (
        Utility("hit", "HR@1", f"{_HERE}.hit"),
        Utility("bits", "bit accuracy", f"{_HERE}.bits", vectorwise=True),
        Utility("tanimoto", "Tanimoto", f"{_HERE}.tanimoto", vectorwise=True),
        Utility("cosine", "cosine", f"{_HERE}.cosine", vectorwise=True),
        Utility("f1", "F1", f"{_HERE}.f1", vectorwise=True),
    )
}
BAND_SIMILARITIES = tuple(name for name, each in UTILITIES.items() if each.vectorwise)


def utility_named(name: str) -> Utility:
    """Utility of that name; an unknown one is refused with the list of those there are."""
    return choose(UTILITIES, name, "utility", DecisionError)
