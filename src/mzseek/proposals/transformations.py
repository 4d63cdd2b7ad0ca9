"""Transformations of molecules: a table of RDKit reactions with their mass differences.

Most add a group in the place of a hydrogen, or remove it (`GROUPS`); others rewrite a functional
group (`EDITS`), exchange one (`EXCHANGES`), or cut a bond to a hetero atom (`CLEAVAGES`). Every
transformation but a cleavage has its reverse in the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from rdkit import Chem, rdBase
from rdkit.Chem import rdChemReactions

from mzseek.chem.formulas import parse_formula
from mzseek.chem.molecules import exact_mass

# Where a group can be attached, by label: the atom with a hydrogen to lose, the atom with a group,
# and what stands for it in the product with and without the group.
SITES = {
    "O": ("[OX2H1:1]", "[OX2:1]", "[O:1]", "[O:1]"),
    "S": ("[SX2H1:1]", "[SX2:1]", "[S:1]", "[S:1]"),
    "N": ("[NX3;!H0;+0:1]", "[NX3;+0:1]", "[N:1]", "[N:1]"),
    "n": ("[n;H1:1]", "[n;X3;+0:1]", "[n:1]", "[nH:1]"),
    "c": ("[c;H1:1]", "[c:1]", "[c:1]", "[c:1]"),
    "C": ("[CX4;!H0:1]", "[CX4:1]", "[C:1]", "[C:1]"),
    "C=": ("[CX3;!H0;$(C=C):1]", "[CX3;$(C=C):1]", "[C:1]", "[C:1]"),
    "C(=O)": ("[CX3;H1;$(C=O):1]", "[CX3;$(C=O):1]", "[C:1]", "[C:1]"),
}
# Name, SMILES behind the bond to the site, and sites.
GROUPS = (
    ("methyl", "C", "O S N n c C C="),
    ("ethyl", "CC", "O S N n c C"),
    ("propyl", "CCC", "O N n C"),
    ("isopropyl", "C(C)C", "O N n c C"),
    ("butyl", "CCCC", "O N C"),
    ("isobutyl", "CC(C)C", "O N C"),
    ("tert-butyl", "C(C)(C)C", "O N c"),
    ("allyl", "CC=C", "O N c"),
    ("prenyl", "CC=C(C)C", "O N n c C"),
    ("geranyl", "CC=C(C)CCC=C(C)C", "O c"),
    ("phenyl", "c1ccccc1", "O N n c C"),
    ("benzyl", "Cc1ccccc1", "O N n C"),
    ("hydroxyethyl", "CCO", "O N n"),
    ("carboxymethyl", "CC(=O)O", "O S N n"),
    ("hydroxymethyl", "CO", "N n c C"),
    ("formyl", "C=O", "O N n c"),
    ("acetyl", "C(C)=O", "O S N n c C"),
    ("propionyl", "C(=O)CC", "O N"),
    ("butyryl", "C(=O)CCC", "O N"),
    ("isobutyryl", "C(=O)C(C)C", "O N"),
    ("isovaleryl", "C(=O)CC(C)C", "O N"),
    ("2-methylbutyryl", "C(=O)C(C)CC", "O N"),
    ("angeloyl", "C(=O)C(C)=CC", "O"),
    ("benzoyl", "C(=O)c1ccccc1", "O N"),
    ("galloyl", "C(=O)c1cc(O)c(O)c(O)c1", "O"),
    ("coumaroyl", "C(=O)C=Cc1ccc(O)cc1", "O N"),
    ("caffeoyl", "C(=O)C=Cc1ccc(O)c(O)c1", "O N"),
    ("feruloyl", "C(=O)C=Cc1ccc(O)c(OC)c1", "O N"),
    ("sinapoyl", "C(=O)C=Cc1cc(OC)c(O)c(OC)c1", "O"),
    ("malonyl", "C(=O)CC(=O)O", "O N"),
    ("succinyl", "C(=O)CCC(=O)O", "O N"),
    ("glutaryl", "C(=O)CCCC(=O)O", "O N"),
    ("carboxyl", "C(=O)O", "N c C C="),
    ("methoxycarbonyl", "C(=O)OC", "N c C C="),
    ("ethoxycarbonyl", "C(=O)OCC", "N c C"),
    ("carbamoyl", "C(N)=O", "O N c C"),
    ("hydroxyl", "O", "N c C C= C(=O)"),
    ("methoxyl", "OC", "N c C"),
    ("ethoxyl", "OCC", "c C"),
    ("acetoxyl", "OC(C)=O", "c C"),
    ("amino", "N", "N c C C(=O)"),
    ("methylamino", "NC", "c C C(=O)"),
    ("dimethylamino", "N(C)C", "c C"),
    ("acetamido", "NC(C)=O", "c C"),
    ("nitro", "[N+](=O)[O-]", "c C"),
    ("nitroso", "N=O", "N"),
    ("cyano", "C#N", "N c C C="),
    ("fluoro", "F", "c C C="),
    ("chloro", "Cl", "c C C="),
    ("bromo", "Br", "c C"),
    ("iodo", "I", "c"),
    ("trifluoromethyl", "C(F)(F)F", "c C"),
    ("trifluoromethoxyl", "OC(F)(F)F", "c"),
    ("sulfanyl", "S", "c C"),
    ("methylsulfanyl", "SC", "c C"),
    ("methylsulfinyl", "S(C)=O", "c C"),
    ("methylsulfonyl", "S(C)(=O)=O", "N c C"),
    ("sulfamoyl", "S(N)(=O)=O", "c"),
    ("sulfonic acid", "S(=O)(=O)O", "O N c C"),
    ("phosphate", "P(=O)(O)O", "O N C"),
    ("diphosphate", "P(=O)(O)OP(=O)(O)O", "O"),
    ("diethyl phosphate", "P(=O)(OCC)OCC", "O"),
    ("glucuronyl", "C1OC(C(=O)O)C(O)C(O)C1O", "O N n"),
    ("hexosyl", "C1OC(CO)C(O)C(O)C1O", "O S N n c"),
    ("fructosyl", "C1(CO)OC(CO)C(O)C1O", "O"),
    ("deoxyhexosyl", "C1OC(C)C(O)C(O)C1O", "O c"),
    ("pentosyl (pyranose)", "C1OCC(O)C(O)C1O", "O c"),
    ("pentosyl (furanose)", "C1OC(CO)C(O)C1O", "O N n"),
    ("deoxypentosyl", "C1CC(O)C(CO)O1", "O N n"),
    ("N-acetylhexosaminyl", "C1OC(CO)C(O)C(O)C1NC(C)=O", "O"),
    ("rutinosyl", "C1OC(COC2OC(C)C(O)C(O)C2O)C(O)C(O)C1O", "O"),
    ("malonylhexosyl", "C1OC(COC(=O)CC(=O)O)C(O)C(O)C1O", "O"),
    ("glutathionyl", "SCC(NC(=O)CCC(N)C(=O)O)C(=O)NCC(=O)O", "c C"),
    ("cysteinyl", "SCC(N)C(=O)O", "c C"),
    ("N-acetylcysteinyl", "SCC(NC(C)=O)C(=O)O", "c C"),
    ("morpholino", "N1CCOCC1", "c C C(=O)"),
    ("piperidino", "N1CCCCC1", "c C C(=O)"),
    ("pyrrolidino", "N1CCCC1", "c C C(=O)"),
    ("piperazino", "N1CCNCC1", "c C"),
)  # fmt: skip
# By name, SMILES of the side chain.
AMINO_ACIDS = {
    "glycine": "", "alanine": "C", "serine": "CO", "valine": "C(C)C", "threonine": "C(C)O",
    "leucine": "CC(C)C", "isoleucine": "C(C)CC", "asparagine": "CC(N)=O",
    "aspartic acid": "CC(=O)O", "glutamine": "CCC(N)=O", "glutamic acid": "CCC(=O)O",
    "lysine": "CCCCN", "arginine": "CCCNC(=N)N", "methionine": "CCSC", "cysteine": "CS",
    "histidine": "Cc1c[nH]cn1", "phenylalanine": "Cc1ccccc1", "tyrosine": "Cc1ccc(O)cc1",
    "tryptophan": "Cc1c[nH]c2ccccc12",
}  # fmt: skip
# Amines that conjugate acids, by name the SMILES behind the acid's carbonyl carbon; with those of
# the amino acids.
AMINES = {"proline": "N1CCCC1C(=O)O", "taurine": "NCCS(=O)(=O)O", "ethanolamine": "NCCO"} | {
    name: f"NC({chain})C(=O)O" if chain else "NCC(=O)O" for name, chain in AMINO_ACIDS.items()
}
# Acids that conjugate amines and alcohols, likewise.
ACYLS = {"proline": "C(=O)C1CCCN1"} | {
    name: f"C(=O)C(N){chain}" if chain else "C(=O)CN" for name, chain in AMINO_ACIDS.items()
}
# Name, name of the reverse, formulas that are added and removed, reactions, reverse reactions.
EDITS = (
    ("hydrogenate C=C", "dehydrogenate C-C", "H2", "",
     ("[C:1]=[C:2]>>[C:1]-[C:2]",), ("[CX4;!H0:1]-[CX4;!H0:2]>>[C:1]=[C:2]",)),
    ("reduce ketone or aldehyde", "oxidise alcohol", "H2", "",
     ("[CX3;!$(C[O,N,S]):1]=[OX1:2]>>[C:1]-[O:2]",),
     ("[CX4;!H0:1]-[OX2H1:2]>>[C:1]=[O:2]",)),
    ("hydrogenate C=N", "dehydrogenate C-N", "H2", "",
     ("[C:1]=[NX2:2]>>[C:1]-[N:2]",), ("[CX4;!H0:1]-[NX3;!H0:2]>>[C:1]=[N:2]",)),
    ("hydrogenate alkyne", "dehydrogenate alkene", "H2", "",
     ("[C:1]#[C:2]>>[C:1]=[C:2]",), ("[C;!H0;!R:1]=[C;!H0;!R:2]>>[C:1]#[C:2]",)),
    ("oxidise tertiary amine to N-oxide", "reduce N-oxide", "O", "",
     ("[NX3;H0;+0;!$(N[C,S]=[O,S,N]):1]>>[N+:1]-[O-]", "[n;X2;+0:1]>>[n+:1]-[O-]"),
     ("[N;X4;+:1]-[O-]>>[N+0:1]", "[n+:1]-[O-]>>[n+0:1]")),
    ("oxidise sulfide to sulfoxide", "reduce sulfoxide", "O", "",
     ("[SX2;H0:1]([#6:2])[#6:3]>>[S:1](=O)([*:2])[*:3]",),
     ("[SX3:1](=[OX1])([#6:2])[#6:3]>>[S:1]([*:2])[*:3]",)),
    ("oxidise sulfoxide to sulfone", "reduce sulfone to sulfoxide", "O", "",
     ("[SX3:1](=[O:4])([#6:2])[#6:3]>>[S:1](=O)(=[O:4])([*:2])[*:3]",),
     ("[SX4:1](=[O:4])(=[OX1])([#6:2])[#6:3]>>[S:1](=[O:4])([*:2])[*:3]",)),
    ("oxidise sulfide to sulfone", "reduce sulfone to sulfide", "O2", "",
     ("[SX2;H0:1]([#6:2])[#6:3]>>[S:1](=O)(=O)([*:2])[*:3]",),
     ("[SX4:1](=[OX1])(=[OX1])([#6:2])[#6:3]>>[S:1]([*:2])[*:3]",)),
    ("epoxidise C=C", "deoxygenate epoxide", "O", "",
     ("[C:1]=[C:2]>>[C:1]1-[C:2]-O1",), ("[C:1]1-[C:2]-[OX2]1>>[C:1]=[C:2]",)),
    ("hydrate C=C", "dehydrate", "H2O", "",
     ("[C:1]=[C:2]>>[C:1]-[C:2]-O",), ("[CX4;!H0:1]-[CX4:2]-[OX2H1]>>[C:1]=[C:2]",)),
    ("dihydroxylate C=C", "remove diol", "H2O2", "",
     ("[C:1]=[C:2]>>O-[C:1]-[C:2]-O",), ("[OX2H1][CX4:1]-[CX4:2]-[OX2H1]>>[C:1]=[C:2]",)),
    ("hydrolyse ring ester or amide", "lactonise or lactamise", "H2O", "",
     ("([CX3;R:1](=[O:2])-[O,N;R:3])>>([C:1](=[O:2])O.[*:3])",),
     ("([CX3:1](=[O:2])[OX2H1].[O,N;!H0;!$(*C=O):3])>>([C:1](=[O:2])-[*:3])",)),
    ("open epoxide", "close epoxide", "H2O", "",
     ("[CX4:1]1-[CX4:2]-[OX2:3]1>>[C:1](O)-[C:2]-[O:3]",),
     ("[OX2H1][CX4:1]-[CX4:2]-[OX2H1:3]>>[C:1]1-[C:2]-[O:3]1",)),
    ("hydrolyse nitrile to amide", "dehydrate amide to nitrile", "H2O", "",
     ("[C:1]#[NX1:2]>>[C:1](=O)-[N:2]",), ("[CX3:1](=[OX1])-[NX3H2:2]>>[C:1]#[N:2]",)),
    ("hydrolyse nitrile to acid", "turn acid into nitrile", "H2O2", "HN",
     ("[C:1]#[NX1]>>[C:1](=O)-O",), ("[CX3:1](=[OX1])-[OX2H1]>>[C:1]#N",)),
    ("oxidise primary alcohol to acid", "reduce acid to alcohol", "O", "H2",
     ("[CH2:1]-[OX2H1:2]>>[C:1](=O)-[O:2]",), ("[CX3;$(C[#6]):1](=[OX1])-[OX2H1:2]>>[C:1]-[O:2]",)),
    ("oxidise methyl to acid", "reduce acid to methyl", "O2", "H2",
     ("[CX4H3;$(C[#6]):1]>>[C:1](=O)O",), ("[CX3;$(C[#6]):1](=[OX1])[OX2H1]>>[C:1]",)),
    ("oxidise methyl to aldehyde", "reduce aldehyde to methyl", "O", "H2",
     ("[CX4H3;$(C[#6]):1]>>[C:1]=O",), ("[CX3H1;$(C[#6]):1]=[OX1]>>[C:1]",)),
    ("oxidise CH2 to ketone", "reduce ketone to CH2", "O", "H2",
     ("[CX4H2;$(C([#6,#7,#8])[#6]):1]>>[C:1]=O",),
     ("[CX3H0;$(C([#6,#7,#8])[#6]):1]=[OX1]>>[C:1]",)),
    ("desulfurise P=S", "thionate P=O", "O", "S",
     ("[P:1]=[SX1]>>[P:1]=O",), ("[P:1]=[OX1]>>[P:1]=S",)),
    ("desulfurise C=S", "thionate C=O", "O", "S",
     ("[#6:1]=[SX1]>>[*:1]=O",), ("[#6;!$(*[OX2H1]):1]=[OX1]>>[*:1]=S",)),
    ("reduce nitro to amine", "oxidise amine to nitro", "H2", "O2",
     ("[#6:1]-[N+](=O)[O-]>>[*:1]-N",), ("[c:1]-[NX3H2]>>[c:1]-[N+](=O)[O-]",)),
    ("insert CH2", "remove CH2", "CH2", "",
     ("[CX4:1]-[#6:2]>>[C:1]-C-[*:2]", "[c:1]-[CX3,c,N,O,S:2]>>[*:1]-C-[*:2]",
      "[CX4:1]-[N,O;H0:2]>>[C:1]-C-[*:2]"),
     ("[#6:1]-[CH2]-[#6,N,O,S:2]>>[*:1]-[*:2]",)),
    ("insert C2H4", "remove C2H4", "C2H4", "",
     ("[CX4H2:1]-[CX4H2:2]>>[C:1]-C-C-[*:2]",),
     ("[#6:1]-[CH2]-[CH2]-[#6,N,O:2]>>[*:1]-[*:2]",)),
    ("replace aromatic CH by N", "replace aromatic N by CH", "N", "CH",
     ("[*:1]:[cH]:[*:2]>>[*:1]:[n]:[*:2]",), ("[*:1]:[n;X2;+0]:[*:2]>>[*:1]:[cH]:[*:2]",)),
    ("replace CH2 by O", "replace O by CH2", "O", "CH2",
     ("[#6:1]-[CH2]-[#6:2]>>[*:1]-O-[*:2]",), ("[#6:1]-[OX2]-[#6:2]>>[*:1]-C-[*:2]",)),
    ("replace CH2 by NH", "replace NH by CH2", "HN", "CH2",
     ("[#6:1]-[CH2]-[#6:2]>>[*:1]-N-[*:2]",), ("[#6:1]-[NX3H1]-[#6:2]>>[*:1]-C-[*:2]",)),
    ("replace CH2 by S", "replace S by CH2", "S", "CH2",
     ("[#6:1]-[CH2]-[#6:2]>>[*:1]-S-[*:2]",), ("[#6:1]-[SX2]-[#6:2]>>[*:1]-C-[*:2]",)),
    ("replace NH by O", "replace O by NH", "O", "HN",
     ("[#6:1]-[NX3H1]-[#6:2]>>[*:1]-O-[*:2]",), ("[#6:1]-[OX2]-[#6:2]>>[*:1]-N-[*:2]",)),
    ("replace S by O", "replace O by S", "O", "S",
     ("[#6:1]-[SX2]-[#6:2]>>[*:1]-O-[*:2]", "[*:1]:[s]:[*:2]>>[*:1]:[o]:[*:2]"),
     ("[#6:1]-[OX2]-[#6:2]>>[*:1]-S-[*:2]", "[*:1]:[o]:[*:2]>>[*:1]:[s]:[*:2]")),
    ("bridge two hydroxyls by CH2", "open methylenedioxy", "C", "",
     ("[c:1](-[OX2H1:3]):[c:2]-[OX2H1:4]>>[c:1]1-[O:3]-C-[O:4]-[c:2]:1",),
     ("[c:1]1-[O:3]-[CH2]-[O:4]-[c:2]:1>>[c:1](-[O:3]):[c:2]-[O:4]",)),
    ("shift group in aromatic ring", "", "", "",
     ("[*:2]-!@[c:1]:[cH:3]>>[c:1]:[c:3]-[*:2]",
      "[*:2]-!@[c:1]:[*:4]:[cH:3]>>[c:1]:[*:4]:[c:3]-[*:2]",
      "[*:2]-!@[c:1]:[*:4]:[*:5]:[cH:3]>>[c:1]:[*:4]:[*:5]:[c:3]-[*:2]"), ()),
    ("shift group to neighbouring atom", "", "", "",
     ("[CX4:1](-!@[CX4,OX2,NX3,F,Cl,Br:2])-[CX4;!H0:3]>>[C:1]-[C:3]-[*:2]",
      "[CX4:1](-!@[CX4,OX2,NX3,F,Cl,Br:2])-[CX4:4]-[CX4;!H0:3]>>[C:1]-[C:4]-[C:3]-[*:2]"), ()),
    ("shift double bond", "", "", "",
     ("[C:1]=[C:2]-[CX4;!H0:3]>>[C:1]-[C:2]=[C:3]",), ()),
    ("move methyl between hetero atoms", "", "", "",
     ("([O,N,n:1]-[CX4H3:2].[O,N;!H0:3])>>([*:1].[*:3]-[C:2])",), ()),
    ("shift nitrogen in aromatic ring", "", "", "",
     ("[n;X2;+0:1]:[cH:2]>>[cH:1]:[n:2]",), ()),
)  # fmt: skip
# Groups of which one stands in the place of another, bound to carbon.
EXCHANGES = (
    ("chloro", "bromo"), ("chloro", "fluoro"), ("fluoro", "bromo"), ("chloro", "iodo"),
    ("chloro", "hydroxyl"), ("fluoro", "hydroxyl"), ("bromo", "hydroxyl"),
    ("chloro", "methyl"), ("fluoro", "methyl"), ("chloro", "amino"), ("chloro", "methoxyl"),
    ("chloro", "methylsulfanyl"), ("chloro", "trifluoromethyl"), ("chloro", "cyano"),
    ("chloro", "nitro"), ("methyl", "trifluoromethyl"), ("hydroxyl", "amino"),
    ("hydroxyl", "methyl"), ("hydroxyl", "sulfanyl"), ("hydroxyl", "methoxyl"),
    ("amino", "methyl"), ("amino", "methylamino"), ("amino", "dimethylamino"),
    ("amino", "methoxyl"), ("methoxyl", "ethoxyl"), ("methoxyl", "methyl"),
    ("methoxyl", "methylamino"), ("methoxyl", "methylsulfanyl"), ("methyl", "cyano"),
    ("nitro", "cyano"), ("carboxyl", "sulfonic acid"), ("carboxyl", "sulfamoyl"),
    ("hydroxyl", "methylamino"), ("hydroxyl", "dimethylamino"), ("hydroxyl", "ethoxyl"),
)  # fmt: skip
# Name and reactions: the mass of what is lost depends on the molecule.
CLEAVAGES = (
    ("hydrolyse ester or amide, keep acid", ("[CX3:1](=[O:2])-!@[OX2,NX3;H0,H1]>>[C:1](=[O:2])O",)),
    ("remove acyl group", ("[OX2,NX3,SX2:1]-!@[CX3]=[O,S]>>[*:1]",)),
    ("remove sugar or acetal", ("[O,N,S;X2,X3:1]-!@[CX4;$(C(-!@[*])[OX2;R])]>>[*:1]",)),
    ("keep sugar", ("[CX4;$(C[OX2;R]):1]-!@[O,N,S;X2,X3]>>[C:1]O",)),
    ("dealkylate", ("[OX2,NX3,SX2:1]-!@[CX4]>>[*:1]", "[n:1]-!@[CX4]>>[nH:1]")),
    ("cleave ether or amine, keep alcohol", ("[#6;!$(C=[O,S,N]):1]-!@[OX2,NX3;H0,H1]>>[*:1]O",)),
    ("cleave amine or amide, keep amine", ("[#6;!$(C=[O,S,N]):1]-!@[NX3;H0,H1]>>[*:1]N",)),
    ("remove sulfonyl or phosphoryl group", ("[OX2,NX3:1]-!@[SX4,PX4]>>[*:1]",)),
    ("remove aryl group", ("[OX2,NX3,SX2:1]-!@[c]>>[*:1]",)),
)


@dataclass(frozen=True, eq=False)
class Transformation:
    """A change of a molecule.

    Attributes
    ----------
    name : str
    reactions : tuple of str
        Reaction SMARTS of one reactant; of several products each is one.
    difference : float or None
        Mass that is added; None where it depends on the molecule.
    """

    name: str
    reactions: tuple[str, ...]
    difference: float | None = None

    @cached_property
    def compiled(self) -> tuple[rdChemReactions.ChemicalReaction, ...]:
        """The reactions as RDKit runs them."""
        with rdBase.BlockLogs():
            return tuple(map(rdChemReactions.ReactionFromSmarts, self.reactions))


@lru_cache(maxsize=1)
def transformations() -> tuple[Transformation, ...]:
    """Return all transformations, in the order of the table.

    Examples
    --------
    >>> by_name = {each.name: each for each in transformations()}
    >>> round(by_name["add methyl (O)"].difference, 4)
    14.0157
    >>> round(by_name["remove methyl (O)"].difference, 4)
    -14.0157
    """
    return tuple(_table())


def _table() -> Iterator[Transformation]:
    acyls = ((name, smiles, "O N") for name, smiles in ACYLS.items())
    for name, smiles, sites in (*GROUPS, *acyls):
        added, pattern = _added_mass(smiles), _group_pattern(smiles)
        for site in sites.split():
            free, bound, atom, plain = SITES[site]
            add, remove = f"{free}>>{atom}-{smiles}", f"{bound}-{pattern}>>{plain}"
            yield Transformation(f"add {name} ({site})", (add,), added)
            yield Transformation(f"remove {name} ({site})", (remove,), -added)
    for name, smiles in AMINES.items():
        added, acid = _added_mass(smiles) - _mass("O"), "[CX3:1](=[O:2])"
        conjugate = f"{acid}-[OX2H1]>>[C:1](=[O:2])-{smiles}"
        release = f"{acid}-{_group_pattern(smiles)}>>[C:1](=[O:2])-O"
        yield Transformation(f"conjugate acid with {name}", (conjugate,), added)
        yield Transformation(f"release {name} from amide", (release,), -added)
    for name, reverse, plus, minus, reactions, reversed_reactions in EDITS:
        difference = _mass(plus) - _mass(minus)
        yield Transformation(name, reactions, difference)
        if reversed_reactions:
            yield Transformation(reverse, reversed_reactions, -difference)
    smiles_of = {name: smiles for name, smiles, _ in GROUPS}
    for pair in EXCHANGES:
        for old, new in (pair, pair[::-1]):
            reaction = f"[#6:1]-{_group_pattern(smiles_of[old])}>>[*:1]-{smiles_of[new]}"
            difference = _added_mass(smiles_of[new]) - _added_mass(smiles_of[old])
            yield Transformation(f"replace {old} by {new}", (reaction,), difference)
    for name, reactions in CLEAVAGES:
        yield Transformation(name, reactions)


def _mass(formula: str) -> float:
    return parse_formula(formula).mass if formula else 0.0


def _added_mass(smiles: str) -> float:
    """Mass that a group adds in the place of a hydrogen."""
    return exact_mass(f"[H]{smiles}") - _mass("H2")


def _group_pattern(smiles: str) -> str:
    """Return SMARTS of a group that has no bond but that before its first atom."""
    group = Chem.MolFromSmiles(f"*{smiles}")
    parameters = Chem.AdjustQueryParameters.NoAdjustments()
    parameters.adjustDegree = True
    parameters.adjustDegreeFlags = Chem.AdjustQueryWhichFlags.ADJUST_IGNOREDUMMIES
    pattern = str(Chem.MolToSmarts(Chem.AdjustQueryProperties(group, parameters)))
    return pattern.removeprefix("[#0]-")
