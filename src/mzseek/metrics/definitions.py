"""The metrics by name: label and direction of each.

Best checkpoints and sorted tables look up the direction here, so that none is typed twice.
"""

from dataclasses import dataclass
from typing import Literal

from mzseek.core.errors import MetricError
from mzseek.core.registry import choose


@dataclass(frozen=True)
class Metric:
    """Facts of one metric.

    Attributes
    ----------
    name : str
        What registries, JSON and the command line call it.
    better : "higher" or "lower"
        Which of two values is the better one.
    label : str
        What people read in tables and figures.
    """

    name: str
    better: Literal["higher", "lower"]
    label: str

    def improves(self, value: float, best: float) -> bool:
        """Return whether a value is strictly better than the best so far; NaN never is.

        Examples
        --------
        >>> METRICS["loss"].improves(0.1, best=0.2), METRICS["tanimoto"].improves(0.1, best=0.2)
        (True, False)
        """
        return value > best if self.better == "higher" else value < best


METRICS: dict[str, Metric] = {
    fact.name: fact
    for fact in (
        Metric("hit_rate@1", "higher", "HR@1"),
        Metric("hit_rate@5", "higher", "HR@5"),
        Metric("hit_rate@20", "higher", "HR@20"),
        Metric("tanimoto", "higher", "Tanimoto"),
        Metric("soft_tanimoto", "higher", "Soft Tanimoto"),
        Metric("cosine", "higher", "Cosine"),
        Metric("bit_accuracy", "higher", "Bit accuracy"),
        Metric("mces@1", "lower", "MCES@1"),
        Metric("loss", "lower", "Loss"),
    )
}


def metric(name: str) -> Metric:
    """Return the metric of that name; refuse an unknown one with the list of names.

    Examples
    --------
    >>> metric("mces@1").better
    'lower'
    """
    return choose(METRICS, name, "metric", MetricError)
