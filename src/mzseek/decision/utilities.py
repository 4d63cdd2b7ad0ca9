"""Utilities and goals by name. Loads no numpy: the command line lists the names."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from mzseek.core.errors import DecisionError
from mzseek.core.registry import choose, load

if TYPE_CHECKING:
    from mzseek.decision.decoders import Rules


Within = Literal["candidates", "all"]
WITHIN: tuple[Within, ...] = ("candidates", "all")


@dataclass(frozen=True)
class Utility:
    """A utility, with the facts that others read.

    Attributes
    ----------
    name, label : str
        In code, and for people.
    vectorwise : bool
        Whether it is a similarity of vectors in the sense of the paper's theorems: in [0, 1], the
        same both ways, and 1 of equal vectors. Bit accuracy is one, too (its section 4.2).
    """

    name: str
    label: str
    vectorwise: bool = False

    @cached_property
    def rules(self) -> "Rules":
        """How it is computed and decided for; loaded when it is first asked for."""
        rules: Rules = load("mzseek.decision.decoders:RULES")[self.name]
        return rules


UTILITIES: dict[str, Utility] = {
    utility.name: utility
    for utility in (
        Utility("hit", "HR@1"),
        Utility("bits", "bit accuracy", vectorwise=True),
        Utility("tanimoto", "Tanimoto", vectorwise=True),
        Utility("cosine", "cosine", vectorwise=True),
        Utility("f1", "F1", vectorwise=True),
    )
}
BAND_SIMILARITIES = tuple(name for name, utility in UTILITIES.items() if utility.vectorwise)


def utility_named(name: str) -> Utility:
    """Utility of that name; an unknown one is refused with the list of those there are."""
    return choose(UTILITIES, name, "utility", DecisionError)


# The loss of the paper that is trained for each goal. Of the listwise losses, Emb-Cos ranks best in
# the paper's main table and on MassBank.
GOALS = {"hit": "emb-cos", "tanimoto": "iou", "cosine": "cosine", "bits": "bce"}
SIMILARITY_GOALS = tuple(goal for goal in GOALS if goal in BAND_SIMILARITIES)
