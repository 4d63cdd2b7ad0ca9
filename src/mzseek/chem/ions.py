"""Which ions a molecule can form: a rule for each way to become an ion, with its reason.

The rules exclude what cannot exist (no oxygen, no loss of water), not what is rare: every ion that
a reference library has measured of a molecule must pass. Most molecules are judged by the text of
their formula and SMILES; a structure is parsed only where the answer depends on it.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rdkit import Chem

from mzseek.chem.adducts import ELECTRON_MASS, atoms_of, parse_adduct
from mzseek.chem.molecules import parse_molecule
from mzseek.core.errors import MoleculeError


@dataclass(frozen=True)
class IonRule:
    """A condition that a molecule must meet to form some ions."""

    name: str
    ions: str  # which ions it concerns, with examples
    needs: str  # what the molecule must have
    reason: str  # why a molecule that lacks it is left out, as notes say it


RULES: Mapping[str, IonRule] = {
    rule.name: rule
    for rule in (
        IonRule(
            "charge",
            "all of a permanent cation or anion",
            "a net charge of the molecule that, with those of the parts gained or lost, adds up to "
            "the charge of the ion: choline is `[M]+`, never `[M+H]+` or `[M+Na]+`; inner salts "
            "(betaine, nitro compounds, N-oxides) are neutral",
            "a permanent charge",
        ),
        IonRule(
            "neutral",
            "`[M]+`, `[M]-`, `[M-H]+` of a neutral molecule",
            "a statement of the file, of `--adduct`, or electron ionisation: electrospray makes "
            "none of them as a rule",
            "no permanent charge",
        ),
        IonRule(
            "water",
            "`[M+H-H2O]+`, `[M+H-2H2O]+`, `[M-H-H2O]-`",
            "for each water an oxygen that can leave as one: any but those of nitro groups, "
            "sulfones and sulfonamides, and of aromatic rings",
            "no oxygen to lose as water",
        ),
        IonRule(
            "ammonia",
            "`[M+H-NH3]+`",
            "a nitrogen that carries hydrogen, or is in a nitrile or imine",
            "no nitrogen to lose as ammonia",
        ),
        IonRule(
            "proton",
            "`[M+H]+`, `[M+2H]2+`, `[M+H-H2O]+`",
            "a lone pair (N, O, S, P, Se, As) or a pi bond that takes up a proton; alkanes and "
            "saturated halocarbons have neither",
            "no lone pair and no pi bond to take up a proton",
        ),
        IonRule(
            "binding",
            "`[M+Na]+`, `[M+K]+`, `[M+NH4]+`, `[M+Li]+`, `[M+ACN+H]+`, `[2M+H]+`, `[2M-H]-`",
            "an atom with a lone pair (N, O, S, P, Se, As) that binds the cation, the solvent or "
            "the second molecule",
            "no N, O, S or P to bind it",
        ),
        IonRule(
            "charges",
            "`[M+2H]2+`, `[M+H+Na]2+`, `[M+3H]3+`",
            "as many atoms with a lone pair as charges are added",
            "fewer atoms with a lone pair than charges",
        ),
        IonRule(
            "acid",
            "`[M-H]-`, `[2M-H]-`, `[M-H-H2O]-`",
            "a hydrogen to give: on N, O, S or P; on carbon in a molecule with a pi bond and a "
            "heteroatom, which stabilise the anion; on carbon beside two halogens; of a terminal "
            "alkyne or a cyclopentadiene",
            "no acidic hydrogen to give",
        ),
        IonRule(
            "exchange",
            "`[M-2H]2-`, `[M+Na-2H]-`, `[M+2Na-H]+`",
            "as many hydrogens on N, O, S or P, or on carbon beside C=O, C=N, C≡N, NO2, S=O or "
            "P=O, as are given",
            "too few acidic hydrogens to give",
        ),
        IonRule(
            "anion",
            "`[M+Cl]-`, `[M+FA-H]-`, `[M+HAc-H]-`, `[M+Br]-`",
            "a hydrogen, and a heteroatom that polarises it, to bind the anion",
            "no polar hydrogen to bind the anion",
        ),
        IonRule(
            "atoms",
            "others with a loss: `[M+H-CO2]+`, `[M-CH3]+`",
            "the atoms that are lost",
            "not the atoms that are lost",
        ),
    )
}

_METALS_AND_AMMONIUM = frozenset(("Li", "Na", "K", "Rb", "Cs", "NH4", "Mg", "Ca"))
_ACIDS = frozenset(("FA", "HFA", "HCOOH", "CH2O2", "HAc", "Hac", "AcOH", "CH3COOH", "C2H4O2",
                    "TFA"))  # fmt: skip
_ANIONS = frozenset(("F", "Cl", "Br", "I", "HCOO", "CHO2", "CH3COO", "Ac", "OAc"))
_SOLVENTS = frozenset(("H2O", "NH3", "ACN", "C2H3N", "CH3CN", "MeOH", "CH3OH", "CH4O", "EtOH",
                       "IsoProp", "DMSO"))  # fmt: skip

_CHARGED_ATOM = re.compile(r"\[[^\]]*?([+-]+)(\d*)(?::\d+)?\]")
_ELEMENT = re.compile(r"([A-Z][a-z]?)(\d*)")
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
    """What an ion asks of its molecule, by the parts of its name."""

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
    needs = _needs(adduct)
    charge = net_charge(smiles) if "[" in smiles else 0
    name = _charge_obstacle(needs, charge, stated)
    if name is None and (needs.protons or needs.binds):
        name = _base_obstacle(needs, smiles, formula)
    if name is None and needs.donated:
        name = _acid_obstacle(needs, smiles, formula)
    if name is None and needs.anion:
        polar = _HYDROGEN.search(formula) and _HETEROATOM.search(formula)
        name = None if polar else "anion"
    if name is None and needs.waters and not _loses_water(smiles, formula, needs.waters):
        name = "water"
    if name is None and needs.ammonias and not _loses_ammonia(smiles, formula):
        name = "ammonia"
    if name is None and needs.lost:
        counts = _counts(formula)
        if any(counts.get(e, 0) * needs.molecules < n for e, n in needs.lost.items()):
            name = "atoms"
    return None if name is None else RULES[name]


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
    if needs.parts_charge is None:
        return None
    if charge:
        # A dication takes up an electron and is seen as [M]+ (paraquat), if a file says so.
        reduced = stated and not needs.parts_charge and charge * needs.charge > needs.charge**2
        adds_up = charge * needs.molecules + needs.parts_charge == needs.charge
        return None if adds_up or reduced else "charge"
    return None if stated or needs.parts_charge == needs.charge else "neutral"


def _base_obstacle(needs: _Needs, smiles: str, formula: str) -> str | None:
    if needs.cations > 1:
        counts = _counts(formula)
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
    if _counts(formula).get("O", 0) < waters:
        return False
    plain = len(_PLAIN_OXYGEN.findall(smiles))
    if plain < waters and not _MAY_BE_WEAK.search(smiles):
        plain = smiles.count("O")
    return plain >= waters or _structure(smiles).leaving_oxygens >= waters


def _loses_ammonia(smiles: str, formula: str) -> bool:
    return "N" in _counts(formula) and _structure(smiles).ammonias > 0


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
    """Groups of a molecule; of what cannot be parsed, which nothing can judge, many of each."""
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


@lru_cache(maxsize=_CACHED)
def _counts(formula: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for element, number in _ELEMENT.findall(formula):
        counts[element] = counts.get(element, 0) + int(number or 1)
    return counts
