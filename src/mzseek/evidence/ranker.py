"""Rank candidates by channel features with a conditional logit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged, read_labels
from mzseek.core.tables import Table, Tabular
from mzseek.evidence.queries import MODES, LabelledQueries
from mzseek.io.manifest import check_fields

Floats = npt.NDArray[np.float64]
_MOST_STEPS = 500


def fit_logit(
    features: Any,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    l2: float = 1e-3,
) -> Floats:
    """Weights under which the labelled candidates are most probable.

    Minimises the mean of ``−log Σ_labelled p`` over lists, plus ``l2 / 2 · Σ weights²``.

    Parameters
    ----------
    features : array or CSR, shape (candidates of all lists, features)
    counts : int array, shape (lists,)
        Candidates in each list, at least 1.
    labels : bool array
        Candidates that are the truth, one a list at least: identical ones share its probability.
    weights : array, shape (lists,), optional
        What each list counts; all alike by default.
    l2 : float
        0 or more.

    Returns
    -------
    float64 array, shape (features,)

    Raises
    ------
    EvidenceError
        Lengths that do not fit, or a list without a label.

    Examples
    --------
    >>> features = np.array([[1.0], [0.0]] * 4)
    >>> right = [1, 0, 1, 0, 1, 0, 0, 1]  # the first of the two in 3 of 4 lists
    >>> fit_logit(features, [2] * 4, right, l2=0).round(3).tolist()  # log 3
    [1.099]
    """
    lists = Ragged(np.asarray(counts, np.int64))
    if (lists.counts < 1).any() or lists.total != features.shape[0]:
        raise EvidenceError(
            f"counts add up to {lists.total}, but there are {features.shape[0]} candidates"
        )
    truth = read_labels(labels, lists, EvidenceError)
    share = np.ones(len(lists)) if weights is None else np.asarray(weights, np.float64)
    if share.shape != (len(lists),) or not share.sum() > 0:
        raise EvidenceError(f"{len(share)} weights for {len(lists)} lists, expected one each")
    found = minimize(
        _loss, np.zeros(features.shape[1]), (features, lists, truth, share / share.sum(), l2),
        jac=True, method="L-BFGS-B",
        options={"maxiter": _MOST_STEPS, "ftol": 1e-12, "gtol": 1e-7, "maxcor": 20},
    )  # fmt: skip
    return np.asarray(found.x, np.float64)


def _loss(
    at: Floats,
    features: Any,
    lists: Ragged,
    truth: npt.NDArray[np.bool_],
    share: Floats,
    l2: float,
) -> tuple[float, Floats]:
    """What is minimised, and its slope."""
    slope, log_p = truth_slope(features @ at, lists, truth)
    value = -share @ log_p + 0.5 * l2 * at @ at
    return float(value), features.T @ (lists.repeat_per_list(share) * slope) + l2 * at


def truth_slope(
    scores: Floats, lists: Ragged, truth: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The slope of −log p of each list's truth along its scores, and log p itself.

    p = softmax(scores); several candidates that are the truth share its probability.
    """
    weight = np.exp(scores - lists.repeat_per_list(lists.max(scores)))
    p = weight / lists.repeat_per_list(lists.sum(weight))
    of_truth = np.where(truth, p, 0.0)
    # A truth may be out of reach of the floats: its slope is then that of the least of them.
    mass = np.maximum(lists.sum(of_truth), np.finfo(np.float64).tiny)
    return p - of_truth / lists.repeat_per_list(mass), np.log(mass)


FEW = 100  # molecules: with fewer, an ion mode has the weights of both
_FIELDS = {
    "name": str,
    "spread": {...: {...: float}},
    "weights": {...: {...: {...: float}}},
    "molecules": {...: int},
    "own": {...: bool},
}
NAME = "logit"


