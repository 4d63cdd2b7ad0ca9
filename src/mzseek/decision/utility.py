"""What is known about a utility, without a look at numpy."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from mzseek.registry import load

if TYPE_CHECKING:
    from mzseek.decision.decoders.result import Answer, Rules

Within = Literal["candidates", "all"]
WITHIN: tuple[Within, ...] = ("candidates", "all")


@dataclass(frozen=True)
class Utility:
    """A utility, with the facts that others read.

    Attributes
    ----------
    name, label : str
        In code, and for people.
    module : str
        Where its `Rules` stand; it is loaded when they are first asked for.
    vectorwise : bool
        Whether it is a similarity of vectors in the sense of the paper's theorems: in [0, 1], the
        same both ways, and 1 of equal vectors. Bit accuracy is one, too (its section 4.2).
    """

    name: str
    label: str
    module: str
    vectorwise: bool = False

    @cached_property
    def rules(self) -> "Rules":
        """How it is computed and decided for."""
        rules: Rules = load(f"{self.module}:RULES")
        return rules

    @property
    def of(self) -> Callable[[Any, Any, Any, int], Any]:
        """Its value, of common bits, bits of the one, bits of the other, and the width."""
        return self.rules.of

    @property
    def decode(self) -> "Callable[..., Answer]":
        """The decision for it over all fingerprints, under a `Distribution`."""
        return self.rules.decode
