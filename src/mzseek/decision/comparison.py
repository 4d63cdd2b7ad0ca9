"""Decisions for all utilities side by side: what each is worth by every other, and the bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mzseek.decision.bounds import Bounds, bounds_under
from mzseek.decision.decide import Decision, decide
from mzseek.decision.distributions import Distribution, expected
from mzseek.decision.utilities import BAND_SIMILARITIES, UTILITIES, Within


@dataclass(frozen=True)
class Comparison:
    """Decisions under one distribution, by the utility that each is made for.

    Attributes
    ----------
    within : "candidates" or "all"
    decisions : dict of str to Decision
    expected : dict of str to dict of str to float
        Expected value by one utility (first key) of the decision for another (second key).
    bounds : dict of str to Bounds
        By similarity; empty unless decisions are made within the candidates.
    """

    within: Within
    decisions: dict[str, Decision]
    expected: dict[str, dict[str, float]]
    bounds: dict[str, Bounds]

    @property
    def regret(self) -> dict[str, dict[str, float]]:
        """What is lost of one utility (first key) by the decision for another (second key)."""
        return {
            judged: {name: max(0.0, of[judged] - value) for name, value in of.items()}
            for judged, of in self.expected.items()
        }

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return it as JSON has it; `names` are those of the candidates."""
        record: dict[str, Any] = {
            "within": self.within,
            "decisions": {
                name: {
                    "bits": decision.bits.nonzero()[0].tolist(),
                    "index": decision.index,
                    "name": None if decision.index is None else names[decision.index],
                    "expected_utility": decision.expected_utility,
                    "upper_bound": decision.upper_bound,
                }
                for name, decision in self.decisions.items()
            },
            "expected": self.expected,
            "regret": self.regret,
        }
        if self.bounds:
            # One candidate has no band: null, which JSON has, for NaN, which it has not.
            record["bounds"] = {
                name: {key: None if value != value else value for key, value in vars(bound).items()}
                for name, bound in self.bounds.items()
            }
        return record


def compare_decisions(candidates: Distribution, within: Within = "candidates") -> Comparison:
    """Decide for every utility, and judge each decision by every other.

    Examples
    --------
    >>> from mzseek.decision import distribution
    >>> rows = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 1, 0, 0, 1]]
    >>> comparison = compare_decisions(distribution(rows, [0.3, 0.25, 0.2, 0.25]))
    >>> comparison.decisions["hit"].index, round(comparison.regret["tanimoto"]["hit"], 3)
    (0, 0.0)
    """
    decisions = {name: decide(name, candidates, within) for name in UTILITIES}
    values = {
        judged: {name: expected(judged, decisions[name].bits, candidates) for name in decisions}
        for judged in UTILITIES
    }
    bounds = {}
    if within == "candidates":  # they hold nowhere else
        bounds = {name: bounds_under(name, candidates) for name in BAND_SIMILARITIES}
    return Comparison(within, decisions, values, bounds)
