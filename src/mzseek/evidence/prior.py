"""Channel: a prior over molecules that is blind to the spectrum."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack

from mzseek.chem.molecules import DESCRIPTORS
from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import read_labels, read_values
from mzseek.core.registry import option
from mzseek.evidence.model import Channel, ChannelState, Features
from mzseek.evidence.queries import Ints, Molecules, Queries, TrainingSet
from mzseek.evidence.ranker import truth_slope
from mzseek.parallel.engine import Progress, silent

Floats = npt.NDArray[np.float64]
PENALTIES = (0.3, 0.1, 0.03, 0.01, 0.003)  # to choose among


@dataclass(frozen=True, eq=False)
class PriorModel:
    """A linear model of which molecules are measured, blind to the spectrum.

    Attributes
    ----------
    weights : float64 array, shape (features,)
    l2 : float
        Penalty that it was fitted with.
    """

    weights: Floats
    l2: float

    def score(self, rows: csr_array) -> Floats:
        """Log-odds of molecules (CSR, shape (molecules, features)), up to a constant of a list."""
        if rows.shape[1] != len(self.weights):
            raise EvidenceError(
                f"molecules have {rows.shape[1]:,} features, and the prior was fitted on "
                f"{len(self.weights):,}"
            )
        return np.asarray(rows @ self.weights, np.float64)

    def arrays(self) -> dict[str, Floats]:
        """Weights and penalty as arrays."""
        return {"weights": self.weights, "l2": np.array([self.l2])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "PriorModel":
        """From what `arrays` returned; raises `EvidenceError` where it is something else."""
        try:
            weights = np.asarray(arrays["weights"], np.float64)
            l2 = float(np.asarray(arrays["l2"], np.float64).reshape(()))
        except (KeyError, ValueError, TypeError) as error:
            raise EvidenceError(f"the arrays are no prior ({error})") from error
        if weights.ndim != 1 or not np.isfinite(weights).all():
            raise EvidenceError("the arrays are no prior (weights are no row of numbers)")
        return cls(weights, l2)


def prior_features(bits: csr_array, descriptors: npt.ArrayLike) -> csr_array:
    """Features of molecules: fingerprint bits, their number, and descriptors.

    Parameters
    ----------
    bits : CSR of 0/1, shape (molecules, bits)
    descriptors : array, shape (molecules, descriptors)
        See `mzseek.chem.molecules`.

    Returns
    -------
    CSR of float32, shape (molecules, bits + 1 + descriptors)

    Examples
    --------
    >>> prior_features(csr_array(np.array([[1, 0, 1]])), [[2.5]]).toarray().tolist()
    [[1.0, 0.0, 1.0, 2.0, 2.5]]
    """
    numbers = np.column_stack([np.diff(bits.indptr), np.asarray(descriptors)]).astype(np.float32)
    return csr_array(hstack([bits.astype(np.float32), csr_array(numbers)], format="csr"))


def fit_prior_model(
    rows: csr_array,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    members: npt.ArrayLike | None = None,
    l2: float = 0.01,
) -> PriorModel:
    """Fit the model under which the truths of lists are most probable.

    Minimises the mean over lists of −log Σ p of the labelled ones, p = softmax(scores), plus
    l2/2 · |weights|². Features other than 0 and 1 count in units of their standard deviation. The
    problem is convex, and is solved from zero by L-BFGS: the same lists give the same weights.

    Parameters
    ----------
    rows : CSR, shape (molecules, features)
    counts : int array, shape (lists,)
        Candidates in each list.
    labels : bool array, shape (candidates of all lists,)
        Marks the truth; several a list share its probability.
    members : int array, shape (candidates of all lists,), optional
        The row of each candidate; by default, each has its own.
    l2 : float

    Raises
    ------
    EvidenceError
        Lengths do not fit, a list has no label, or the penalty is not above 0.

    Examples
    --------
    >>> rows = csr_array(np.eye(2))  # the truth is the first of two molecules in 3 lists of 4
    >>> prior = fit_prior_model(rows, [2] * 4, [1, 0] * 3 + [0, 1], members=[0, 1] * 4, l2=1e-6)
    >>> np.exp(prior.score(rows)[0] - prior.score(rows)[1]).round(2).item()
    3.0
    """
    if not l2 > 0:
        raise EvidenceError(f"the penalty is {l2}, expected above 0")
    member = np.arange(rows.shape[0]) if members is None else np.asarray(members, np.int64)
    _, lists = read_values(np.zeros(len(member)), counts, "members", EvidenceError, np.float64)
    if member.min() < 0 or member.max() >= rows.shape[0]:
        raise EvidenceError(f"members are no indices of {rows.shape[0]:,} rows")
    truth = read_labels(labels, lists, EvidenceError)
    scale = _scales(rows)
    columns = csr_array(rows.T)  # twice as fast to multiply with as the view

    def loss(at: Floats) -> tuple[float, Floats]:
        slope, log_p = truth_slope((rows @ (scale * at))[member], lists, truth)
        of_row = np.bincount(member, slope, minlength=rows.shape[0]) / len(lists)
        return -log_p.mean() + 0.5 * l2 * float(at @ at), scale * (columns @ of_row) + l2 * at

    options = {"maxiter": 200, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-6}
    solution = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return PriorModel(np.asarray(scale * solution.x, np.float64), l2)


def log_probability(scores: npt.ArrayLike, counts: npt.ArrayLike, labels: npt.ArrayLike) -> Floats:
    """Log p of the truth of each list, p = softmax(scores).

    Examples
    --------
    >>> log_probability([0.0, 0.0], [2], [True, False]).round(3).tolist()
    [-0.693]
    """
    values, lists = read_values(scores, counts, "scores", EvidenceError, np.float64)
    return truth_slope(values, lists, read_labels(labels, lists, EvidenceError))[1]


def _scales(rows: csr_array) -> Floats:
    """Scales of features: 1 for bits, else so that their standard deviation is 1."""
    is_bit = np.ones(rows.shape[1], bool)
    is_bit[rows.indices[(rows.data != 0) & (rows.data != 1)]] = False
    scales = is_bit.astype(np.float64)
    numbers = np.flatnonzero(~is_bit)
    deviation = rows[:, numbers].toarray().std(axis=0, dtype=np.float64)
    # A constant feature keeps the scale 0, and so no weight.
    scales[numbers[deviation > 0]] = 1 / deviation[deviation > 0]
    return scales


@dataclass(frozen=True)
class PriorOptions:
    """Options of the prior."""

    l2: float = option(0.03, "penalty on the squares of weights", above=0)


class Prior(Channel):
    """How much a candidate looks like molecules that were measured."""

    name: ClassVar[str] = "prior"
    kind: ClassVar[str] = "prior"
    options_type: ClassVar[type] = PriorOptions
    sees_spectrum: ClassVar[bool] = False
    feature_names = ("measured",)

    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Fit weights of bits and descriptors, every molecule counting once."""
        queries = training_set.queries.in_canonical_order()
        _, first = np.unique(queries.inchikey14, return_index=True)
        once = queries.only(first)
        members, index = np.unique(once.candidates, return_inverse=True)
        rows = _rows(once.molecules, members)
        model = fit_prior_model(rows, once.counts, once.labels, members=index, l2=self.options.l2)
        kind = training_set.molecules.fingerprint
        metadata = {"fingerprint": kind, "descriptors": list(DESCRIPTORS)}
        return ChannelState(model.arrays(), metadata, training_set.molecules_used)

    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Log-odds of a candidate, whatever the spectrum."""
        members, index = np.unique(queries.candidates, return_inverse=True)
        scores = self.log_odds(state, queries.molecules, members)
        return scores[index].astype(np.float32)[:, None]

    def log_odds(self, state: ChannelState, molecules: Molecules, rows: Ints) -> Floats:
        """Log-odds of the molecules at distinct rows of a table, up to a constant of a list.

        Raises
        ------
        EvidenceError
            It was fitted on other fingerprints or descriptors than these molecules have.
        """
        kind = state.metadata["fingerprint"]
        if kind != molecules.fingerprint:
            raise EvidenceError(
                f"the prior is over {kind} bits, and candidates have {molecules.fingerprint}"
            )
        if list(state.metadata["descriptors"]) != list(DESCRIPTORS):
            raise EvidenceError("the prior is over other descriptors than there are; fit it again")
        if not len(rows):
            return np.zeros(0)
        return PriorModel.from_arrays(state.arrays).score(_rows(molecules, rows))


def _rows(molecules: Molecules, rows: Ints) -> csr_array:
    return prior_features(molecules.fingerprints(rows), molecules.descriptors(rows))
