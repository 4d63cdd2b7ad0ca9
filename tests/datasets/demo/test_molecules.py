"""The simulated demo set's molecules: tables are right, draws are hard and repeatable."""

from __future__ import annotations

from collections import Counter

import pytest
from rdkit import Chem
from rdkit.Chem.rdMolDescriptors import CalcExactMolWt, CalcMolFormula

from mzseek.chem.molecules import inchikey14_of
from mzseek.datasets.demo.molecules import (
    ELEMENTS,
    MASS_RANGE,
    MIN_GROUP,
    DemoMolecule,
    demo_molecules,
    read_table,
)

KNOWN = read_table("known.tsv")


@pytest.fixture(scope="module")
def drawn() -> list[DemoMolecule]:
    return demo_molecules()


@pytest.fixture(scope="module")
def mols(drawn: list[DemoMolecule]) -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(molecule.smiles) for molecule in drawn]


@pytest.mark.parametrize("row", KNOWN, ids=[row["name"] for row in KNOWN])
def test_known_formula_is_that_of_its_smiles(row: dict[str, str]) -> None:
    mol = Chem.MolFromSmiles(row["smiles"])
    assert mol is not None
    assert CalcMolFormula(mol) == row["formula"]


def test_known_names_and_molecules_are_distinct() -> None:
    assert len({row["name"] for row in KNOWN}) == len(KNOWN) >= 100
    identities = {inchikey14_of(Chem.MolFromSmiles(row["smiles"])) for row in KNOWN}
    assert len(identities) == len(KNOWN)


def test_every_scaffold_declares_the_kind_of_each_attachment_point() -> None:
    kinds = {"a": (True, True), "k": (True, False), "s": (True, False)}
    for row in read_table("scaffolds.tsv"):
        mol = Chem.MolFromSmiles(row["smiles"])
        points = {a.GetAtomMapNum(): a for a in mol.GetAtoms() if a.GetAtomicNum() == 0}
        assert sorted(points) == list(range(1, len(row["sites"]) + 1)), row["name"]
        for number, kind in enumerate(row["sites"], start=1):
            (anchor,) = points[number].GetNeighbors()
            if kind == "h":
                assert anchor.GetSymbol() in ("N", "O"), row["name"]
            else:
                found = (anchor.GetSymbol() == "C", anchor.GetIsAromatic())
                assert found == kinds[kind], row["name"]


def test_every_substituent_fits_every_site_it_is_allowed_at() -> None:
    substituents = read_table("substituents.tsv")
    for scaffold in read_table("scaffolds.tsv"):
        for number, kind in enumerate(scaffold["sites"], start=1):
            for substituent in substituents:
                if kind not in substituent["sites"]:
                    continue
                smiles = scaffold["smiles"].replace(
                    f"[*:{number}]", substituent["smiles"].removeprefix("[*]")
                )
                for other in range(1, len(scaffold["sites"]) + 1):
                    smiles = smiles.replace(f"[*:{other}]", "[H]")
                mol = Chem.MolFromSmiles(smiles)
                assert mol is not None, (scaffold["name"], substituent["name"])
                assert "." not in smiles


def test_size_and_known_molecules(drawn: list[DemoMolecule]) -> None:
    assert len(drawn) == 3000
    assert [m.name for m in drawn if m.source == "known"] == [row["name"] for row in KNOWN]
    assert all(m.name is None for m in drawn if m.source != "known")
    assert {m.source for m in drawn} == {"known", "enumerated"}


def test_molecules_are_distinct_also_as_tautomers(mols: list[Chem.Mol]) -> None:
    assert len({inchikey14_of(mol) for mol in mols}) == len(mols)


def test_smiles_are_canonical_neutral_and_flat(
    drawn: list[DemoMolecule], mols: list[Chem.Mol]
) -> None:
    for molecule, mol in zip(drawn, mols, strict=True):
        assert Chem.MolToSmiles(mol) == molecule.smiles
        assert not set("@/\\.*") & set(molecule.smiles)
        assert Chem.GetFormalCharge(mol) == 0
        assert {atom.GetSymbol() for atom in mol.GetAtoms()} <= set(ELEMENTS)


def test_masses_lie_in_range(mols: list[Chem.Mol]) -> None:
    masses = [CalcExactMolWt(mol) for mol in mols]
    assert min(masses) >= MASS_RANGE[0]
    assert max(masses) <= MASS_RANGE[1]


def test_formula_groups_are_well_filled(drawn: list[DemoMolecule], mols: list[Chem.Mol]) -> None:
    formulas = [CalcMolFormula(mol) for mol in mols]
    sizes = Counter(formulas)
    rivals = sum(sizes[formula] - 1 for formula in formulas) / len(formulas)
    assert rivals >= 10
    assert max(sizes.values()) <= 60
    grown = {f for f, m in zip(formulas, drawn, strict=True) if m.source == "enumerated"}
    assert sum(sizes[f] >= MIN_GROUP for f in grown) >= 0.98 * len(grown)


def test_most_known_molecules_have_rivals(drawn: list[DemoMolecule], mols: list[Chem.Mol]) -> None:
    sizes = Counter(CalcMolFormula(mol) for mol in mols)
    alone = sum(sizes[row["formula"]] < MIN_GROUP for row in KNOWN)
    assert alone < 0.4 * len(KNOWN)


def test_same_seed_same_molecules(drawn: list[DemoMolecule]) -> None:
    assert demo_molecules(seed=0, size=3000) == drawn


def test_another_seed_draws_other_molecules() -> None:
    first, second = (set(demo_molecules(seed=seed, size=600)) for seed in (1, 2))
    known = {m for m in first if m.source == "known"}
    assert known <= second
    assert len(first & second) - len(known) < 0.5 * (600 - len(known))


@pytest.mark.parametrize("extra", [0, 1, 9, 50])
def test_any_size_from_the_known_ones_upwards(extra: int) -> None:
    assert len(demo_molecules(size=len(KNOWN) + extra)) == len(KNOWN) + extra


def test_size_below_the_known_ones_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {len(KNOWN)}"):
        demo_molecules(size=len(KNOWN) - 1)
