"""Rank candidates by channel features with a conditional logit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged, read_labels
from mzseek.core.text import Table, Tabular
from mzseek.evidence.queries import MODES, Queries
from mzseek.io.manifest import check_fields

if TYPE_CHECKING:
    from mzseek.evidence.model import Channel

Floats = npt.NDArray[np.float64]


def fit_logit(
    features: Any,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    l2: float = 1e-3,
) -> Floats:
    """Fit a conditional logit: weights under which the labelled candidates are most probable.

    Minimises the mean of ``−log Σ_labelled p`` over lists, plus ``l2 / 2 · Σ weights²``.

    Parameters
    ----------
    features : array or CSR, shape (candidates of all lists, features)
    counts : int array, shape (lists,)
        Candidates in each list, at least 1.
    labels : bool array
        Candidates that are the truth, one a list at least: identical ones share its probability.
    weights : array, shape (lists,), optional
        Of lists; equal by default.
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
    share = share / share.sum()

    def loss(at: Floats) -> tuple[float, Floats]:
        slope, log_p = truth_slope(features @ at, lists, truth)
        value = -share @ log_p + 0.5 * l2 * at @ at
        return float(value), features.T @ (lists.repeat_per_list(share) * slope) + l2 * at

    options = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-7, "maxcor": 20}
    start = np.zeros(features.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)


