import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from mzseek.chem.formulas import Formula, parse_formula
from mzseek.core.errors import MoleculeError

from ..molecules import MOLECULES

USUAL = [Chem.GetPeriodicTable().GetElementSymbol(n) for n in range(1, 93)]
COUNTS = st.dictionaries(st.sampled_from(USUAL), st.integers(1, 200), min_size=1, max_size=8)
OTHERS = [
    "O", "Cl", "[Na]Cl", "C[N+](C)(C)CCO", "[O-]S(=O)(=O)[O-]", "C[N+](C)(C)CC[N+](C)(C)C", "[2H]C",
    "[U](F)(F)(F)(F)(F)F", "C[Si](C)(C)C", "OB(O)c1ccccc1", "C[Hg]C", "BrC(I)(F)Cl",
]  # fmt: skip


def read(text: str) -> tuple[str, str]:
    """The formula, or why there is none."""
    try:
        return str(parse_formula(text)), ""
    except MoleculeError as error:
        return "", str(error)


@pytest.mark.parametrize("smiles", [*OTHERS, *MOLECULES[:175][:40]])
def test_hill_order_is_that_of_rdkit(smiles: str) -> None:
    theirs = rdMolDescriptors.CalcMolFormula(Chem.MolFromSmiles(smiles))
    assert str(parse_formula(theirs)) == theirs


@given(counts=COUNTS, seed=st.integers(0, 99), charge=st.integers(-3, 3))
def test_any_order_of_the_same_atoms_is_one_formula(counts, seed: int, charge: int) -> None:
    pieces = [f"{symbol}{n}" for symbol, n in counts.items()]
    random.Random(seed).shuffle(pieces)
    sign = {0: "", 1: "+", -1: "-"}.get(charge, f"{charge:+d}")
    found = parse_formula("".join(pieces) + sign)
    assert found == Formula(counts, charge)
    assert parse_formula(str(found)) == found


@given(counts=COUNTS)
def test_small_letters_give_the_formula_or_two_of_which_it_is_one(counts) -> None:
    meant = str(Formula(counts))
    text = "".join(f"{symbol}{n}" for symbol, n in counts.items())
    found, refused = read(text.lower())
    assert found == meant or "can be read as" in refused
    found, refused = read(text.upper())  # which may be read as it is: SI is sulfur and iodine
    assert found or "can be read as" in refused


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("C8H10N4O2", "C8H10N4O2"), ("O2N4H10C8", "C8H10N4O2"), ("c8h10n4o2", "C8H10N4O2"),
        (" C8 H10 N4 O2 ", "C8H10N4O2"), ("C₈H₁₀N₄O₂", "C8H10N4O2"), ("CH3CH2OH", "C2H6O"),
        ("CO", "CO"), ("Co", "Co"), ("NACL", "ClNa"), ("nacl", "ClNa"), ("ClNa", "ClNa"),
        ("ClH", "HCl"), ("c9h11no2", "C9H11NO2"), ("C9H11NO2", "C9H11NO2"), ("CL2", "Cl2"),
        ("C5H14NO+", "C5H14NO+"), ("no+h14c5", None), ("H14C5NO+", "C5H14NO+"),
        ("c10h14n2+2", "C10H14N2+2"), ("C10H14N2++", "C10H14N2+2"), ("O4S-2", "O4S-2"),
        ("C1H4", "CH4"), ("C06H06", "C6H6"),
    ],
)  # fmt: skip
def test_what_people_write(text: str, meant: str | None) -> None:
    if meant is None:
        with pytest.raises(MoleculeError):
            parse_formula(text)
    else:
        assert str(parse_formula(text)) == meant


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the formula is empty"),
        (" \t", "the formula is empty"),
        ("co", "'co' can be read as CO or Co; write capitals as they are"),
        ("COCL2", "can be read as CCl2O or Cl2Co"),
        ("c2h6os", "can be read as C2H6OS or C2H6Os"),
        ("C8H10Xx2", "has the unknown element 'Xx'"),
        ("C8H10A2", "has the unknown element 'A'"),
        ("c8h10q2", "is no row of elements and numbers"),
        ("C8h10N4O2", "is no row of elements and numbers"),
        ("CDCl3", "names isotopes of hydrogen"),
        ("CD4", "can be read as CD4 or Cd4"),
        ("D2O", "names isotopes of hydrogen"),
        ("d2o", "names isotopes of hydrogen"),
        ("[13C]C7H10N4O2", "names isotopes"),
        ("^13C6H6", "names isotopes"),
        ("C0H4", "has 0 of C, expected 1 to 100,000"),
        ("C" + "1" * 100, "has 111111111111 of C"),
        ("C" + "1" * 5000, "has 5,001 characters, at most 200"),
        ("co" * 90, "can be read as"),
        ("co" * 90 + "q", "is no row of elements"),
        ("Ca(OH)2", "holds '('"),
        ("C6H6.HCl", "holds '.'"),
        ("2C6H6", "does not begin with an element"),
        ("+", "does not begin with an element"),
        ("C6H6\x1b[2J", "names isotopes"),
        ("quercetin", "is no row of elements"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_formula_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(MoleculeError) as caught:
        parse_formula(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable()


@given(text=st.text(max_size=40) | st.text("CcOoSsNnIi0123456789+-", max_size=60))
def test_any_text_is_a_formula_or_one_line(text: str) -> None:
    found, refused = read(text)
    assert bool(found) != bool(refused)
    assert "\n" not in refused
