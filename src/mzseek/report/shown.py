"""What a page or a table shows of runs: each run with its own numbers, under a label of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from mzseek.errors import RunError
from mzseek.evaluation.beliefs import Beliefs
from mzseek.evaluation.evaluate import Evaluation
from mzseek.evaluation.scored import sees_spectrum
from mzseek.names import tell_apart
from mzseek.runs.run import Run

# What an order by chance is called beside the runs.
CHANCE = "random"


@dataclass(frozen=True)
class Shown:
    """A run and what was found of it.

    Attributes
    ----------
    run : Run
    evaluation : Evaluation
    beliefs : Beliefs or None
        What its posterior is worth, where that was asked for.

    Raises
    ------
    RunError
        The numbers are those of another run.
    """

    run: Run
    evaluation: Evaluation
    beliefs: Beliefs | None = None

    @property
    def control(self) -> bool:
        """It never sees the spectrum."""
        return not sees_spectrum(self.run)

    def __post_init__(self) -> None:
        folder = self.run.folder.resolve()
        for numbers in (self.evaluation, self.beliefs):
            if numbers is not None and numbers.folder != folder:
                raise RunError(f"{folder}: would be shown with the numbers of {numbers.folder}")


def labelled(shown: Sequence[Shown]) -> dict[str, Shown]:
    """The same runs by label; equal names are told apart by their paths.

    Raises
    ------
    RunError
        One run is there twice.
    """
    labels = tell_apart([each.run.folder for each in shown], taken=(CHANCE,))
    by_label = dict(zip(labels, shown, strict=True))
    if len(by_label) < len(shown):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise RunError(f"{by_label[twice].run.folder}: is there twice, expected each run once")
    return by_label


def missing_fingerprints(shown: Sequence[Shown]) -> list[str]:
    """Why runs that see the spectrum have no Tanimoto of a fingerprint, each reason once."""
    reasons = (each.evaluation.no_fingerprint for each in shown if not each.control)
    return list(dict.fromkeys(reason for reason in reasons if reason))
