"""Molecules of a mass, made of others by one or two transformations."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rdkit import Chem, rdBase
from rdkit.Chem import Mol, rdMolDescriptors

from mzseek.chem.molecules import DescribedMolecule, describe_molecules, parse_molecule, standardise
from mzseek.core.errors import MoleculeError
from mzseek.proposals.transformations import Transformation, transformations

MAX_ATOMS = 100  # of a parent, without hydrogens
_MAX_SITES = 200  # of a reaction in a molecule
# Groups that decompose at once: a product has no more of them than its parent.
_UNSTABLE = (
    "[OX2]-[OX2]", "[OX2]-[F,Cl,Br,I]", "[#7]-[F,Cl,Br,I]", "[NX3]-[NX3]-[NX3]",
    "[CX4](-[OX2H1])-[OX2H1]", "[CX4](-[OX2H1])-[NX3;!$(N-C=O)]", "[CX4](-[OX2H1])-[F,Cl,Br,I]",
    "[CX4](-[NX3H2])-[NX3H2]", "[CX3;!$(C=O);!$(C=N)](=C)-[OX2H1]", "[CX3](=C)-[NX3H2]",
    "C=C=C", "C=C=[O,N]", "C#C-[OX2H1,NX3H2]", "[r3,r4]=,#[*]", "[CX2;R]", "[S]-[F,Cl,Br,I]",
    "[NX3]-[OX2]-[OX2,NX3]", "[CX3](=O)-[F,Br,I]", "[SX2]-[OX2]",
)  # fmt: skip


@dataclass(frozen=True)
class Derivation:
    """How a product is made.

    Attributes
    ----------
    parent : int
        Index of the molecule that it is made of.
    steps : tuple of str
        Names of transformations, in their order.
    """

    parent: int
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Product:
    """A molecule with all derivations that were found."""

    molecule: DescribedMolecule
    derivations: tuple[Derivation, ...]


class Differences:
    """Transformations by the mass that they add.

    Attributes
    ----------
    by_mass : tuple of Transformation
        Those of a fixed mass, in rising order.
    cleavages : tuple of Transformation
        The others.
    """

    def __init__(self, table: Sequence[Transformation]) -> None:
        fixed = [one for one in table if one.difference is not None]
        self.by_mass = tuple(sorted(fixed, key=lambda one: (one.difference, one.name)))
        self.cleavages = tuple(one for one in table if one.difference is None)
        self.masses = [float(one.difference or 0.0) for one in self.by_mass]

    def within(self, mass: float, reach: float) -> tuple[Transformation, ...]:
        """Return transformations that add a mass, within a tolerance."""
        first = bisect_left(self.masses, mass - reach)
        return self.by_mass[first : bisect_right(self.masses, mass + reach)]


@lru_cache(maxsize=1)
def differences() -> Differences:
    """Return the transformations of the table by mass."""
    return Differences(transformations())


def one_step(
    parent: Mol, mass: float, target: float, reach: float
) -> Iterator[tuple[Transformation, Mol]]:
    """Yield products of a mass by one transformation, each as often as a site gives it.

    Parameters
    ----------
    parent : Mol
    mass : float
        Of the parent.
    target, reach : float
        Mass of the products, and how far it may be off.
    """
    known = differences()
    tried = list(known.within(target - mass, reach))
    if target < mass - reach:
        tried += known.cleavages
    for transformation in tried:
        for product in products(transformation, parent):
            if abs(rdMolDescriptors.CalcExactMolWt(product) - target) <= reach:
                yield transformation, product


def products(transformation: Transformation, parent: Mol) -> Iterator[Mol]:
    """Yield molecules that a transformation makes of another, each once.

    What breaks a rule of valence is none, and what has an unstable group that its parent has not.
    """
    seen = set()
    with rdBase.BlockLogs():
        allowed = [len(parent.GetSubstructMatches(group)) for group in _unstable()]
        for reaction in transformation.compiled:
            for made in reaction.RunReactants((parent,), _MAX_SITES):
                for product in made:
                    try:
                        Chem.SanitizeMol(product)
                    except (ValueError, RuntimeError):
                        continue
                    smiles = Chem.MolToSmiles(product)
                    if smiles not in seen and _is_stable(product, smiles, allowed):
                        seen.add(smiles)
                        yield product


def _is_stable(product: Mol, smiles: str, allowed: Sequence[int]) -> bool:
    # Only atoms in brackets can have unpaired electrons.
    if "[" in smiles and any(atom.GetNumRadicalElectrons() for atom in product.GetAtoms()):
        return False
    return all(
        len(product.GetSubstructMatches(group)) <= number
        if number
        else not product.HasSubstructMatch(group)
        for group, number in zip(_unstable(), allowed, strict=True)
    )


@lru_cache(maxsize=1)
def _unstable() -> tuple[Mol, ...]:
    return tuple(map(Chem.MolFromSmarts, _UNSTABLE))


def two_steps(
    parent: Mol, mass: float, target: float, reach: float, limit: int
) -> Iterator[tuple[Transformation, Transformation, Mol]]:
    """Yield products of a mass by two transformations of fixed masses, at most so many.

    Pairs of steps with the smallest changes of mass come first.
    """
    known, gap = differences(), target - mass
    pairs = [
        (abs(float(first.difference or 0.0)) + abs(float(second.difference or 0.0)), first, second)
        for first in known.by_mass
        for second in known.within(gap - float(first.difference or 0.0), reach)
    ]
    pairs.sort(key=lambda pair: (pair[0], pair[1].name, pair[2].name))
    made = 0
    middles: dict[str, list[Mol]] = {}
    for _, first, second in pairs:
        if first.name not in middles:
            middles[first.name] = list(products(first, parent))
        for middle in middles[first.name]:
            for product in products(second, middle):
                if abs(rdMolDescriptors.CalcExactMolWt(product) - target) <= reach:
                    yield first, second, product
                    made += 1
                    if made == limit:
                        return


def generate(
    parents: Sequence[str], target: float, reach: float, *, two_step_limit: int = 0
) -> list[Product]:
    """Return the molecules of a mass that parents can be turned into.

    Parameters
    ----------
    parents : sequence of str
        SMILES.
    target, reach : float
        Mass of the products, and how far it may be off.
    two_step_limit : int
        Products of two transformations of each parent, at most; none by default.

    Returns
    -------
    list of Product
        Each molecule once, by the first block of its InChIKey; by that key in order. Stereo-free
        and neutral, as databases have them.

    Examples
    --------
    >>> paracetamol = generate(["CC(=O)Nc1ccccc1"], 151.0633, 0.001)
    >>> sorted(one.molecule.smiles for one in paracetamol)[:3]
    ['CC(=O)N(O)c1ccccc1', 'CC(=O)Nc1ccc(O)cc1', 'CC(=O)Nc1cccc(O)c1']
    """
    derived: dict[str, list[Derivation]] = {}
    molecules: dict[str, Mol] = {}
    for index, smiles in enumerate(parents):
        parent = standardise(parse_molecule(smiles))
        if parent.GetNumAtoms() > MAX_ATOMS:
            continue
        mass = rdMolDescriptors.CalcExactMolWt(parent)
        made: list[tuple[tuple[str, ...], Mol]] = [
            ((step.name,), one) for step, one in one_step(parent, mass, target, reach)
        ]
        if two_step_limit:
            made += [
                ((first.name, second.name), one)
                for first, second, one in two_steps(parent, mass, target, reach, two_step_limit)
            ]
        for steps, product in made:
            try:
                standard = standardise(product)
            except MoleculeError:
                continue
            text = Chem.MolToSmiles(standard)
            molecules.setdefault(text, standard)
            derivations = derived.setdefault(text, [])
            if Derivation(index, steps) not in derivations:
                derivations.append(Derivation(index, steps))
    texts = list(molecules)
    by_key: dict[str, tuple[DescribedMolecule, list[Derivation]]] = {}
    described = describe_molecules([molecules[text] for text in texts])
    order = sorted(range(len(texts)), key=lambda at: (len(texts[at]), texts[at]))
    for at in order:
        molecule = described[at]
        if molecule.inchikey14 and abs(molecule.mass - target) <= reach:
            _, derivations = by_key.setdefault(molecule.key, (molecule, []))
            derivations += [one for one in derived[texts[at]] if one not in derivations]
    return [
        Product(molecule, tuple(sorted(derivations, key=lambda one: (len(one.steps), one.parent))))
        for _, (molecule, derivations) in sorted(by_key.items())
    ]
