"""The tree of classes, and answers from probabilities over it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzseek.classes.posterior import NONE_OF_THESE, ClassReference, compound_class
from mzseek.classes.taxonomy import LEVELS, Taxonomy, padded, parse_lineage

TREE = Taxonomy.of(
    [("A", "a", "x"), ("A", "a", "y"), ("A", "b"), ("B", "c"), ("B",)] * 2 + [("C", "d", "z")],
    min_molecules=2,
)


def test_rare_classes_and_missing_ones_belong_to_what_is_left_beside_their_siblings() -> None:
    assert [len(nodes) for nodes in TREE.nodes] == [3, 6, 8]
    asked = [("A", "a", "x"), ("A", "a", "rare"), ("A", "rare"), ("B",), ("C", "d", "z"), ()]
    named = [TREE.lineages[TREE.index(lineage)] for lineage in asked]
    assert named == [
        ("A", "a", "x"), ("A", "a", ""), ("A", "", ""), ("B", "", ""), ("", "", ""), ("", "", ""),
    ]  # fmt: skip


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_a_child_is_never_more_probable_than_its_parent(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    logits = [rng.normal(0, 20, (rows, len(nodes))) for nodes in TREE.nodes]
    p = TREE.joined(logits)
    levels = [TREE.at_level(p, level) for level in range(len(LEVELS))]
    for level, parents in enumerate(TREE.parents[1:], 1):
        assert (levels[level] <= levels[level - 1][:, parents] + 1e-12).all()
    for of_level in levels:
        np.testing.assert_allclose(of_level.sum(1), 1)
    # The softmax of a plain loop.
    first = np.exp(logits[0] - logits[0].max(1, keepdims=True))
    np.testing.assert_allclose(levels[0], first / first.sum(1, keepdims=True), atol=1e-12)


def posterior(**named: float) -> np.ndarray:
    p = np.zeros(len(TREE))
    for name, probability in named.items():
        p[TREE.lineages.index(padded([part for part in name.split("_") if part]))] = probability
    return p


@pytest.mark.parametrize(
    ("p", "answer"),
    [
        (posterior(A_a_x=0.8, B_c=0.2), ("x", "subclass", 0.8)),
        (posterior(A_a_x=0.5, A_a_y=0.3, B_c=0.2), ("a", "class", 0.8)),
        (posterior(A_a_x=0.4, A_b=0.4, B_c=0.2), ("A", "superclass", 0.8)),
        (posterior(A=0.9, B=0.1), ("A", "superclass", 0.9)),  # of no class of the tree
        (posterior(_=0.9, B=0.1), (NONE_OF_THESE, "superclass", 0.9)),
        (posterior(A=0.5, B=0.5), ("", "", None)),
    ],
)
def test_the_answer_is_the_deepest_class_that_is_probable_enough(p, answer) -> None:
    found = compound_class(TREE, p, 0.7)
    probability = None if found.probability is None else round(found.probability, 9)
    assert (found.name, found.level, probability) == answer


def test_references_support_the_answer_or_another_class() -> None:
    references = [ClassReference(str(n), "", "C", 0.9, lineage)
                  for n, lineage in enumerate([("A", "a", "y"), ("B",), ("A",)])]  # fmt: skip
    found = compound_class(TREE, posterior(A_a_x=0.5, A_a_y=0.4, B=0.1), 0.7, references)
    assert [found.is_supported_by(one) for one in found.references] == [True, False, False]


def test_lineages_are_read_as_massbank_writes_them() -> None:
    text = "Organic compounds; Lipids and lipid-like molecules; Fatty Acyls; Fatty alcohols; more"
    assert parse_lineage(text) == ("Lipids and lipid-like molecules", "Fatty Acyls",
                                   "Fatty alcohols")  # fmt: skip
    assert parse_lineage("Natural Product; Flavonoid") == ()