@dataclass(frozen=True, eq=False)
class Ranker(Tabular):
    """A conditional logit over the features of channels.

    Attributes
    ----------
    features : mapping of str to tuple of str
        Names of each channel's features, by its label.
    spread : float64 array, shape (features,)
        Of each feature within lists: the unit of its weight.
    weights : mapping of str to float64 array, shape (features,)
        For each ion mode.
    molecules : mapping of str to int
        How many molecules of each ion mode it was fitted on.
    own : mapping of str to bool
        Whether an ion mode has weights of its own, or those that were fitted on both.
    """

    features: Mapping[str, Sequence[str]]
    spread: Floats
    weights: Mapping[str, Floats]
    molecules: Mapping[str, int]
    own: Mapping[str, bool]

    def parts(
        self,
        features: Sequence[npt.NDArray[np.floating]],
        modes: Any,
        counts: Any,
        *,
        centred: bool = True,
    ) -> npt.NDArray[np.float32]:
        """Return the contribution of each channel to the score of each candidate (log-odds).

        Parameters
        ----------
        features : sequence of arrays, shapes (rows, features of the channel)
        modes : int array, shape (lists,)
            1 for positive and −1 for negative mode; unknown counts as positive.
        counts : int array, shape (lists,)
        centred : bool
            Against the average candidate of the list. Otherwise the weighted features as they
            are, which can be compared between lists.

        Returns
        -------
        float32 array, shape (rows, channels)
        """
        lists = Ragged(np.asarray(counts, np.int64))
        negative = lists.repeat_per_list(np.asarray(modes) < 0)
        found = np.zeros((lists.total, len(features)), np.float32)
        start = 0
        for place, own in enumerate(features):
            here = slice(start, start + own.shape[1])
            raw = _centred(own, lists) if centred else np.asarray(own, np.float64)
            by_mode = [self.weights[name][here] / self.spread[here] for name in MODES]
            total = np.zeros(lists.total)
            # Feature by feature: a matrix product adds in an order that depends on its shape.
            for column, positive, other in zip(raw.T, *by_mode, strict=True):
                total += column * np.where(negative, other, positive)
            found[:, place] = total
            start += own.shape[1]
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": NAME,
            "spread": self._named(self.spread),
            "weights": {mode: self._named(weights) for mode, weights in self.weights.items()},
            "molecules": dict(self.molecules),
            "own": dict(self.own),
        }

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], where: object = "its ranker") -> "Ranker":
        """From plain data.

        Raises
        ------
        EvidenceError
            A field is missing or of another type, or weights are of other features.
        """
        check_fields(facts, _FIELDS, where, EvidenceError)
        features = {channel: tuple(own) for channel, own in facts["spread"].items()}

        def flat(table: Mapping[str, Mapping[str, float]]) -> Floats:
            if {channel: tuple(own) for channel, own in table.items()} != features:
                raise EvidenceError(f"{where}: has weights of other features than it has spreads")
            return np.array([value for own in table.values() for value in own.values()], np.float64)

        for name in ("weights", "molecules", "own"):
            if set(facts[name]) != set(MODES):
                raise EvidenceError(f"{where}: {name} are not of {' and '.join(MODES)} mode")
        weights = {mode: flat(facts["weights"][mode]) for mode in MODES}
        spread = flat(facts["spread"])
        if not (spread > 0).all():
            raise EvidenceError(f"{where}: has a spread that is not above 0")
        return cls(features, spread, weights, facts["molecules"], facts["own"])

    def _named(self, values: Floats) -> dict[str, dict[str, float]]:
        left = iter(values.tolist())
        return {
            channel: {name: next(left) for name in names}
            for channel, names in self.features.items()
        }

    def to_table(self) -> Table:
        """Weights, a row for each feature, in nats for each spread."""
        names = [(channel, name) for channel, own in self.features.items() for name in own]
        shown = [mode for mode in MODES if self.molecules[mode]]
        return Table(
            {
                "channel": [channel for channel, _ in names],
                "feature": [name for _, name in names],
                **{mode: self.weights[mode].tolist() for mode in shown},
            },
            "weights of a conditional logit, for features in units of their spread within lists",
        )


def fit_ranker(
    labels: Sequence[str],
    names: Sequence[Sequence[str]],
    features: Sequence[npt.NDArray[np.floating]],
    asked: LabelledQueries,
    *,
    l2: float = 1e-3,
    by_molecule: bool = True,
    few: int = FEW,
) -> Ranker:
    """A ranker under which the answers are most probable.

    Parameters
    ----------
    labels, names, features : sequences, one entry for each channel
        What tables call it, names of its features, and their values, shape (rows, features).
    asked : LabelledQueries
        Of which no channel has learned.
    l2 : float
        Penalty on the squares of weights.
    by_molecule : bool
        Every molecule counts once, however many spectra it has.
    few : int
        With fewer molecules than this, an ion mode has the weights that are fitted on both.
    """
    lists = asked.lists.ragged
    values = np.hstack([_centred(own, lists) for own in features])
    spread = np.sqrt((values**2).mean(0)) if len(values) else np.ones(values.shape[1])
    spread[spread == 0] = 1.0
    values /= spread
    share = asked.weights() if by_molecule else np.ones(len(asked))
    negative = asked.lists.modes < 0
    weights, molecules, own, shared = {}, {}, {}, None
    for mode, sign in MODES.items():
        of_mode = negative if sign < 0 else ~negative
        molecules[mode] = len(np.unique(asked.blocks[of_mode]))
        own[mode] = molecules[mode] >= few
        if own[mode] and not of_mode.all():
            rows = lists.repeat_per_list(of_mode)
            weights[mode] = fit_logit(
                values[rows], lists.counts[of_mode], asked.labels[rows], share[of_mode], l2
            )
            continue
        if shared is None:
            shared = fit_logit(values, lists.counts, asked.labels, share, l2)
        weights[mode] = shared
    by_channel = {label: tuple(own) for label, own in zip(labels, names, strict=True)}
    return Ranker(by_channel, spread, weights, molecules, own)


def _centred(features: npt.NDArray[np.floating], lists: Ragged) -> Floats:
    """Features as differences to the mean of their list, which is all that a list can tell."""
    values = np.asarray(features, np.float64)
    if not len(values):
        return values
    means = np.add.reduceat(values, lists.starts, axis=0) / lists.counts[:, None]
    return np.asarray(values - np.repeat(means, lists.counts, axis=0))
