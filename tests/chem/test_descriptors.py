import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors, rdMolDescriptors

from mzseek.chem import standardise
from mzseek.chem.molecules import DESCRIPTORS, descriptors, parse_molecule
from mzseek.core.errors import MoleculeError
from mzseek.datasets.demo.molecules import demo_molecules

NAMES = list(DESCRIPTORS)


def test_elements_are_counted_as_the_atoms_are() -> None:
    smiles = [molecule.smiles for molecule in demo_molecules(0, 200)[::4]]
    smiles += ["C[N+](C)(C)C", "[O-]C([O-])=O", "[Na+].[Cl-]", "C[Si](C)(C)OB(O)Br", "[2H]CP(F)I"]
    table = descriptors(smiles)
    for row, text in zip(table, smiles, strict=True):
        atoms = [atom.GetSymbol() for atom in Chem.AddHs(Chem.MolFromSmiles(text)).GetAtoms()]
        for element in NAMES[: NAMES.index("other elements")]:
            assert row[NAMES.index(element)] == atoms.count(element)
        known = sum(atoms.count(element) for element in NAMES[: NAMES.index("other elements")])
        assert row[NAMES.index("other elements")] == len(atoms) - known
        assert row[NAMES.index("charge")] == Chem.GetFormalCharge(Chem.MolFromSmiles(text))


def test_rings_and_bonds_are_rdkits() -> None:
    smiles = [molecule.smiles for molecule in demo_molecules(1, 200)[::4]]
    table = descriptors(smiles)
    for row, text in zip(table, smiles, strict=True):
        molecule = Chem.MolFromSmiles(text)
        assert row[NAMES.index("NumRings")] == rdMolDescriptors.CalcNumRings(molecule)
        assert row[NAMES.index("NumRotatableBonds")] == Descriptors.NumRotatableBonds(molecule)
        assert row[NAMES.index("tpsa")] == pytest.approx(rdMolDescriptors.CalcTPSA(molecule))


def test_the_spelling_of_a_molecule_changes_nothing() -> None:
    for molecule in demo_molecules(2, 200)[::10]:
        parsed = standardise(parse_molecule(molecule.smiles))
        spellings = [Chem.MolToSmiles(parsed, doRandom=True) for _ in range(4)]
        table = descriptors(spellings)
        assert np.allclose(table, table[0], rtol=1e-5, atol=1e-4)


def test_what_is_no_molecule_is_refused_and_nothing_is_an_empty_table() -> None:
    assert descriptors([]).shape == (0, len(DESCRIPTORS))
    assert len(set(DESCRIPTORS)) == len(DESCRIPTORS)
    with pytest.raises(MoleculeError, match="'C1'"):
        descriptors(["C", "C1"])
