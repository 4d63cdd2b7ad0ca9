import pytest
from rdkit import Chem

from mzseek.chem import parse_molecule, standardise


def standard(smiles: str, **options: bool) -> str:
    return Chem.MolToSmiles(standardise(parse_molecule(smiles), **options))


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CC(=O)[O-].[Na+]", "CC(=O)O"),
        ("CN.Cl", "CN"),
        ("C[NH3+].[Cl-]", "CN"),
        ("CC([NH3+])C(=O)[O-]", "CC(N)C(=O)O"),
        ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"),  # no proton to take it away
        ("C[N+](=O)[O-]", "C[N+](=O)[O-]"),
        ("F/C=C/F", "FC=CF"),
        ("C[C@H](O)CC", "CCC(C)O"),
        ("c1ccccc1.CCO", "c1ccccc1"),
        ("[2H]C([2H])([2H])O", "[2H]C([2H])([2H])O"),
    ],
)
def test_standard_forms(smiles: str, expected: str) -> None:
    assert standard(smiles) == Chem.CanonSmiles(expected)


def test_stereo_is_kept_on_request() -> None:
    assert standard("C[C@H](O)CC.Cl", keep_stereo=True) == Chem.CanonSmiles("C[C@H](O)CC")


@pytest.mark.parametrize("smiles", ["CC(=O)[O-].[Na+]", "C[C@H](N)C(=O)O", "Oc1ccccc1"])
def test_a_standard_form_is_its_own(smiles: str) -> None:
    assert standard(standard(smiles)) == standard(smiles)


def test_the_input_is_left_alone() -> None:
    molecule = parse_molecule("C[C@H](O)CC")
    standardise(molecule)
    assert Chem.MolToSmiles(molecule) == Chem.CanonSmiles("C[C@H](O)CC")


def test_smiles_are_taken_too() -> None:
    assert Chem.MolToSmiles(standardise("CC(=O)[O-].[Na+]")) == "CC(=O)O"
