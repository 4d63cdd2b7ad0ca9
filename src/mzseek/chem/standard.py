"""One form for each molecule: its largest fragment, neutral, with or without stereo."""

from functools import lru_cache

from rdkit import Chem, rdBase
from rdkit.Chem import Mol
from rdkit.Chem.MolStandardize import rdMolStandardize

from mzseek.chem.molecule import parse_molecule
from mzseek.errors import MoleculeError
from mzseek.work.processes import ctrl_c_kept


@lru_cache(maxsize=1)
def _uncharger() -> rdMolStandardize.Uncharger:
    return rdMolStandardize.Uncharger()


@lru_cache(maxsize=1)
def _tautomers() -> rdMolStandardize.TautomerEnumerator:
    return rdMolStandardize.TautomerEnumerator()


def usual_tautomer(molecule: Mol) -> Mol:
    """The tautomer that chemists draw, for a molecule that was read from InChI.

    InChI does not say where mobile hydrogens sit, and RDKit reads amides from it as iminols:
    beside candidates drawn as amides, that would give the molecule away.
    """
    with rdBase.BlockLogs(), ctrl_c_kept():
        try:
            return _tautomers().Canonicalize(molecule)
        except (ValueError, RuntimeError) as error:
            raise MoleculeError(f"cannot be standardised ({error})") from error


@lru_cache(maxsize=1)
def _chooser() -> rdMolStandardize.LargestFragmentChooser:
    # Organic fragments first: in a hydrochloride of a small amine, Cl is not the molecule.
    parameters = rdMolStandardize.CleanupParameters()
    parameters.largestFragmentChooserUseAtomCount = True
    parameters.preferOrganic = True
    return rdMolStandardize.LargestFragmentChooser(parameters)


def standardise(molecule: Mol | str, *, keep_stereo: bool = False) -> Mol:
    """Largest organic fragment in its neutral form.

    Salts lose their counter-ions, acids and amines their charges; charges that no proton can take
    away (quaternary nitrogen) stay. Isotope labels stay: they change the mass.

    Parameters
    ----------
    molecule : rdkit Mol, or SMILES
    keep_stereo : bool
        Keep stereo centres and double-bond geometry. MS/MS rarely tells them apart, so they are
        dropped unless asked for.

    Returns
    -------
    rdkit Mol
        A new molecule.

    Examples
    --------
    >>> Chem.MolToSmiles(standardise("C[C@H](N)C(=O)[O-].[Na+]"))
    'CC(N)C(=O)O'
    """
    if not isinstance(molecule, Mol):
        molecule = parse_molecule(molecule)
    with rdBase.BlockLogs(), ctrl_c_kept():
        try:
            if len(Chem.GetMolFrags(molecule)) > 1:
                molecule = _chooser().choose(molecule)
            if any(atom.GetFormalCharge() for atom in molecule.GetAtoms()):
                molecule = _uncharger().uncharge(molecule)
            molecule = Mol(molecule)
            if not keep_stereo:
                Chem.RemoveStereochemistry(molecule)
            # Re-reading makes the form independent of how the input was written.
            plain = Chem.MolFromSmiles(Chem.MolToSmiles(molecule))
        except (ValueError, RuntimeError) as error:
            raise MoleculeError(f"cannot be standardised ({error})") from error
    if plain is None:
        raise MoleculeError("cannot be standardised")
    return plain
