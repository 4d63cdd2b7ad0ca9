import pytest
from rdkit import Chem

from mzseek.chem import (
    canonical_smiles,
    exact_mass,
    formula,
    inchi_text,
    inchikey_block,
    parse_inchi,
    parse_molecule,
)
from mzseek.core.errors import MoleculeError

CAFFEINE = "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"


def test_caffeine() -> None:
    assert canonical_smiles(CAFFEINE) == "Cn1c(=O)c2c(ncn2C)n(C)c1=O"
    assert exact_mass(CAFFEINE) == pytest.approx(194.080376, abs=1e-6)
    assert formula(CAFFEINE) == "C8H10N4O2"
    assert inchikey_block(CAFFEINE) == "RYYVLZVUVIJVGH"


def test_key_is_blind_to_stereo_and_protonation() -> None:
    forms = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC(N)C(=O)O", "CC([NH3+])C(=O)[O-]"]
    assert {inchikey_block(smiles) for smiles in forms} == {"QNAYBMKLOCPYGJ"}


def test_inchi() -> None:
    molecule = parse_inchi("InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3")
    assert Chem.MolToSmiles(molecule) == "CCO"
    for text in ("", "CCO", "InChI=1S/nonsense", "InChI=1S/" + "C" * 9000):
        with pytest.raises(MoleculeError, match="InChI"):
            parse_inchi(text)


def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MoleculeError):
        parse_molecule("C(C)(C)(C)(C)C")
    with pytest.raises(MoleculeError):
        parse_molecule("not a molecule")
    inchikey_block("[Na+].[Cl-]")
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize(
    "text",
    [
        "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3", "1S/C2H6O/c1-2-3/h3H,2H2,1H3",
        "1/C2H6O/c1-2-3/h3H,2H2,1H3", "InChI: 1S/C2H6O/c1-2-3/h3H,2H2,1H3",
        "inchi=1s/C2H6O/c1-2-3/h3H,2H2,1H3", ' "InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3" ',
        "InChI = 1S/C2H6O/c1-2-3/h3H,2H2,1H3",
    ],
)  # fmt: skip
def test_inchi_with_and_without_its_prefix(text: str) -> None:
    assert Chem.MolToSmiles(parse_inchi(text)) == "CCO"


@pytest.mark.parametrize(
    "text", ["", "CCO", "InChI=", "1S", "1S/", "S/C2H6O", "21S/C", "C1S/C=C/1"]
)
def test_what_is_no_inchi(text: str) -> None:
    assert inchi_text(text) == ""


@pytest.mark.parametrize("text", ["C\udcff", "Cé", "名"])
def test_letters_that_no_smiles_has(text: str) -> None:
    with pytest.raises(MoleculeError, match="SMILES"):
        parse_molecule(text)
