"""Parsing, standard form, identity and descriptors of molecules, against RDKit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import Descriptors, rdMolDescriptors

from mzseek.chem import (
    canonical_smiles,
    exact_mass,
    formula,
    inchi_text,
    inchikey_block,
    parse_inchi,
    parse_molecule,
    standardise,
)
from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecules import (
    DESCRIPTORS,
    describe_molecule,
    describe_structure,
    descriptors,
    parse_mol_block,
    parse_structure,
)
from mzseek.core.errors import MoleculeError

from ..molecules import MOLECULES

CAFFEINE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"
ETHANOL = "C2H6O/c1-2-3/h3H,2H2,1H3"
# More neighbours than InChI allows: a molecule without an InChIKey.
NAMELESS = "[U]" + "(F)" * 21


def standard(smiles: str, **options: bool) -> str:
    return Chem.MolToSmiles(standardise(smiles, **options))


def test_caffeine() -> None:
    assert canonical_smiles(CAFFEINE) == "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
    assert exact_mass(CAFFEINE) == pytest.approx(194.080376, abs=1e-6)
    assert formula(CAFFEINE) == "C8H10N4O2"
    assert inchikey_block(CAFFEINE) == "RYYVLZVUVIJVGH"


def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    for text in ("C(C)(C)(C)(C)C", "not a molecule"):
        with pytest.raises(MoleculeError):
            parse_molecule(text)
    inchikey_block("[Na+].[Cl-]")
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize(
    "text",
    [f"InChI=1S/{ETHANOL}", f"1S/{ETHANOL}", f"1/{ETHANOL}", f"InChI: 1S/{ETHANOL}",
     f"inchi=1s/{ETHANOL}", f' "InChI=1S/{ETHANOL}" ', f"InChI = 1S/{ETHANOL}"],
)  # fmt: skip
def test_inchi_with_and_without_its_prefix(text: str) -> None:
    assert Chem.MolToSmiles(parse_inchi(text)) == "CCO"


def test_what_is_no_molecule_is_refused() -> None:
    for text in ("", "CCO", "InChI=", "1S", "1S/", "S/C2H6O", "21S/C", "C1S/C=C/1"):
        assert inchi_text(text) == ""
    for text in ("", "CCO", "InChI=1S/nonsense", "InChI=1S/" + "C" * 9000):
        with pytest.raises(MoleculeError, match="InChI"):
            parse_inchi(text)
    for text in ("C\udcff", "Cé", "名"):
        with pytest.raises(MoleculeError, match="SMILES"):
            parse_molecule(text)
    for text in ("", "C1CC", "InChI=1S/nonsense", "not SMILES", "*C"):
        with pytest.raises(MoleculeError):
            describe_structure(text)
    with pytest.raises(MoleculeError, match="the MOL block cannot be read"):
        parse_mol_block("no block")


def test_text_is_taken_for_what_it_is() -> None:
    assert Chem.MolToSmiles(parse_structure("1S/CH4/h1H4")) == "C"
    assert Chem.MolToSmiles(parse_structure("OCC")) == "CCO"
    amide = "InChI=1S/C2H5NO/c1-2(3)4/h1H3,(H2,3,4)"
    assert describe_structure(amide).smiles == "CC(N)=O"  # not the iminol that RDKit reads
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    assert Chem.MolToSmiles(parse_mol_block(block)) == "CCO"


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
    molecule = parse_molecule(smiles)
    before = Chem.MolToSmiles(molecule)
    assert Chem.MolToSmiles(standardise(molecule)) == standard(smiles) == Chem.CanonSmiles(expected)
    assert standard(standard(smiles)) == standard(smiles)
    assert Chem.MolToSmiles(molecule) == before


def test_stereo_is_kept_on_request() -> None:
    assert standard("C[C@H](O)CC.Cl", keep_stereo=True) == Chem.CanonSmiles("C[C@H](O)CC")


@pytest.mark.parametrize("smiles", [CAFFEINE, "C[N+](C)(C)C", "[2H]C", "OC(=O)[C@H](N)C"])
def test_a_description_agrees_with_rdkit(smiles: str) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    described = describe_molecule(molecule)
    assert described.smiles == Chem.CanonSmiles(smiles)
    assert described.formula == rdMolDescriptors.CalcMolFormula(molecule) == formula(smiles)
    assert described.mass == rdMolDescriptors.CalcExactMolWt(molecule) == exact_mass(smiles)
    assert described.inchikey == Chem.MolToInchiKey(molecule)
    assert described.key == described.inchikey14 == inchikey_block(smiles)


@given(smiles=st.sampled_from(MOLECULES[:200]), seed=st.integers(0, 2**31 - 1))
def test_a_molecule_is_one_however_it_is_written(smiles: str, seed: int) -> None:
    written = Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(smiles), 1, randomSeed=seed)[0]
    expected = describe_structure(smiles)
    assert describe_structure(written) == expected
    assert describe_structure(f"{written}.[Na+].[Cl-]").identity == expected.identity
    assert parse_formula(expected.formula).mass == pytest.approx(expected.mass, abs=1e-9)


def test_stereo_and_charge_make_no_other_molecule_isotopes_do() -> None:
    expected = describe_structure("CC(N)C(=O)O").identity
    for same in ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "C[C@H]([NH3+])C(=O)[O-]"):
        assert describe_structure(same).identity == expected
        assert describe_structure(same, keep_stereo=True).identity == expected
        assert inchikey_block(same) == "QNAYBMKLOCPYGJ"
    assert "@" in describe_structure("C[C@H](N)C(=O)O", keep_stereo=True).smiles
    labelled = describe_structure("[13CH3]C(N)C(=O)O")
    assert labelled.key == expected[0]
    assert labelled.identity != expected
    assert describe_structure("[2H]CC(N)C(=O)O").identity != labelled.identity


def test_molecules_without_an_inchikey_are_identified_by_their_smiles() -> None:
    one, other = describe_structure(NAMELESS), describe_structure(NAMELESS.replace("F", "Cl", 1))
    assert one.inchikey == one.inchikey14 == ""
    assert one.key == f"SMILES={one.smiles}"
    assert one.identity != other.identity


@pytest.mark.parametrize("smiles", ["C[N+](C)(C)C", "[Na+]", "CC(=O)[O-]", "[Fe+3]"])
def test_charged_formulas_lack_electrons(smiles: str) -> None:
    described = describe_molecule(parse_molecule(smiles))
    assert parse_formula(described.formula).mass == pytest.approx(described.mass, abs=1e-9)


def test_descriptors_are_those_of_rdkit() -> None:
    smiles = MOLECULES[:200:4]
    smiles += ["C[N+](C)(C)C", "[O-]C([O-])=O", "[Na+].[Cl-]", "C[Si](C)(C)OB(O)Br", "[2H]CP(F)I"]
    elements = DESCRIPTORS[: DESCRIPTORS.index("other elements")]
    for values, text in zip(descriptors(smiles), smiles, strict=True):
        row = dict(zip(DESCRIPTORS, values.tolist(), strict=True))
        molecule = Chem.MolFromSmiles(text)
        atoms = [atom.GetSymbol() for atom in Chem.AddHs(molecule).GetAtoms()]
        assert [row[element] for element in elements] == [atoms.count(e) for e in elements]
        assert row["other elements"] == sum(atom not in elements for atom in atoms)
        assert row["charge"] == Chem.GetFormalCharge(molecule)
        assert row["NumRings"] == rdMolDescriptors.CalcNumRings(molecule)
        assert row["NumRotatableBonds"] == Descriptors.NumRotatableBonds(molecule)
        assert row["tpsa"] == pytest.approx(rdMolDescriptors.CalcTPSA(molecule))


def test_descriptors_do_not_depend_on_the_spelling() -> None:
    for smiles in MOLECULES[:200:10]:
        parsed = standardise(smiles)
        table = descriptors([Chem.MolToSmiles(parsed, doRandom=True) for _ in range(4)])
        assert np.allclose(table, table[0], rtol=1e-5, atol=1e-4)
    assert descriptors([]).shape == (0, len(set(DESCRIPTORS))) == (0, len(DESCRIPTORS))
    with pytest.raises(MoleculeError, match="'C1'"):
        descriptors(["C", "C1"])
