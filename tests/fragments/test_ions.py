import numpy as np
import pytest

from mzseek.chem import exact_mass
from mzseek.chem.adducts import known_adducts, parse_adduct
from mzseek.fragments import ion_forms
from mzseek.fragments.matching import MAX_HYDROGENS_MOVED

GLUCOSE = "OCC1OC(O)C(O)C(O)C1O"


@pytest.mark.parametrize("name", known_adducts())
def test_every_known_adduct_has_forms_of_its_sign(name: str) -> None:
    adduct, forms = parse_adduct(name), ion_forms(name)
    assert set(np.sign(forms.charges)) == {np.sign(adduct.charge)}
    assert abs(forms.charges).max() == abs(adduct.charge)
    assert forms.hydrogens.min() == -MAX_HYDROGENS_MOVED
    assert forms.hydrogens.max() == MAX_HYDROGENS_MOVED


@pytest.mark.parametrize(
    "name",
    ["[M+H]+", "[M+Na]+", "[M+2Na-H]+", "[M+2H]2+", "[M+H+Na]2+", "[M+3H]3+", "[M]+", "[M-H]-",
     "[M+Cl]-", "[M+Na-2H]-", "[M-2H]2-", "[M]-"],
)  # fmt: skip
def test_the_whole_molecule_is_seen_at_its_precursor(name: str) -> None:
    mass = exact_mass(GLUCOSE)
    forms = ion_forms(name)
    seen = (mass + forms.shifts) / abs(forms.charges)
    assert np.abs(seen - parse_adduct(name).precursor_mz(mass)).min() < 1e-7


def test_what_is_carried_may_stay_or_go() -> None:
    assert set(ion_forms("[M+2Na-H]+").carried) == {(), ("Na",), ("Na", "Na")}
    assert set(ion_forms("[M+FA-H]-").carried) == {()}
    assert set(ion_forms("[M+Cl]-").carried) == {(), ("Cl",)}


def test_protonated_is_no_radical() -> None:
    forms = ion_forms("[M+H]+")
    assert dict(zip(forms.hydrogens.tolist(), (forms.electrons & 1).tolist(), strict=True))[1] == 0
