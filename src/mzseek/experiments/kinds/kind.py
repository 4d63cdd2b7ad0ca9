"""What a kind of experiment has to do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from mzseek.experiments.experiment import Experiment, Scale
from mzseek.experiments.results import Cell
from mzseek.experiments.site import Site
from mzseek.experiments.trials import Asked

Cells = dict[str, dict[str, Cell]]


class Kind(ABC):
    """A kind of experiment.

    Attributes
    ----------
    name : str
    needs_data : bool
        Whether there is something to learn or to measure; theory has nothing.
    """

    name: str
    needs_data = True

    @abstractmethod
    def check(self, experiment: Experiment) -> None:
        """Refuse an experiment that this kind cannot run.

        Raises
        ------
        ExperimentError
        """

    def asked(self, experiment: Experiment, scale: Scale) -> dict[tuple[str, str], Asked]:
        """The runs behind each cell, by row and column; none where nothing is trained."""
        return {}

    @abstractmethod
    def measure(
        self, experiment: Experiment, scale: Scale, site: Site | None
    ) -> tuple[Cells, Mapping[str, Any]]:
        """The cells, once all trials have ended, and what is drawn beside them."""
