import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from mzseek.chem import exact_mass, formula, inchikey_block, parse_molecule
from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecules import (
    describe_molecule,
    describe_structure,
    parse_mol_block,
    parse_structure,
)
from mzseek.core.errors import MoleculeError
from mzseek.datasets.demo.molecules import demo_molecules

MOLECULES = [molecule.smiles for molecule in demo_molecules(0, 200)]
# More neighbours than InChI allows: a molecule without an InChIKey.
NAMELESS = "[U]" + "(F)" * 21


def test_a_description_says_what_rdkit_says() -> None:
    for smiles in ("CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C[N+](C)(C)C", "[2H]C", "OC(=O)[C@H](N)C"):
        molecule = Chem.MolFromSmiles(smiles)
        found = describe_molecule(molecule)
        assert found.smiles == Chem.CanonSmiles(smiles)
        assert found.formula == rdMolDescriptors.CalcMolFormula(molecule) == formula(smiles)
        assert found.mass == rdMolDescriptors.CalcExactMolWt(molecule) == exact_mass(smiles)
        assert found.inchikey == Chem.MolToInchiKey(molecule)
        assert found.key == found.inchikey14 == inchikey_block(smiles)


@given(smiles=st.sampled_from(MOLECULES), seed=st.integers(0, 2**31 - 1))
def test_a_molecule_is_one_however_it_is_written(smiles: str, seed: int) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    written = Chem.MolToRandomSmilesVect(molecule, 1, randomSeed=seed)[0]
    wanted = describe_structure(smiles)
    assert describe_structure(written) == wanted
    assert describe_structure(f"{written}.[Na+].[Cl-]").identity == wanted.identity


def test_stereo_and_charge_make_no_other_molecule_isotopes_do() -> None:
    wanted = describe_structure("CC(N)C(=O)O").identity
    for same in ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "C[C@H]([NH3+])C(=O)[O-]"):
        assert (
            describe_structure(same).identity
            == describe_structure(same, keep_stereo=True).identity
            == wanted
        )
    assert "@" in describe_structure("C[C@H](N)C(=O)O", keep_stereo=True).smiles
    labelled = describe_structure("[13CH3]C(N)C(=O)O")
    assert labelled.key == wanted[0]
    assert labelled.identity != wanted
    assert describe_structure("[2H]CC(N)C(=O)O").identity != labelled.identity


def test_what_inchi_cannot_name_is_told_apart_by_its_smiles() -> None:
    one, other = describe_structure(NAMELESS), describe_structure(NAMELESS.replace("F", "Cl", 1))
    assert one.inchikey == one.inchikey14 == ""
    assert one.key == f"SMILES={one.smiles}"
    assert one.identity != other.identity


@given(smiles=st.sampled_from(MOLECULES))
def test_an_unlabelled_molecule_weighs_what_its_formula_says(smiles: str) -> None:
    found = describe_structure(smiles)
    assert parse_formula(found.formula).mass == pytest.approx(found.mass, abs=1e-9)


def test_charged_formulas_lack_electrons() -> None:
    for smiles in ("C[N+](C)(C)C", "[Na+]", "CC(=O)[O-]", "[Fe+3]"):
        found = describe_molecule(parse_molecule(smiles))
        assert parse_formula(found.formula).mass == pytest.approx(found.mass, abs=1e-9)


def test_text_is_taken_for_what_it_is() -> None:
    assert Chem.MolToSmiles(parse_structure("1S/CH4/h1H4")) == "C"
    assert Chem.MolToSmiles(parse_structure("OCC")) == "CCO"
    amide = "InChI=1S/C2H5NO/c1-2(3)4/h1H3,(H2,3,4)"
    assert describe_structure(amide).smiles == "CC(N)=O"  # not the iminol that RDKit reads
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    assert Chem.MolToSmiles(parse_mol_block(block)) == "CCO"


@pytest.mark.parametrize("text", ["", "C1CC", "InChI=1S/nonsense", "not SMILES", "*C"])
def test_what_is_no_molecule_says_why(text: str) -> None:
    with pytest.raises(MoleculeError):
        describe_structure(text)


def test_a_block_that_is_none_says_so() -> None:
    with pytest.raises(MoleculeError, match="the MOL block cannot be read"):
        parse_mol_block("no block")
