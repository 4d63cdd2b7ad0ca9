"""Generation: molecules of a mass, each once, whatever the order of the parents."""

import pytest

from mzseek.chem import exact_mass, inchikey_block
from mzseek.proposals.generation import generate

PARACETAMOL = "CC(=O)Nc1ccc(O)cc1"


def keys(parents, target, **options):
    return [one.molecule.key for one in generate(parents, exact_mass(target), 1e-3, **options)]


@pytest.mark.parametrize(
    ("parent", "product"),
    [
        ("CC(=O)Nc1ccccc1", PARACETAMOL),
        (PARACETAMOL, "CC(=O)Nc1ccccc1"),
        (PARACETAMOL, "CC(=O)Nc1ccc(OC2OC(C(=O)O)C(O)C(O)C2O)cc1"),
        ("Cn1c(=O)c2c(ncn2C)n(C)c1=O", "Cn1c(=O)c2[nH]cnc2n(C)c1=O"),
        ("CC(=O)Nc1cccc(O)c1", PARACETAMOL),
        ("CC(=O)Oc1ccccc1C(=O)OCC", "CC(=O)Oc1ccccc1C(=O)O"),
        ("CC(=O)[O-]", "O=C(O)CO"),
        ("N[C@@H](C)C(=O)O", "CC(N)C(=O)NCC(=O)O"),
    ],
)
def test_a_relative_is_found_by_one_step(parent, product):
    assert inchikey_block(product) in keys([parent], product)


def test_a_molecule_two_steps_away_is_found_only_by_two():
    parent, target = "c1ccccc1C(=O)O", "COc1ccc(C(=O)OC)cc1"
    assert inchikey_block(target) not in keys([parent], target)
    assert inchikey_block(target) in keys([parent], target, two_step_limit=500)


def test_products_are_distinct_neutral_and_of_the_mass():
    target = exact_mass(PARACETAMOL)
    made = generate(["CC(=O)Nc1ccccc1", "Nc1ccc(O)cc1", "CC(=O)Nc1ccccc1O"], target, 1e-3)
    listed = [one.molecule.key for one in made]
    assert listed == sorted(set(listed))
    assert all(abs(one.molecule.mass - target) <= 1e-3 for one in made)
    assert not any(mark in one.molecule.smiles for one in made for mark in "@/\\.+")
    own = next(one for one in made if one.molecule.key == inchikey_block(PARACETAMOL))
    assert {derivation.parent for derivation in own.derivations} == {0, 1, 2}


def test_the_order_of_parents_does_not_matter():
    parents = ["CC(=O)Nc1ccccc1", "Nc1ccc(O)cc1", "CC(=O)Nc1ccccc1O"]
    target = exact_mass(PARACETAMOL)
    forward, backward = (
        [one.molecule for one in generate(order, target, 1e-3)]
        for order in (parents, parents[::-1])
    )
    assert forward == backward


def test_a_mass_that_no_transformation_explains_has_no_products():
    assert generate([PARACETAMOL], exact_mass(PARACETAMOL) + 7.5, 1e-3) == []
