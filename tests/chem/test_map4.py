import numpy as np
import pytest
from rdkit import Chem
from skfp.fingerprints import MAPFingerprint

from mzseek.chem.fingerprinting.map4 import map4_bits

# Single atoms, salts, isotopes, rings, charges and double bonds that have a side.
SMILES = [
    "C", "O", "CC", "[Na+].[Cl-]", "CC.CCO", "[13CH3]C", "C/C=C/C", "C/C=C\\C",
    "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "C[N+](C)(C)CC(=O)[O-]", "N[C@@H](Cc1ccccc1)C(=O)O",
    "CC(=O)Oc1ccccc1C(=O)O", "OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O", "C1CC2CCC1CC2",
]  # fmt: skip


@pytest.mark.parametrize("smiles", SMILES)
@pytest.mark.parametrize("bits", [64, 4096])
def test_bits_are_those_of_scikit_fingerprints(smiles: str, bits: int) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    expected = MAPFingerprint(fp_size=bits, radius=2, variant="binary").transform([molecule])[0]
    assert map4_bits(molecule, bits).tolist() == np.flatnonzero(expected).tolist()


def test_stereochemistry_says_nothing() -> None:
    left, right = (Chem.MolFromSmiles(f"N[C{way}H](C)C(=O)O") for way in ("@", "@@"))
    assert map4_bits(left).tolist() == map4_bits(right).tolist()
