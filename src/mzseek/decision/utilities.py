"""Utilities: what a decision is worth when the truth is known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import DecisionError
from mzseek.core.registry import choose, load
from mzseek.decision.distributions import Distribution, Floats, binary_rows, distribution

if TYPE_CHECKING:
    from mzseek.decision.decoders import Answer, Rules


Within = Literal["candidates", "all"]
WITHIN: tuple[Within, ...] = ("candidates", "all")


@dataclass(frozen=True)
class Utility:
    """A utility, with the facts that others read.

    Attributes
    ----------
    name, label : str
        In code, and for people.
    code : str
        ``module:name`` of its `Rules`; it is loaded when they are first asked for.
    vectorwise : bool
        Whether it is a similarity of vectors in the sense of the paper's theorems: in [0, 1], the
        same both ways, and 1 of equal vectors. Bit accuracy is one, too (its section 4.2).
    """

    name: str
    label: str
    code: str
    vectorwise: bool = False

    @cached_property
    def rules(self) -> "Rules":
        """How it is computed and decided for."""
        rules: Rules = load(self.code)
        return rules

    @property
    def of(self) -> Callable[[Any, Any, Any, int], Any]:
        """Its value, of common bits, bits of the one, bits of the other, and the width."""
        return self.rules.of

    @property
    def decode(self) -> "Callable[..., Answer]":
        """The decision for it over all fingerprints, under a `Distribution`."""
        return self.rules.decode


UTILITIES: dict[str, Utility] = {
    utility.name: utility
    for utility in (
        Utility("hit", "HR@1", "mzseek.decision.decoders:HIT_RULES"),
        Utility("bits", "bit accuracy", "mzseek.decision.decoders:BITS_RULES", vectorwise=True),
        Utility("tanimoto", "Tanimoto", "mzseek.decision.decoders:TANIMOTO_RULES", vectorwise=True),
        Utility("cosine", "cosine", "mzseek.decision.decoders:COSINE_RULES", vectorwise=True),
        Utility("f1", "F1", "mzseek.decision.decoders:F1_RULES", vectorwise=True),
    )
}
BAND_SIMILARITIES = tuple(name for name, each in UTILITIES.items() if each.vectorwise)


def utility_named(name: str) -> Utility:
    """Utility of that name; an unknown one is refused with the list of those there are."""
    return choose(UTILITIES, name, "utility", DecisionError)


def expected_utility(
    utility: str, prediction: Any, fingerprints: Any, probabilities: npt.ArrayLike
) -> float:
    """Expected utility of a prediction: ``Σ U(prediction, y) p(y)``.

    Parameters
    ----------
    utility : str
        "hit", "bits", "tanimoto", "cosine" or "f1".
    prediction : 0/1 array or CSR of one row, shape (bits,)
        Any fingerprint, a candidate or not.
    fingerprints : 0/1 array or CSR, shape (candidates, bits)
    probabilities : array, shape (candidates,)

    Returns
    -------
    float

    Examples
    --------
    >>> candidates = [[1, 1, 0], [0, 1, 1]]
    >>> round(expected_utility("tanimoto", [0, 1, 0], candidates, [0.5, 0.5]), 3)
    0.5
    """
    candidates = distribution(fingerprints, probabilities)
    return expected(utility, checked_prediction(prediction, candidates.width), candidates)


def expected(utility: str, bits: npt.NDArray[np.uint8], candidates: Distribution) -> float:
    """`expected_utility` of a 0/1 array under a checked distribution."""
    common = candidates.sums_over_bits(bits.astype(np.float64))
    values = utility_named(utility).of(
        common, float(bits.sum()), candidates.sizes, candidates.width
    )
    return float(values @ candidates.probabilities)


def expected_of_candidates(utility: str, candidates: Distribution) -> Floats:
    """Expected utility of deciding for each of the distinct candidates."""
    rules = utility_named(utility).rules
    if rules.of_candidates is not None:
        return rules.of_candidates(candidates)
    p, sizes = candidates.probabilities, candidates.sizes
    utilities = rules.of(candidates.overlaps, sizes[:, None], sizes[None, :], candidates.width)
    # Not `@`: the order in which a matrix product adds depends on the number of threads.
    return np.asarray(np.einsum("ij,j->i", utilities, p))


def checked_prediction(prediction: Any, width: int) -> npt.NDArray[np.uint8]:
    """A prediction as a 0/1 array of the right length."""
    _, indices, own_width = binary_rows(prediction)
    rows = np.shape(prediction)[0] if np.ndim(prediction) == 2 else 1
    if own_width != width or rows != 1:
        raise DecisionError(
            f"prediction has shape {np.shape(prediction)}, expected one row of {width} bits"
        )
    bits = np.zeros(width, np.uint8)
    bits[indices] = 1
    return bits