def truth_slope(
    scores: Floats, lists: Ragged, truth: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Gradient of −log p of each list's truth with respect to its scores, and log p itself.

    p = softmax(scores); several candidates that are the truth share its probability.
    """
    weight = np.exp(scores - lists.repeat_per_list(lists.max(scores)))
    p = weight / lists.repeat_per_list(lists.sum(weight))
    of_truth = np.where(truth, p, 0.0)
    # Where p of the truth underflows, the gradient is that of the smallest float.
    mass = np.maximum(lists.sum(of_truth), np.finfo(np.float64).tiny)
    return p - of_truth / lists.repeat_per_list(mass), np.log(mass)


SHORTLIST = (
    30  # candidates of a list that channels which re-rank score; more where scores are equal
)
_MIN_SPREAD = 1e-3  # of a feature in a list
MIN_MOLECULES = 100  # with fewer, an ion mode has the weights fitted on both
NAME = "logit"
_FIELDS = {
    "name": str,
    "spread": {...: {...: float}},
    "weights": {...: {...: {...: float}}},
    "molecules": {...: int},
    "own": {...: bool},
    "first?": dict,
}


@dataclass(frozen=True, eq=False)
class Ranker(Tabular):
    """A conditional logit over the features of channels.

    Attributes
    ----------
    features : mapping of str to tuple of str
        Names of each channel's features, by its label.
    scale : float64 array, shape (features,)
        Root mean square of each feature within lists: the unit of its weight.
    weights : mapping of str to float64 array, shape (features,)
        For each ion mode.
    molecules : mapping of str to int
        How many molecules of each ion mode it was fitted on.
    by_mode : mapping of str to bool
        Whether an ion mode has its own weights, or those fitted on both.
    first : Ranker, optional
        That ranks all candidates by the channels that score all of them; this one then ranks a
        shortlist of each list again, by all channels.
    """

    features: Mapping[str, Sequence[str]]
    scale: Floats
    weights: Mapping[str, Floats]
    molecules: Mapping[str, int]
    by_mode: Mapping[str, bool]
    first: "Ranker | None" = None

    def shortlist(
        self, features: Sequence[npt.NDArray[np.floating]], modes: Any, counts: Any
    ) -> npt.NDArray[np.bool_]:
        """Whether each candidate is ranked again, from features of the first ranker's channels."""
        assert self.first is not None
        return _shortlist(self.first.contributions(features, modes, counts), counts)

    def contributions(
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
            With a first ranker, what ranking again changes is the contribution of the last
            channel. The probability of the shortlist as a whole stays as it was.
        """
        if self.first is None:
            return self._weighted(features, modes, counts, centred)
        lists, number = Ragged(np.asarray(counts, np.int64)), len(self.first.features)
        contributions = np.zeros((lists.total, len(features)), np.float32)
        contributions[:, :number] = self.first.contributions(
            features[:number], modes, counts, centred=centred
        )
        inside = _shortlist(contributions[:, :number], counts)
        short = Ragged(lists.sum(inside, np.int64))
        shortlisted = [values[inside] for values in features]
        again = self._weighted(
            _with_standing(shortlisted, number, short), modes, short.counts, True
        )
        before, after = (
            values.sum(1, dtype=np.float64) for values in (contributions[inside, :number], again)
        )
        same_total = short.repeat_per_list(_log_sums(before, short) - _log_sums(after, short))
        contributions[inside, -1] = after + same_total - before
        return contributions

    def _weighted(
        self,
        features: Sequence[npt.NDArray[np.floating]],
        modes: Any,
        counts: Any,
        centred: bool,
    ) -> npt.NDArray[np.float32]:
        """Sum of each channel's weighted features."""
        lists = Ragged(np.asarray(counts, np.int64))
        negative = lists.repeat_per_list(np.asarray(modes) < 0)
        contributions = np.zeros((lists.total, len(features)), np.float32)
        start = 0
        for number, values in enumerate(features):
            columns = slice(start, start + values.shape[1])
            values = _centred(values, lists) if centred else np.asarray(values, np.float64)
            by_mode = [self.weights[mode][columns] / self.scale[columns] for mode in MODES]
            total = np.zeros(lists.total)
            # Feature by feature: a matrix product adds in an order that depends on its shape.
            for column, positive, other in zip(values.T, *by_mode, strict=True):
                total += column * np.where(negative, other, positive)
            contributions[:, number] = total
            start = columns.stop
        return contributions

    def check_channels(self, channels: "Sequence[Channel]") -> None:
        """Refuse channels or features other than the ranker was fitted on (`EvidenceError`)."""
        if [channel.label for channel in channels] != list(self.features):
            raise EvidenceError("its ranker is of other channels than it names")
        known = len(channels) if self.first is None else len(self.first.features)
        for number, channel in enumerate(channels):
            names = list(channel.feature_names)
            names = names if number < known else _names_with_standing(names)
            if names != list(self.features[channel.label]):
                raise EvidenceError(
                    f"its ranker weighs other features of {channel.label} than this version of "
                    "mzseek has"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "name": NAME,
            "spread": self._named(self.scale),
            "weights": {mode: self._named(weights) for mode, weights in self.weights.items()},
            "molecules": dict(self.molecules),
            "own": dict(self.by_mode),
            **({} if self.first is None else {"first": self.first.to_dict()}),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], where: object = "its ranker") -> "Ranker":
        """Read plain data.

        Raises
        ------
        EvidenceError
            A field is missing or of another type, or weights are of other features.
        """
        check_fields(fields, _FIELDS, where, EvidenceError)
        features = {channel: tuple(names) for channel, names in fields["spread"].items()}

        def flat(table: Mapping[str, Mapping[str, float]]) -> Floats:
            if {channel: tuple(names) for channel, names in table.items()} != features:
                raise EvidenceError(f"{where}: has weights of other features than it has spreads")
            return np.array([v for names in table.values() for v in names.values()], np.float64)

        for name in ("weights", "molecules", "own"):
            if set(fields[name]) != set(MODES):
                raise EvidenceError(f"{where}: {name} are not of {' and '.join(MODES)} mode")
        weights = {mode: flat(fields["weights"][mode]) for mode in MODES}
        scale = flat(fields["spread"])
        if not (scale > 0).all():
            raise EvidenceError(f"{where}: has a spread that is not above 0")
        first = cls.from_dict(fields["first"], where) if "first" in fields else None
        if first is not None and list(first.features) != list(features)[: len(first.features)]:
            raise EvidenceError(f"{where}: its first ranker is of other channels")
        return cls(features, scale, weights, fields["molecules"], fields["own"], first)

    def _named(self, values: Floats) -> dict[str, dict[str, float]]:
        left = iter(values.tolist())
        return {
            channel: {name: next(left) for name in names}
            for channel, names in self.features.items()
        }

    def to_table(self) -> Table:
        """Weights, a row for each feature, in log-odds for each unit of its scale."""
        rankers = {"all": self} if self.first is None else {"all": self.first, "shortlist": self}
        names = [
            (stage, channel, name)
            for stage, ranker in rankers.items()
            for channel, features in ranker.features.items()
            for name in features
        ]
        columns = {
            "candidates": [stage for stage, _, _ in names],
            "channel": [channel for _, channel, _ in names],
            "feature": [name for _, _, name in names],
            **{
                mode: np.concatenate([r.weights[mode] for r in rankers.values()]).tolist()
                for mode in MODES
                if self.molecules[mode]
            },
        }
        if self.first is None:
            del columns["candidates"]
        return Table(
            columns,
            "weights of a conditional logit, for features in units of their spread within lists",
        )


def fit_ranker(
    labels: Sequence[str],
    names: Sequence[Sequence[str]],
    features: Sequence[npt.NDArray[np.floating]],
    queries: Queries,
    *,
    l2: float = 1e-3,
    by_molecule: bool = True,
    min_molecules: int = MIN_MOLECULES,
    reranking: int = 0,
) -> Ranker:
    """Fit the ranker under which the labelled candidates are most probable.

    Parameters
    ----------
    labels, names, features : sequences, one entry for each channel
        Its label, names of its features, and their values, shape (rows, features).
    queries : Queries
        Labelled; no channel was fitted on their molecules.
    l2 : float
        Penalty on the squares of weights.
    by_molecule : bool
        Every molecule counts once, however many spectra it has.
    min_molecules : int
        With fewer, an ion mode has the weights fitted on both.
    reranking : int
        How many channels at the end score only the shortlist of the others.
    """
    number = len(labels) - reranking
    if reranking and number:
        fit = partial(fit_ranker, l2=l2, by_molecule=by_molecule, min_molecules=min_molecules)
        first = fit(labels[:number], names[:number], features[:number], queries)
        total = first.contributions(features[:number], queries.modes, queries.counts)
        inside = _shortlist(total, queries.counts)
        short = queries.keep(inside)
        # Lists whose truth is not on the shortlist have nothing to tell about ranking again.
        usable = np.flatnonzero(short.ragged.any(short.labels))
        rows = short.rows(usable)
        shortlisted = [values[inside][rows] for values in features]
        short = short.only(usable)
        again = fit(
            labels,
            [*names[:number], *map(_names_with_standing, names[number:])],
            _with_standing(shortlisted, number, short.ragged),
            short,
        )
        return replace(again, first=first)
    lists = queries.ragged
    values = np.hstack([_centred(values_of, lists) for values_of in features])
    scale = np.sqrt((values**2).mean(0)) if len(values) else np.ones(values.shape[1])
    scale[scale == 0] = 1.0
    values /= scale
    share = queries.molecule_weights() if by_molecule else np.ones(len(queries))
    negative = queries.modes < 0
    weights, molecules, by_mode, both = {}, {}, {}, None
    for mode, sign in MODES.items():
        inside = negative if sign < 0 else ~negative
        molecules[mode] = len(np.unique(queries.inchikey14[inside]))
        by_mode[mode] = molecules[mode] >= min_molecules
        if by_mode[mode] and not inside.all():
            rows = lists.repeat_per_list(inside)
            weights[mode] = fit_logit(
                values[rows], lists.counts[inside], queries.labels[rows], share[inside], l2
            )
            continue
        if both is None:
            both = fit_logit(values, lists.counts, queries.labels, share, l2)
        weights[mode] = both
    by_channel = {label: tuple(values_of) for label, values_of in zip(labels, names, strict=True)}
    return Ranker(by_channel, scale, weights, molecules, by_mode)


def _centred(features: npt.NDArray[np.floating], lists: Ragged) -> Floats:
    """Features as differences to the mean of their list, which is all that a list can tell."""
    values = np.asarray(features, np.float64)
    if not len(values):
        return values
    means = np.add.reduceat(values, lists.starts, axis=0) / lists.counts[:, None]
    return np.asarray(values - np.repeat(means, lists.counts, axis=0))


def _shortlist(contributions: npt.NDArray[np.floating], counts: Any) -> npt.NDArray[np.bool_]:
    """Candidates with no fewer log-odds than the 30th of their list."""
    lists, total = Ragged(np.asarray(counts, np.int64)), contributions.sum(1, dtype=np.float64)
    order = np.lexsort((-total, lists.list_index))
    last = lists.starts + np.minimum(lists.counts, SHORTLIST) - 1
    return np.asarray(total >= lists.repeat_per_list(total[order[last]]))


def _with_standing(
    features: Sequence[npt.NDArray[np.floating]], number: int, lists: Ragged
) -> list[npt.NDArray[np.floating]]:
    """Features; from a channel on, also in units of their spread within each list."""
    joined = list(features[:number])
    for values in features[number:]:
        centred = _centred(values, lists)
        scale = np.sqrt(np.add.reduceat(centred**2, lists.starts, axis=0) / lists.counts[:, None])
        unit = np.maximum(np.repeat(scale, lists.counts, axis=0), _MIN_SPREAD)
        joined.append(np.hstack([values, centred / unit]))
    return joined


def _names_with_standing(names: Sequence[str]) -> list[str]:
    return [*names, *(f"{name}, standardised" for name in names)]


def _log_sums(values: Floats, lists: Ragged) -> Floats:
    """Logarithm of the sum of exponentials, for each list."""
    top = lists.max(values)
    return np.asarray(top + np.log(lists.sum(np.exp(values - lists.repeat_per_list(top)))))
