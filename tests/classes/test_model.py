"""Votes, weights of the sources, and the posterior over lineages."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from mzseek.classes.formula import composition, coordinates, formula_votes
from mzseek.classes.model import SOURCES, ClassEvidence, ClassModel, fit_weights, reference_votes
from mzseek.classes.structure import StructureModel, fit_structure_model
from mzseek.classes.taxonomy import Taxonomy
from mzseek.core.errors import BundleError

TREE = Taxonomy([("", "", ""), ("A", "", ""), ("A", "a", ""), ("B", "", "")])
LINEAGE = np.array([1, 2, 3, 3] * 20)


def repeated(bits) -> csr_array:
    """Bits several times, since training drops some: a single one is never trusted in full."""
    return csr_array(np.tile(np.asarray(bits, int), 5))


@pytest.fixture(scope="module")
def structure() -> StructureModel:
    # A bit for A or B, a bit for the class a, and one that says nothing.
    bits = np.column_stack([LINEAGE < 3, LINEAGE == 2, np.arange(len(LINEAGE)) % 3 == 0])
    return fit_structure_model(TREE, repeated(bits), LINEAGE, min_molecules=2)


@pytest.fixture(scope="module")
def model(structure: StructureModel) -> ClassModel:
    keys = np.array([f"KEY{number:011d}" for number in range(len(LINEAGE))], "S14")
    formulas = {1: "C6H6", 2: "C20H40O2", 3: "C4H4N4"}
    compositions = np.array([composition(formulas[at]) for at in LINEAGE.tolist()])
    return ClassModel(TREE, keys, LINEAGE, compositions, structure, np.full((3, 5), 0.2))


def test_structures_have_the_classes_of_labelled_molecules_with_the_same_bits(structure) -> None:
    asked = repeated([[1, 0, 0], [1, 1, 1], [0, 0, 0]])
    p = structure.probabilities(asked)
    assert p.argmax(1).tolist() == [1, 2, 3]
    assert (p.max(1) > 0.9).all()
    np.testing.assert_allclose(p.sum(1), 1)
    again = StructureModel.from_arrays(structure.arrays(), TREE, "there")
    np.testing.assert_array_equal(again.probabilities(asked), p)
    # A molecule does not depend on the others, to the last bit.
    alone = [structure.probabilities(asked[[row]])[0] for row in range(3)]
    np.testing.assert_array_equal(alone, p)


def test_a_classifier_of_another_version_is_refused(structure) -> None:
    arrays = structure.arrays()
    del arrays["hidden"]
    with pytest.raises(BundleError, match=r"there: hidden .* make it again"):
        StructureModel.from_arrays(arrays, TREE, "there")


def test_weights_of_another_tree_are_refused(structure) -> None:
    other = Taxonomy([*TREE.lineages, ("C", "", "")])
    with pytest.raises(BundleError, match="there: weights of structures do not fit"):
        StructureModel.from_arrays(structure.arrays(), other, "there")


def test_a_labelled_molecule_has_its_own_class_whatever_its_bits(model) -> None:
    p = model.of_structures(["KEY00000000002", "UNKNOWN"], repeated([[1, 0, 0]] * 2))
    assert p.argmax(1).tolist() == [3, 1]
    assert model.find(["KEY00000000001", "ZZZ", ""]).tolist() == [2, -1, -1]


def test_molecules_of_similar_formulas_vote(model) -> None:
    votes = model.formula_votes("C21H42O2")
    assert votes.argmax() == 2
    excluded = model.formula_votes("C21H42O2", LINEAGE == 2)
    assert excluded[2] == 0
    assert excluded[1] == votes[1]
    assert model.formula_votes("no formula").sum() == 0
    at = coordinates([composition("C6H6")])
    assert formula_votes(at[0], at).tolist() == [1.0]  # the same formula counts in full


def test_the_posterior_goes_from_candidates_to_the_other_sources(model) -> None:
    votes = [np.eye(4)[2] * 9] * 4
    candidates = np.array([0.0, 0.0, 0.0, 1.0])
    missing = model.posterior(ClassEvidence(votes))
    assert missing.argmax() == 2
    mixed = model.posterior(ClassEvidence(votes, candidates, 0.25))
    np.testing.assert_allclose(mixed, 0.75 * missing + 0.25 * candidates)


def test_few_votes_say_little(model) -> None:
    def p_of_b(votes: float) -> float:
        of_b = np.eye(4)[3] * votes
        return float(model.posterior(ClassEvidence([of_b] * 4))[3])

    assert model.prior[3] * 0.9 < p_of_b(0.001) < p_of_b(0.1) < p_of_b(10)


def test_a_source_that_is_right_gets_the_weight() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 4, 300)
    right = np.eye(4)[np.where(rng.random(300) < 0.8, truth, rng.integers(1, 4, 300))]
    wrong = np.eye(4)[rng.integers(1, 4, 300)]
    prior = np.full(4, 0.25)
    weights = fit_weights(TREE, [wrong, right, wrong, wrong], prior, truth, np.ones(300))
    assert weights.shape == (3, len(SOURCES))
    assert (weights[:2, 1] > 2 * np.abs(weights[:2, [0, 2, 3]]).max(1)).all()


def test_the_most_similar_reference_votes_most() -> None:
    votes = reference_votes(np.eye(4)[[1, 3]], [0.5, 1.0])
    assert votes.tolist() == [0.0, 0.0625, 0.0, 1.0]
