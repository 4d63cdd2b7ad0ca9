"""A prior that answers count in: learned by the model, or weights of the user's own.

A prior knows nothing of the spectrum. It is off unless it is asked for, has a column of its own,
and every answer that counts it in says so.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.asking.ask import Asked
from mzseek.annotation.bundle import Bundle
from mzseek.annotation.bundle.prior import LearnedPrior
from mzseek.annotation.candidates.weights import Weights, read_weights
from mzseek.errors import BundleError
from mzseek.evidence.molecules import Molecules

Floats = npt.NDArray[np.float64]
LEARNED = "learned"
CAUTION = (
    "probabilities do not rest on the spectrum alone, and sets and calibration were fitted "
    "without it"
)
_LISTED = 100  # rows set aside that a run folder names


@dataclass(frozen=True, eq=False)
class Told:
    """What a prior says of a feature's candidates.

    Attributes
    ----------
    label : str
        Of its column.
    nats : float64 array, shape (candidates,)
        Log-odds against the mean of the list.
    note : str
        For the feature.
    """

    label: str
    nats: Floats
    note: str


class CountedPrior(ABC):
    """A prior, opened.

    Attributes
    ----------
    label : str
        What tables call it.
    words : str
        What it is.
    """

    label: str
    words: str

    @abstractmethod
    def of(
        self, asked: Asked, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> Told:
        """What it says of the candidates of a feature.

        Parameters
        ----------
        asked : Asked
        molecules : Molecules
        rows : int64 array, shape (candidates,)
            Their places in the table.
        mode : int
            −1 for negative, 1 for positive.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What a run folder says of it."""


class PriorOfModel(CountedPrior):
    """The learned one of a bundle."""

    label = "prior"
    words = "learned by the model: how like a candidate is to molecules that people measure"

    def __init__(self, prior: LearnedPrior) -> None:
        self._prior = prior

    def of(
        self, asked: Asked, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> Told:
        """Weighted log-odds."""
        return Told(self.label, self._prior.nats(molecules, rows, mode), _note(self.words))

    def facts(self) -> dict[str, Any]:
        """What a run folder says of it."""
        return {
            "kind": LEARNED,
            "said": f"{self.words}; {CAUTION}",
            "weights": dict(self._prior.weights),
        }


class PriorOfFile(CountedPrior):
    """Weights of the user's own."""

    label = "weights"

    def __init__(self, weights: Weights, rejects: list[tuple[str, str]]) -> None:
        self._weights, self._rejects = weights, rejects
        self.words = f"weights of {weights.name}, {len(weights.logs):,} molecules"

    def of(
        self, asked: Asked, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int
    ) -> Told:
        """Log-weights."""
        keys = [molecule.key for own in asked.molecules for molecule in own]
        values, inside = self._weights.of(keys)
        words = f"weights of {self._weights.name}, which has {inside:,} of {len(keys):,} candidates"
        return Told(self.label, values - values.mean(), _note(words))

    def facts(self) -> dict[str, Any]:
        """What a run folder says of it."""
        return {
            "kind": "file",
            "said": f"{self.words}; {CAUTION}",
            **self._weights.facts,
            "rejects": [list(each) for each in self._rejects[:_LISTED]],
        }


def open_counted(
    name: str | None, bundle: Bundle, rejects: list[tuple[str, str]]
) -> CountedPrior | None:
    """The prior that was asked for.

    Parameters
    ----------
    name : str or None
        ``learned``, or a table of weights; None for no prior.
    bundle : Bundle
    rejects : list of (str, str)
        Gets where and why for rows of the table that cannot be used.

    Raises
    ------
    BundleError, InputError
        The bundle has learned none, or the table is none.
    """
    if name is None:
        return None
    if name != LEARNED:
        return PriorOfFile(read_weights(name, rejects), rejects)
    if bundle.prior is not None:
        return PriorOfModel(bundle.prior)
    if any(channel.name == PriorOfModel.label for channel in bundle.fitted.channels):
        raise BundleError(f"{bundle.folder}: its ranker has the prior among its channels already")
    raise BundleError(
        f"{bundle.folder}: has no learned prior; make a bundle that has one with "
        "`mzseek model build` or `mzseek model export`, or give a table of weights"
    )


def _note(words: str) -> str:
    return f"a prior is counted in ({words}): {CAUTION}"
