"""Candidate sets, and decisions by looking at every one of them."""

from functools import lru_cache

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array, csr_array, csr_matrix

UTILITIES = ("hit", "bits", "tanimoto", "cosine", "f1")
SIMILARITIES = ("bits", "tanimoto", "cosine", "f1")
TOY = [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [1, 1, 0, 0, 1]]
TOY_P = [0.05, 0.25, 0.30, 0.40]


def worth(utility: str, decisions, rows) -> np.ndarray:
    """Each utility as it is defined, of each decision (first axis) for each row (second)."""
    a = np.asarray(decisions, bool)[:, None, :]
    b = np.asarray(rows, bool)[None, :, :]
    if utility == "hit":
        return (a == b).all(-1).astype(float)
    if utility == "bits":
        return (a == b).mean(-1)
    both, one, other = (a & b).sum(-1), a.sum(-1), b.sum(-1)
    below = {
        "tanimoto": (a | b).sum(-1).astype(float),
        "cosine": np.sqrt(one) * np.sqrt(other),
        "f1": (one + other) / 2,
    }[utility]
    some = (one > 0) | (other > 0)
    return np.where(some, both / np.where(below > 0, below, 1), 1.0)


@lru_cache
def every(bits: int) -> np.ndarray:
    """All of {0,1}^m."""
    return ((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1).astype(np.uint8)


def expected_by_hand(utility: str, decisions, rows, p) -> np.ndarray:
    """Expected utility of each decision, twins not merged."""
    return worth(utility, decisions, rows) @ np.asarray(p)


def untidy(rows) -> csr_array:
    """CSR with falling indices, ones in two halves and zeros that are written down."""
    rows = np.asarray(rows)
    indices, data, indptr = [], [], [0]
    for row in rows:
        for bit in range(rows.shape[1])[::-1]:
            parts = [0.5, 0.5] if row[bit] else [0.0]
            indices += [bit] * len(parts)
            data += parts
        indptr.append(len(indices))
    return csr_array((np.array(data), np.array(indices, int), np.array(indptr)), rows.shape)


def untidy_flags(rows) -> csr_array:
    """CSR of booleans with zeros that are written down, the bits in falling order."""
    rows = np.asarray(rows, bool)
    count, width = rows.shape
    indices = np.tile(np.arange(width)[::-1], count)
    return csr_array((rows[:, ::-1].ravel(), indices, np.arange(count + 1) * width), rows.shape)


FORMS = {
    "lists": lambda rows: np.asarray(rows).tolist(),
    "flags": lambda rows: np.asarray(rows, bool),
    "floats": lambda rows: np.asarray(rows, np.float32),
    "csr": lambda rows: csr_array(np.asarray(rows)),
    "csr of flags": lambda rows: csr_array(np.asarray(rows, bool)),
    "matrix": lambda rows: csr_matrix(np.asarray(rows)),
    "coo": lambda rows: coo_array(np.asarray(rows)),
    "untidy": untidy,
    "untidy flags": untidy_flags,
}


@st.composite
def candidate_sets(draw, bits: int = 6, rows: int = 7, least: int = 1, distinct: bool = False):
    """Rows and probabilities: zero vectors, twins, single candidates, nothing or all on one row."""
    width = draw(st.integers(2 if distinct else 1, bits))
    if distinct:
        most = min(rows, 2**width)
        codes = draw(st.lists(st.integers(0, 2**width - 1), min_size=least, max_size=most,
                              unique=True))  # fmt: skip
        found = every(width)[codes]
    else:
        count = draw(st.integers(least, rows))
        found = draw(arrays(np.uint8, (count, width), elements=st.integers(0, 1)))
        special = draw(st.sampled_from(["as they are", "zero", "twins", "few bits"]))
        if special == "zero":
            found[draw(st.integers(0, count - 1))] = 0
        elif special == "twins":
            found[draw(st.integers(0, count - 1))] = found[draw(st.integers(0, count - 1))]
        elif special == "few bits":
            found[:, draw(st.integers(0, width - 1)) :] = 0
    return found, draw(probabilities(len(found)))


@st.composite
def probabilities(draw, count: int):
    """Small whole numbers over their sum, so that there are ties; many zeros; or all on one."""
    kind = draw(st.sampled_from(["even", "any", "sparse", "degenerate"]))
    weights = np.ones(count)
    if kind == "any":
        weights = np.array(
            draw(st.lists(st.integers(1, 40), min_size=count, max_size=count)), float
        )
    elif kind == "sparse":
        few = st.sampled_from([0, 0, 0, 1, 2, 5])
        weights = np.array(draw(st.lists(few, min_size=count, max_size=count)), float)
    if kind == "degenerate" or not weights.any():
        weights = np.zeros(count)
        weights[draw(st.integers(0, count - 1))] = 1
    return weights / weights.sum()


def draw_truths(rng, p, counts) -> np.ndarray:
    """Label one candidate of each list, drawn with its probability."""
    labels = np.zeros(len(p), bool)
    for end, count in zip(np.cumsum(counts), counts, strict=True):
        labels[end - count + rng.choice(count, p=p[end - count : end])] = True
    return labels
