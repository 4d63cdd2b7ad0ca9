"""Which ions a molecule can form: a rule for each way to become an ion, with its reason.

The rules exclude what cannot exist (no oxygen, no loss of water), not what is rare: every ion that
a reference library has measured of a molecule must pass. Most molecules are judged by the text of
their formula and SMILES; a structure is parsed only where the answer depends on it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rdkit import Chem

from mzseek.chem.adducts import ELECTRON_MASS, atoms_of, parse_adduct
from mzseek.chem.molecules import element_counts, parse_molecule
from mzseek.core.errors import MoleculeError


@dataclass(frozen=True)
class IonRule:
    """A condition that a molecule must meet to form some ions."""

    name: str
    reason: str  # why a molecule that does not meet it is left out, as notes say it


# docs/chemistry.md lists the ions that each rule concerns, and what a molecule needs to form them.
RULES: Mapping[str, IonRule] = {
    name: IonRule(name, reason)
    for name, reason in {
        "charge": "a permanent charge",
        "neutral": "no permanent charge",
        "water": "no oxygen to lose as water",
        "ammonia": "no nitrogen to lose as ammonia",
        "proton": "no lone pair and no pi bond to take up a proton",
        "binding": "no N, O, S or P to bind it",
        "charges": "fewer atoms with a lone pair than charges",
        "acid": "no acidic hydrogen to give",
        "exchange": "too few acidic hydrogens to give",
        "anion": "no polar hydrogen to bind the anion",
        "atoms": "not the atoms that are lost",
    }.items()
}

_METALS_AND_AMMONIUM = frozenset(("Li", "Na", "K", "Rb", "Cs", "NH4", "Mg", "Ca"))
_ACIDS = frozenset(("FA", "HFA", "HCOOH", "CH2O2", "HAc", "Hac", "AcOH", "CH3COOH", "C2H4O2",
                    "TFA"))  # fmt: skip
_ANIONS = frozenset(("F", "Cl", "Br", "I", "HCOO", "CHO2", "CH3COO", "Ac", "OAc"))
_SOLVENTS = frozenset(("H2O", "NH3", "ACN", "C2H3N", "CH3CN", "MeOH", "CH3OH", "CH4O", "EtOH",
                       "IsoProp", "DMSO"))  # fmt: skip

_CHARGED_ATOM = re.compile(r"\[[^\]]*?([+-]+)(\d*)(?::\d+)?\]")
_LONE_PAIR = re.compile(r"(?:[NOSP](?![a-z])|Se|As|Te)")
_HETEROATOM = re.compile(r"[ABD-GI-Z]|C[a-z]|H[a-z]")  # any element but C and H
_HYDROGEN = re.compile(r"H(?![a-z])")
_PI = re.compile(r"[=#:]|[cnosp](?![a-z])")
# Oxygens of carbonyls and hydroxyls, as SMILES write them; others need a look at the structure
# where the molecule has nitro groups or sulfur.
_PLAIN_OXYGEN = re.compile(r"C\(=O\)|O=C|C=O|(?<![=\[\]])O(?=[).]|$)")
_MAY_BE_WEAK = re.compile(r"S|N\+|=N|N\(=|N=")
# O and N that carry a hydrogen, recognised in SMILES without brackets around them: terminal and
# singly bound, or an N between two atoms.
_POLAR_HYDROGEN = re.compile(
    r"(?<![=\[])O(?=[).]|$)|^O(?=[A-Zc(])|(?<![#\[])N(?=[).]|$)|(?<![=#\[])N(?=[Cc])|^N(?=C)|\[nH\]"
)
_LEAVING_OXYGEN = Chem.MolFromSmarts(
    "[O;!$(O=[N+][O-]);!$([O-][N+]=O);!$(O=[N+]=O);!$(O=N(=O));!$(O=S(=O)([#6,#7])[#6,#7])]"
)
_AMMONIA = Chem.MolFromSmarts("[$([#7;!H0]),$(N#C),$(N=C)]")
_ON_HETEROATOM = Chem.MolFromSmarts("[#7,#8,#16,#15,#34;!H0]")
_BESIDE_ACCEPTOR = Chem.MolFromSmarts(
    "[#6;!H0]~[$([#6]=,:[O,N,S]),$(C#N),$([N+](=O)[O-]),$(S=O),$(P=O)]"
)
_OTHER_ACIDS = Chem.MolFromSmarts(
    "[$([#6;!H0]([F,Cl,Br,I])[F,Cl,Br,I]),$([#6;!H0][#6]([F,Cl,Br,I])[F,Cl,Br,I]),"
    "$([CX2H]#C),$([CX4;!H0;r5]1~[#6;r5]=,:[#6;r5]~[#6;r5]=,:[#6;r5]1)]"
)
_CACHED = 65_536


@dataclass(frozen=True)
class _Needs:
    """Conditions of an ion on its molecule, by the parts of its name."""

    molecules: int
    charge: int
    parts_charge: int | None  # None: a part leaves it open
    lost: Mapping[str, int] = field(default_factory=dict)  # by element, beyond what is gained
    waters: int = 0
    ammonias: int = 0
    protons: int = 0
    cations: int = 0  # charges that are added, protons included
    binds: bool = False
    donated: int = 0  # hydrogens of each molecule
    exchanged: bool = False
    anion: bool = False


def obstacle(smiles: str, formula: str, adduct: str, *, stated: bool = True) -> IonRule | None:
    """Return the rule that keeps a molecule from forming an ion, or None where it can form it.

    `smiles` and `formula` are those of the molecule in its standard form. `stated` says whether a
    file or a user names the ion: one that is tried as usual is not a radical.

    Examples
    --------
    >>> obstacle("c1ccccc1", "C6H6", "[M+H-H2O]+").reason
    'no oxygen to lose as water'
    >>> obstacle("CS(C)(=O)=O", "C2H6O2S", "[M+H-H2O]+").reason
    'no oxygen to lose as water'
    >>> obstacle("C[N+](C)(C)CCO", "C5H14NO+", "[M+H]+").reason
    'a permanent charge'
    >>> obstacle("C[N+](C)(C)CCO", "C5H14NO+", "[M]+", stated=False) is None
    True
    """
    name = next(filter(None, _obstacles(_needs(adduct), smiles, formula, stated)), None)
    return None if name is None else RULES[name]


def _obstacles(needs: _Needs, smiles: str, formula: str, stated: bool) -> Iterator[str | None]:
    """Yield names of rules that a molecule does not meet, and None; the cheapest to judge first."""
    yield _charge_obstacle(needs, net_charge(smiles) if "[" in smiles else 0, stated)
    if needs.protons or needs.binds:
        yield _base_obstacle(needs, smiles, formula)
    if needs.donated:
        yield _acid_obstacle(needs, smiles, formula)
    if needs.anion and not (_HYDROGEN.search(formula) and _HETEROATOM.search(formula)):
        yield "anion"
    if needs.waters and not _loses_water(smiles, formula, needs.waters):
        yield "water"
    if needs.ammonias and not ("N" in element_counts(formula) and _structure(smiles).ammonias):
        yield "ammonia"
    counts = element_counts(formula) if needs.lost else {}
    if any(counts.get(e, 0) * needs.molecules < n for e, n in needs.lost.items()):
        yield "atoms"


def net_charge(smiles: str) -> int:
    """Return the sum of formal charges, by the text of a SMILES.

    Examples
    --------
    >>> [net_charge(text) for text in ("CCO", "C[N+](C)(C)CC(=O)[O-]", "[Ca+2]", "[O--]")]
    [0, 0, 2, -2]
    """
    total = 0
    for signs, number in _CHARGED_ATOM.findall(smiles):
        size = int(number) if number else len(signs)
        total += size if signs[0] == "+" else -size
    return total


def mass_of_atoms(smiles: str, mass: float) -> float:
    """Return the mass of a molecule's neutral atoms, which adduct arithmetic begins with.

    The exact mass of a permanent cation lacks its electron already; `[M]+` takes away none.

    Examples
    --------
    >>> parse_adduct("[M]+").precursor_mz(mass_of_atoms("C[N+](C)(C)CCO", 104.106990))
    104.10699
    """
    return mass + net_charge(smiles) * ELECTRON_MASS if "[" in smiles else mass


def takes_charged(adduct: str) -> bool:
    """Return whether a molecule with a permanent charge can be this ion.

    Examples
    --------
    >>> takes_charged("[M]+"), takes_charged("[M+H]+")
    (True, False)
    """
    needs = _needs(adduct)
    return needs.parts_charge is None or needs.parts_charge != needs.charge


@lru_cache(maxsize=1_024)
def _needs(text: str) -> _Needs:
    adduct = parse_adduct(text)
    parts = adduct.parts
    gained: Counter[str] = Counter()
    number_of: Counter[str] = Counter()
    for number, part in parts:
        number_of[part] += number
        for element, count in atoms_of(part).items():
            gained[element] += number * count
    hydrogens = number_of["H"]
    acids = sum(number_of[part] for part in _ACIDS)
    cations = sum(max(number_of[part], 0) for part in _METALS_AND_AMMONIUM)
    donated = max(-hydrogens - max(acids, 0), 0)
    solvents = sum(max(number_of[part], 0) for part in _SOLVENTS) + max(acids, 0)
    return _Needs(
        molecules=adduct.molecules,
        charge=adduct.charge,
        parts_charge=adduct.parts_charge,
        lost={element: -count for element, count in gained.items() if count < 0},
        waters=max(-number_of["H2O"], 0),
        ammonias=max(-number_of["NH3"], 0),
        protons=max(hydrogens, 0),
        cations=max(hydrogens, 0) + cations,
        binds=cations > 0 or (adduct.charge > 0 and solvents > 0) or adduct.molecules > 1,
        donated=-(-donated // adduct.molecules),
        exchanged=donated > 1 or (donated > 0 and cations > 0),
        anion=adduct.charge < 0 and (acids > 0 or any(number_of[part] > 0 for part in _ANIONS)),
    )


def _charge_obstacle(needs: _Needs, charge: int, stated: bool) -> str | None:
    if needs.parts_charge is None:  # whatever leaves or joins, the sign does not turn
        return "charge" if charge * needs.charge < 0 else None
    if charge:
        # A dication takes up an electron and is seen as [M]+ (paraquat), if a file says so.
        reduced = stated and not needs.parts_charge and charge * needs.charge > needs.charge**2
        adds_up = charge * needs.molecules + needs.parts_charge == needs.charge
        return None if adds_up or reduced else "charge"
    return None if stated or needs.parts_charge == needs.charge else "neutral"


def _base_obstacle(needs: _Needs, smiles: str, formula: str) -> str | None:
    if needs.cations > 1:
        counts = element_counts(formula)
        if sum(counts.get(e, 0) for e in ("N", "O", "S", "P", "Se", "As", "Te")) < needs.cations:
            return "charges"
    if _LONE_PAIR.search(formula):
        return None
    if needs.binds:
        return "binding"
    return None if _PI.search(smiles) else "proton"


def _acid_obstacle(needs: _Needs, smiles: str, formula: str) -> str | None:
    if not _HYDROGEN.search(formula):
        return "acid"
    if needs.exchanged:
        if len(_POLAR_HYDROGEN.findall(smiles)) >= needs.donated:
            return None
        groups = _structure(smiles)
        acidic = groups.polar_hydrogens + groups.acidic_carbons
        return None if acidic >= needs.donated else "exchange"
    if _PI.search(smiles) and _HETEROATOM.search(formula):
        return None
    if _POLAR_HYDROGEN.search(smiles):
        return None
    groups = _structure(smiles)
    return None if groups.polar_hydrogens or groups.other_acids else "acid"


def _loses_water(smiles: str, formula: str, waters: int) -> bool:
    if element_counts(formula).get("O", 0) < waters:
        return False
    plain = len(_PLAIN_OXYGEN.findall(smiles))
    if plain < waters and not _MAY_BE_WEAK.search(smiles):
        plain = smiles.count("O")
    return plain >= waters or _structure(smiles).leaving_oxygens >= waters


@dataclass(frozen=True)
class _Structure:
    """Counts of the groups that rules ask for."""

    leaving_oxygens: int = 0
    ammonias: int = 0
    polar_hydrogens: int = 0
    acidic_carbons: int = 0
    other_acids: int = 0


@lru_cache(maxsize=_CACHED)
def _structure(smiles: str) -> _Structure:
    """Count groups of a molecule; 99 each if it cannot be parsed, so that no rule excludes it."""
    try:
        molecule = parse_molecule(smiles)
    except MoleculeError:
        return _Structure(*(99,) * 5)
    polar = molecule.GetSubstructMatches(_ON_HETEROATOM)
    return _Structure(
        len(molecule.GetSubstructMatches(_LEAVING_OXYGEN)),
        len(molecule.GetSubstructMatches(_AMMONIA)),
        sum(molecule.GetAtomWithIdx(atom).GetTotalNumHs() for (atom,) in polar),
        len({match[0] for match in molecule.GetSubstructMatches(_BESIDE_ACCEPTOR)}),
        len(molecule.GetSubstructMatches(_OTHER_ACIDS)),
    )
