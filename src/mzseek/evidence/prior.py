"""Channel: prior scores of a spectrum-blind scorer."""

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
from mzseek.evidence.channel import Channel, ChannelState, Features
from mzseek.evidence.queries import Lists, Molecules, TrainingSet, in_order
from mzseek.evidence.ranker import truth_slope
from mzseek.parallel.engine import Progress, silent

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
STRENGTHS = (0.3, 0.1, 0.03, 0.01, 0.003)  # of the penalty, to choose among
_STEPS, _KEPT = 200, 20  # of L-BFGS


@dataclass(frozen=True, eq=False)
class Blind:
    """A fitted scorer.

    Attributes
    ----------
    weights : float64 array, shape (features,)
    l2 : float
        Strength of the penalty that it was fitted with.
    """

    weights: Floats
    l2: float

    def score(self, rows: csr_array) -> Floats:
        """Log-odds of molecules, up to what is the same for a whole list.

        Parameters
        ----------
        rows : CSR, shape (molecules, features)

        Returns
        -------
        float64 array, shape (molecules,)
        """
        if rows.shape[1] != len(self.weights):
            raise EvidenceError(
                f"molecules have {rows.shape[1]:,} features, and the blind scorer was fitted on "
                f"{len(self.weights):,}"
            )
        return np.asarray(rows @ self.weights, np.float64)

    def arrays(self) -> dict[str, Floats]:
        """What it has learned, as plain arrays."""
        return {"weights": self.weights, "l2": np.array([self.l2])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "Blind":
        """The scorer that `arrays` describes.

        Raises
        ------
        EvidenceError
            They describe none.
        """
        try:
            weights = np.asarray(arrays["weights"], np.float64)
            strength = float(np.asarray(arrays["l2"], np.float64).reshape(()))
        except (KeyError, ValueError, TypeError) as error:
            raise EvidenceError(f"the arrays are no blind scorer ({error})") from error
        if weights.ndim != 1 or not np.isfinite(weights).all():
            raise EvidenceError("the arrays are no blind scorer (weights are no row of numbers)")
        return cls(weights, strength)


def blind_rows(bits: csr_array, descriptors: npt.ArrayLike) -> csr_array:
    """Features of molecules: the bits of their fingerprints, their number, and descriptors.

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
    >>> blind_rows(csr_array(np.array([[1, 0, 1]])), [[2.5]]).toarray().tolist()
    [[1.0, 0.0, 1.0, 2.0, 2.5]]
    """
    numbers = np.column_stack([np.diff(bits.indptr), np.asarray(descriptors)]).astype(np.float32)
    return csr_array(hstack([bits.astype(np.float32), csr_array(numbers)], format="csr"))


def fit_blind(
    rows: csr_array,
    counts: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    members: npt.ArrayLike | None = None,
    offsets: npt.ArrayLike | None = None,
    l2: float = 0.01,
) -> Blind:
    """The scorer under which the truths of lists are most probable.

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
    offsets : float array, shape (candidates of all lists,), optional
        Scores that are there already: what is learned is what these do not say.
    l2 : float

    Raises
    ------
    EvidenceError
        Lengths do not fit, a list has no label, or the penalty is not above 0.

    Examples
    --------
    >>> rows = csr_array(np.eye(2))  # the truth is the first of two molecules in 3 lists of 4
    >>> blind = fit_blind(rows, [2] * 4, [1, 0] * 3 + [0, 1], members=[0, 1] * 4, l2=1e-6)
    >>> np.exp(blind.score(rows)[0] - blind.score(rows)[1]).round(2).item()
    3.0
    """
    if not l2 > 0:
        raise EvidenceError(f"the penalty is {l2}, expected above 0")
    member = np.arange(rows.shape[0]) if members is None else np.asarray(members, np.int64)
    fixed = np.zeros(len(member)) if offsets is None else offsets
    start, lists = read_values(fixed, counts, "offsets", EvidenceError, np.float64)
    if len(member) != lists.total or member.min() < 0 or member.max() >= rows.shape[0]:
        raise EvidenceError(f"members are no {lists.total:,} places in {rows.shape[0]:,} rows")
    truth = read_labels(labels, lists, EvidenceError)
    scale = _scales(rows)
    columns = csr_array(rows.T)  # twice as fast to multiply with as the view

    def loss(at: Floats) -> tuple[float, Floats]:
        p, log_p = truth_slope((rows @ (scale * at))[member] + start, lists, truth)
        of_row = np.bincount(member, p, minlength=rows.shape[0]) / len(lists)
        return -log_p.mean() + 0.5 * l2 * float(at @ at), scale * (columns @ of_row) + l2 * at

    options = {"maxiter": _STEPS, "maxcor": _KEPT, "ftol": 1e-10, "gtol": 1e-6}
    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return Blind(np.asarray(scale * found.x, np.float64), l2)


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
    """What features are multiplied by: 1 for bits, else so that their deviation is 1."""
    is_bit = np.ones(rows.shape[1], bool)
    is_bit[rows.indices[(rows.data != 0) & (rows.data != 1)]] = False
    scales = is_bit.astype(np.float64)
    numbers = np.flatnonzero(~is_bit)
    deviation = rows[:, numbers].toarray().std(axis=0, dtype=np.float64)
    # What is the same everywhere tells nothing, and is given no weight.
    scales[numbers[deviation > 0]] = 1 / deviation[deviation > 0]
    return scales


@dataclass(frozen=True)
class PriorOptions:
    """Options of the prior."""

    l2: float = option(0.03, "penalty on the squares of weights", above=0)


class Prior(Channel):
    """How much a candidate looks like molecules that were measured."""

    name: ClassVar[str] = "prior"
    options_type: ClassVar[type] = PriorOptions
    sees_spectrum: ClassVar[bool] = False
    feature_names = ("measured",)

    def learn(self, lessons: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Weights of bits and descriptors, every molecule counting once."""
        asked = in_order(lessons.questions)
        _, first = np.unique(asked.blocks, return_index=True)
        once = asked.only(first)
        members, place = np.unique(once.lists.candidates, return_inverse=True)
        rows = _rows(once.lists.molecules, members)
        blind = fit_blind(rows, once.lists.counts, once.labels, members=place, l2=self.options.l2)
        facts = {"fingerprint": lessons.molecules.fingerprint, "descriptors": list(DESCRIPTORS)}
        return ChannelState(blind.arrays(), facts, lessons.learned_from)

    def features(self, learned: ChannelState, lists: Lists) -> Features:
        """Log-odds of a candidate, whatever the spectrum."""
        members, place = np.unique(lists.candidates, return_inverse=True)
        scores = self.log_odds(learned, lists.molecules, members)
        return scores[place].astype(np.float32)[:, None]

    def log_odds(self, learned: ChannelState, molecules: Molecules, members: Ints) -> Floats:
        """The same of molecules that are in no list: places in a table, each once.

        Returns
        -------
        float64 array, shape (members,)
            Up to what is the same for a whole list.

        Raises
        ------
        EvidenceError
            It has learned from other fingerprints or descriptors than these molecules have.
        """
        kind = learned.facts["fingerprint"]
        if kind != molecules.fingerprint:
            raise EvidenceError(
                f"the prior is over {kind} bits, and candidates have {molecules.fingerprint}"
            )
        if list(learned.facts["descriptors"]) != list(DESCRIPTORS):
            raise EvidenceError("the prior is over other descriptors than there are; fit it again")
        if not len(members):
            return np.zeros(0)
        return Blind.from_arrays(learned.arrays).score(_rows(molecules, members))


def _rows(molecules: Molecules, members: Ints) -> csr_array:
    return blind_rows(molecules.fingerprints(members), molecules.descriptors(members))
