"""Transformations: their mass differences, their sites, and their reverses."""

import pytest
from rdkit.Chem import MolFromSmiles, MolToSmiles, rdMolDescriptors

from mzseek.proposals.generation import products
from mzseek.proposals.transformations import transformations

BY_NAME = {one.name: one for one in transformations()}
MOLECULES = (
    "CC(=O)Nc1ccc(O)cc1",
    "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
    "NC(Cc1c[nH]c2ccccc12)C(=O)O",
    "CCC(=O)OCC=CC1CCCO1",
    "CSCCC(=O)NCC#N",
    "Clc1ccncc1[N+](=O)[O-]",
)


def made(name: str, smiles: str) -> set[str]:
    return set(map(MolToSmiles, products(BY_NAME[name], MolFromSmiles(smiles))))


def test_names_are_unique_and_reactions_valid():
    assert len(BY_NAME) == len(transformations()) > 600
    for one in transformations():
        for reaction in one.compiled:
            assert reaction.Validate(silent=True)[1] == 0, one.name


@pytest.mark.slow
def test_products_have_the_stated_mass_difference():
    tried = 0
    for smiles in MOLECULES:
        parent = MolFromSmiles(smiles)
        mass = rdMolDescriptors.CalcExactMolWt(parent)
        for one in transformations():
            for product in products(one, parent):
                if one.difference is not None:
                    off = rdMolDescriptors.CalcExactMolWt(product) - mass - one.difference
                    assert abs(off) < 1e-6, (one.name, MolToSmiles(product))
                    tried += 1
    assert tried > 1_000


@pytest.mark.parametrize(
    ("name", "parent", "expected"),
    [
        ("add methyl (n)", "c1ccc2[nH]ccc2c1", {"Cn1ccc2ccccc21"}),
        ("remove methyl (n)", "Cn1ccc2ccccc21", {"c1ccc2[nH]ccc2c1"}),
        ("add hydroxyl (c)", "c1ccccc1", {"Oc1ccccc1"}),
        ("add hydroxyl (c)", "Cc1ccccc1", {"Cc1ccccc1O", "Cc1cccc(O)c1", "Cc1ccc(O)cc1"}),
        ("add sulfonic acid (O)", "Oc1ccccc1", {"O=S(=O)(O)Oc1ccccc1"}),
        ("add glucuronyl (O)", "CO", {"COC1OC(C(=O)O)C(O)C(O)C1O"}),
        ("remove glucuronyl (O)", "COC1OC(C(=O)O)C(O)C(O)C1O", {"CO"}),
        ("oxidise alcohol", "CC(O)C", {"CC(C)=O"}),
        ("oxidise alcohol", "CC(C)(C)O", set()),
        ("dehydrate", "CC(O)C", {"C=CC"}),
        ("oxidise tertiary amine to N-oxide", "CN(C)C", {"C[N+](C)(C)[O-]"}),
        ("oxidise tertiary amine to N-oxide", "CC(=O)N(C)C", set()),
        ("reduce N-oxide", "C[N+](C)(C)[O-]", {"CN(C)C"}),
        ("oxidise sulfide to sulfoxide", "CSC", {"CS(C)=O"}),
        ("conjugate acid with glycine", "O=C(O)c1ccccc1", {"O=C(O)CNC(=O)c1ccccc1"}),
        ("release glycine from amide", "O=C(O)CNC(=O)c1ccccc1", {"O=C(O)c1ccccc1"}),
        ("lactonise or lactamise", "O=C(O)CCCO", {"O=C1CCCO1"}),
        ("replace chloro by bromo", "Clc1ccccc1", {"Brc1ccccc1"}),
        ("dealkylate", "COc1ccccc1", {"Oc1ccccc1"}),
        ("replace aromatic CH by N", "c1ccccc1", {"c1ccncc1"}),
    ],
)
def test_products(name, parent, expected):
    assert made(name, parent) == expected


@pytest.mark.parametrize("name", ["methyl", "acetyl", "hexosyl", "phosphate", "glutathionyl"])
def test_removing_a_group_is_the_reverse_of_adding_it(name):
    for smiles in MOLECULES[:3]:
        for site in ("O", "N", "n", "c", "C"):
            if f"add {name} ({site})" not in BY_NAME:
                continue
            for product in made(f"add {name} ({site})", smiles):
                assert MolToSmiles(MolFromSmiles(smiles)) in made(
                    f"remove {name} ({site})", product
                )


def test_unstable_products_are_left_out():
    assert made("add hydroxyl (C)", "CO") == set()  # a hydrate of formaldehyde
    assert made("add hydroxyl (C)", "OCO") == set()
    assert made("add chloro (C)", "CN") == {"NCCl"}
