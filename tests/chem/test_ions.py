"""Rules of ions: what a molecule needs to form one, and that the page of rules says the same."""

import csv
import gzip
import sys
from pathlib import Path

import pytest

from mzseek.chem import describe_structure, precursor_mz
from mzseek.chem.ions import RULES, mass_of_atoms, net_charge, obstacle, takes_charged

DOCS = Path(__file__).parents[2] / "docs" / "chemistry.md"

BETAINE, CHOLINE = "C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CCO"
BERBERINE = "COc1ccc2cc3-c4cc5OCOc5cc4CC[n+]3cc2c1OC"
CYANIDIN = "c1cc(c(cc1C2=C(C=C3C(=CC(=CC3=[O+]2)O)O)O)O)O"
METHYLTRIPHENYLPHOSPHONIUM = "C[P+](c1ccccc1)(c1ccccc1)c1ccccc1"
PARAQUAT = "C[n+]1ccc(-c2cc[n+](C)cc2)cc1"


def rule(text, adduct, **options):
    molecule = describe_structure(text)
    found = obstacle(molecule.smiles, molecule.formula, adduct, **options)
    return None if found is None else found.name


@pytest.mark.parametrize("smiles", [CHOLINE, BERBERINE, CYANIDIN, METHYLTRIPHENYLPHOSPHONIUM])
def test_permanent_cations_are_themselves_and_nothing_else(smiles):
    assert rule(smiles, "[M]+", stated=False) is None
    for adduct in ("[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M+H-H2O]+", "[2M+H]+", "[M-H]-"):
        assert rule(smiles, adduct) == "charge"


def test_no_part_turns_the_sign_of_a_permanent_charge():
    for adduct in ("[M-CH3]-", "[M+HOO]-"):
        assert rule(CHOLINE, adduct) == "charge"
        assert rule(BETAINE, adduct) != "charge"
    assert rule(CYANIDIN, "[M-C6H10O5]+") != "charge"


def test_the_electron_of_a_cation_is_taken_away_once():
    choline = describe_structure(CHOLINE)
    mass = mass_of_atoms(choline.smiles, choline.mass)
    assert precursor_mz(mass, "[M]+") == pytest.approx(104.1070, abs=5e-5)
    assert mass_of_atoms("CCO", 46.0) == 46.0


def test_charges_of_parts_and_molecule_add_up():
    assert rule(PARAQUAT, "[M]2+", stated=False) is None
    assert rule(PARAQUAT, "[M-H]+", stated=False) is None
    assert rule(PARAQUAT, "[M]+", stated=False) == "charge"
    assert rule(PARAQUAT, "[M]+") is None  # with an electron more, where a file says so
    assert rule(PARAQUAT, "[M+H]+") == "charge"
    assert rule(CYANIDIN, "[M-2H]-", stated=False) is None
    assert rule(CHOLINE, "[M-H2O]+", stated=False) is None
    assert rule("F[B-](F)(F)F", "[M]-", stated=False) is None
    assert rule("F[B-](F)(F)F", "[M-H]-") == "charge"
    assert takes_charged("[M]+")
    assert not takes_charged("[M+Na]+")


@pytest.mark.parametrize(
    "smiles", [BETAINE, "C[N+](=O)[O-]", "C[N+](C)(C)[O-]", "OC(C[N+](C)(C)C)CC(=O)[O-]"]
)
def test_inner_salts_are_neutral(smiles):
    assert net_charge(smiles) == 0
    assert rule(smiles, "[M+H]+") is None
    assert rule(smiles, "[M]+", stated=False) == "neutral"
    assert rule(smiles, "[M]+") is None


# What each rule says of molecules, by ion.
EXPECTED = {
    ("[M+H-H2O]+", None): "CCO CC(C)=O CCOCC CS(=O)(=O)O Oc1ccc([N+](=O)[O-])cc1",
    ("[M+H-H2O]+", "water"): "CCN CCS(C)(=O)=O CS(=O)(=O)Nc1ccccc1 [O-][N+](=O)c1ccccc1 c1ccoc1",
    ("[M+H-2H2O]+", "water"): "CCO OCC[N+](=O)[O-]",
    ("[M+H-2H2O]+", None): "OCCO",
    ("[M-H-H2O]-", "water"): "CCS(C)(=O)=O",
    ("[M-H-H2O]-", None): "OCC(O)C(=O)O",
    ("[M+H-NH3]+", "ammonia"): "CCO CN(C)C",
    ("[M+H-NH3]+", None): "NCc1ccccc1",
    ("[M+H-CO2]+", "atoms"): "CCO",
    ("[M+H]+", "proton"): "CCCCCC C1CCCCC1 ClC(Cl)(Cl)Cl",
    ("[M+H]+", None): "c1ccccc1 C=C1CCC2CC1C2(C)C",
    ("[M+Na]+", "binding"): "c1ccccc1",
    ("[M+NH4]+", "binding"): "c1ccccc1",
    ("[2M+H]+", "binding"): "c1ccccc1",
    ("[M+ACN+H]+", "binding"): "c1ccccc1",
    ("[M+K]+", None): "CSC",
    ("[M+2H]2+", "charges"): "CCO",
    ("[M+2H]2+", None): "NCCN",
    ("[M+H+Na]2+", "charges"): "CCO",
    ("[M-H]-", "acid"): "CCCC c1ccccc1C CCOCC CCN(CC)CC FC(F)(F)C(F)(F)F",
    ("[M-H]-", None): "FC(F)C(F)(F)F CCO CCNCC CC(C)=O C1=CCC=C1",
    ("[M-2H]2-", "exchange"): "CCO",
    ("[M-2H]2-", None): "OC(=O)CC(=O)O",
    ("[M+2Na-H]+", None): "CC(=O)O",
    ("[M+2Na-H]+", "charges"): "CCOCC",
    ("[M+2Na-H]+", "exchange"): "CCOCCOCC",
    ("[M+Na-2H]-", None): "CC(O)C(=O)O",
    ("[M+Cl]-", "anion"): "CCCC",
    ("[M+FA-H]-", "anion"): "c1ccccc1",
    ("[M+FA-H]-", None): "CCOCC",
    ("[M+HAc-H]-", None): "OCC1OC(O)C(O)C(O)C1O",
    ("[M-CH3]+", None): "CCO",
    ("[M-CH3]+", "atoms"): "O",
}


@pytest.mark.parametrize(
    ("smiles", "adduct", "expected"),
    [(smiles, *rule) for rule, molecules in EXPECTED.items() for smiles in molecules.split()],
)
def test_what_an_ion_needs(smiles, adduct, expected):
    assert rule(smiles, adduct) == expected


def test_the_page_of_rules_says_the_same():
    page = DOCS.read_text("utf-8")
    for each in RULES.values():
        assert page.count(f" | {each.reason} |\n") == 1


@pytest.mark.shared
@pytest.mark.parametrize("name", ["massbank", "massbank_more"])
def test_every_ion_that_was_measured_is_allowed(shared, name):
    csv.field_size_limit(sys.maxsize)
    with gzip.open(shared / "data" / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        measured = {
            (row["smiles"], row["formula"], row["adduct"])
            for row in csv.DictReader(file, delimiter="\t")
        }
    assert len(measured) > 2_000
    refused = [(*each, found.name) for each in measured if (found := obstacle(*each))]
    assert refused == []
