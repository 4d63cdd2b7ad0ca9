"""The learned prior of a bundle: which molecules people measure, and what that counts.

It stands beside the ranker and is in no score. Answers count it in where that is asked for.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.bundle.arrays import Array, Arrays
from mzseek.annotation.bundle.states import BLOCKS, WIDTH
from mzseek.errors import BundleError, EvidenceError
from mzseek.evidence.channel import Learned
from mzseek.evidence.channels.prior import Prior
from mzseek.evidence.molecules import Molecules
from mzseek.evidence.registry import channel_from
from mzseek.files.json_file import check_fields

Floats = npt.NDArray[np.float64]
_ARRAYS = "prior/"
_FIELDS = {
    "options": dict,
    "facts": {"fingerprint": str, "descriptors": [str]},
    "weights": {"positive": float, "negative": float},
}


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """What the channel `prior` has learned, with a weight for each ion mode.

    Attributes
    ----------
    channel : Prior
    learned : Learned
    weights : mapping of str to float
        For ``positive`` and ``negative`` mode: by what log-odds are multiplied before they are
        added to calibrated log-probabilities; 0 or more, fitted on molecules that the prior had
        not learned from.
    """

    channel: Prior
    learned: Learned
    weights: Mapping[str, float]

    def nats(self, molecules: Molecules, rows: npt.NDArray[np.int64], mode: int) -> Floats:
        """What it adds to the candidates of a list, against their mean.

        Parameters
        ----------
        molecules : Molecules
        rows : int64 array, shape (candidates,)
            Their places in the table.
        mode : int
            −1 for negative, else positive.

        Returns
        -------
        float64 array, shape (candidates,)
            Their mean is 0.
        """
        members, place = np.unique(rows, return_inverse=True)
        odds = self.channel.log_odds(self.learned, molecules, members)[place]
        weight = self.weights["negative" if mode < 0 else "positive"]
        return np.asarray(weight * (odds - odds.mean()))


def pack_prior(prior: LearnedPrior) -> tuple[dict[str, Any], dict[str, Array]]:
    """A prior as plain data, and arrays by name."""
    facts = {
        "options": dict(vars(prior.channel.options)),
        "facts": dict(prior.learned.facts),
        "weights": dict(prior.weights),
    }
    own: dict[str, Array] = dict(prior.learned.arrays)
    own[BLOCKS] = prior.learned.blocks.astype(f"S{WIDTH}")
    return facts, {f"{_ARRAYS}{name}": array for name, array in own.items()}


def open_prior(facts: Mapping[str, Any], arrays: Arrays, where: object) -> LearnedPrior:
    """What `pack_prior` has packed.

    Raises
    ------
    BundleError
        A field or an array is missing, or a weight is below 0.
    """
    check_fields(facts, _FIELDS, where, BundleError)
    for mode, weight in facts["weights"].items():
        if not (weight >= 0 and math.isfinite(weight)):
            raise BundleError(f"{where}: the weight of {mode} mode is {weight}, expected 0 or more")
    try:
        channel = channel_from(Prior.name, dict(facts["options"]))
    except EvidenceError as error:
        raise BundleError(f"{where}: {error}") from error
    assert isinstance(channel, Prior)
    own = arrays.under(_ARRAYS)
    if BLOCKS not in own:
        raise BundleError(f"{where}: what the prior has learned is missing")
    learned = Learned(own, facts["facts"], own[BLOCKS])
    return LearnedPrior(channel, learned, dict(facts["weights"]))
