"""What a forward model reads of a fragment: composition, what is lost, and the bonds that broke."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit.Chem import BondType, CanonicalRankAtoms, Mol
from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput, GetMorganGenerator

from mzseek.core.compiled import compiled
from mzseek.fragments.fragmentation import (
    BONDS,
    HYDROGEN_BITS,
    MAX_CLEAVAGES,
    MAX_FRAGMENT_ROWS,
    PER_DALTON,
    graph_of,
    listed,
)

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]

_ELEMENTS = (6, 7, 8, 16, 15, 9, 17, 35, 53)  # then any other heavy atom, then hydrogen
_OTHER, _HYDROGEN = len(_ELEMENTS), len(_ELEMENTS) + 1
SYMBOLS = ("C", "N", "O", "S", "P", "F", "Cl", "Br", "I", "", "H")  # "" for any other
HYDROGEN_COLUMN = _HYDROGEN
_ELEMENT_COLUMNS = len(_ELEMENTS) + 2
_COLUMN_OF = np.full(128, _OTHER)  # by atomic number
_COLUMN_OF[list(_ELEMENTS)] = np.arange(len(_ELEMENTS))
_UNITS = np.array([10, 3, 3, 1, 1, 2, 1, 1, 1, 1, 10], np.float32)  # of counts, by element
# Bonds to an atom of each element in a neutral molecule, less two: what unsaturation counts.
_VALENCES = np.array([2, 1, 0, 0, 1, -1, -1, -1, -1, 2, -1], np.float32)
# Atoms that are: aromatic, in a ring, an amine, an amide, an aromatic nitrogen, a carbonyl oxygen,
# a hydroxyl oxygen, an sp3 carbon, charged.
_FLAGS = 9
_BOND_KINDS = {BondType.SINGLE: 0, BondType.DOUBLE: 1, BondType.TRIPLE: 2}
_RING, _CONJUGATED, _KINDS = 4, 8, 16
_CHALCOGEN = np.isin(np.arange(128), (8, 16))

# The index of a fragment into the table of embeddings. 0 stands for nothing.
ENVIRONMENTS, LOSSES, FORMULAS = 4096, 4096, 8192  # buckets that hashes fall into
_MAX_BROKEN, _BOND_INDICES = 3, 5
# How it was broken out, parts of the molecule, odd number of electrons; of each broken bond its
# kind, both atoms, and the pair of them by two radii; what is lost, and what is left.
_SIZES = (len(BONDS), 4, 2, _KINDS, *(ENVIRONMENTS,) * 4, LOSSES, FORMULAS)
_FIRSTS = 1 + np.concatenate([[0], np.cumsum(_SIZES)])
EMBEDDINGS = int(_FIRSTS[-1])
INDICES = 3 + _MAX_BROKEN * _BOND_INDICES + 2
NUMBERS = 2 * _ELEMENT_COLUMNS + 2 * (_ELEMENT_COLUMNS - 2) + 2 * _FLAGS + 6
MAX_WAYS = 3  # to break out one mass, that are described
MAX_ROWS = 1500  # of a molecule; fragments of most cleavages are left out first

_MORGAN = GetMorganGenerator(radius=1, includeRedundantEnvironments=True)
_MIX, _SHIFTS = np.uint64(0x9E3779B97F4A7C15), (np.uint64(15), np.uint64(29))
# Above the electrons and hydrogens of an atom: a key, so that the sum over a fragment tells which
# atoms it has.
_KEY_SHIFT, _KEY_BITS = 40, 16


@dataclass(frozen=True, eq=False)
class MoleculeContext:
    """Atoms and bonds of a molecule as `describe` reads them.

    Attributes
    ----------
    units : int64 array, shape (atoms, 2)
        As in `mzseek.fragments.fragmentation.AtomGraph`.
    bonds : int32 array, shape (bonds, 2)
    counts : int16 array, shape (atoms, elements + flags)
        Of each atom: its element, its hydrogens, and what it is.
    contexts : int32 array, shape (bonds, 2, 5)
        Buckets of each bond, seen from its first and from its second atom.
    atom_keys, bond_keys : int64 arrays, shapes (atoms,) and (bonds,)
        Hashes that are equal for equivalent atoms and bonds, in whatever order atoms are.
    """

    units: Ints
    bonds: Indices
    counts: npt.NDArray[np.int16]
    contexts: Indices
    atom_keys: Ints
    bond_keys: Ints


class FragmentRows(NamedTuple):
    """Described fragments of a molecule, by rising mass.

    Attributes
    ----------
    masses : float64 array, shape (rows,)
    hydrogens : int32 array, shape (rows,)
    numbers : float32 array, shape (rows, NUMBERS)
    indices : int32 array, shape (rows, INDICES)
        Into a table of `EMBEDDINGS`, rising; 0 for none.
    """

    masses: npt.NDArray[np.float64]
    hydrogens: Indices
    numbers: Floats
    indices: Indices


def molecule_context(molecule: Mol) -> MoleculeContext:
    """Read atoms, bonds and their environments."""
    graph = graph_of(molecule)
    number = len(graph.atoms)
    atoms = [molecule.GetAtomWithIdx(index) for index in graph.atoms]
    elements = np.array([atom.GetAtomicNum() for atom in atoms])
    aromatic = np.array([atom.GetIsAromatic() for atom in atoms])
    hydrogens = np.array([atom.GetTotalNumHs() for atom in atoms])
    heavy = set(graph.atoms)
    bonds = [
        bond
        for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
        if bond.GetBeginAtomIdx() in heavy and bond.GetEndAtomIdx() in heavy
    ]
    orders = np.array([_BOND_KINDS.get(bond.GetBondType(), 3) for bond in bonds], np.int64)
    flagged = [_RING * bond.IsInRing() + _CONJUGATED * bond.GetIsConjugated() for bond in bonds]
    kinds = orders + np.array(flagged, np.int64)
    ends = graph.bonds.astype(np.int64)
    double_oxygen, beside_carbonyl, beside_aromatic, is_double = np.zeros((4, number), np.bool_)
    all_single = np.ones(number, np.bool_)
    all_single[ends[orders > 0]] = False
    sides = (ends.T, ends.T[::-1])
    for here, there in sides:
        is_double[here[orders == 1]] = True
        double_oxygen[here[(orders == 1) & _CHALCOGEN[elements[there]]]] = True
        beside_aromatic[here[aromatic[there]]] = True
    for here, there in sides:
        beside_carbonyl[here[double_oxygen[there]]] = True
    nitrogen, oxygen = elements == 7, elements == 8
    counts = np.zeros((number, _ELEMENT_COLUMNS + _FLAGS), np.int16)
    counts[np.arange(number), _COLUMN_OF[elements]] = 1
    counts[:, _HYDROGEN] = hydrogens
    flags = (
        aromatic,
        np.array([atom.IsInRing() for atom in atoms]),
        nitrogen & all_single & ~beside_carbonyl & ~beside_aromatic & ~aromatic,
        nitrogen & beside_carbonyl,
        nitrogen & aromatic,
        oxygen & is_double,
        oxygen & (hydrogens > 0),
        (elements == 6) & all_single & ~aromatic,
        np.array([atom.GetFormalCharge() != 0 for atom in atoms]),
    )
    counts[:, _ELEMENT_COLUMNS:] = np.stack(flags, 1).reshape(number, _FLAGS)
    contexts = _bond_contexts(_environments(molecule, graph.atoms), ends, kinds)
    ranks = CanonicalRankAtoms(molecule, breakTies=False, includeChirality=False)
    rank = np.array(ranks, np.uint64)[graph.atoms]
    atom_keys = _mix(_mix(rank, elements), hydrogens)
    of_ends = np.sort(atom_keys[ends], axis=1)
    bond_keys = _mix(_mix(of_ends[:, 0], kinds), of_ends[:, 1])
    return MoleculeContext(
        graph.units, graph.bonds, counts, contexts,
        (atom_keys >> np.uint64(64 - _KEY_BITS)).astype(np.int64), bond_keys.astype(np.int64),
    )  # fmt: skip


def _environments(molecule: Mol, atoms: list[int]) -> npt.NDArray[np.uint64]:
    """Morgan environments of radius 0 and 1 around each heavy atom, shape (2, atoms)."""
    output = AdditionalOutput()
    output.AllocateBitInfoMap()
    _MORGAN.GetSparseCountFingerprint(molecule, additionalOutput=output)
    environments = np.zeros((2, molecule.GetNumAtoms()), np.uint64)
    for bit, centres in output.GetBitInfoMap().items():
        for atom, radius in centres:
            environments[radius, atom] = bit
    return environments[:, atoms]


def _bond_contexts(environments: npt.NDArray[np.uint64], ends: Ints, kinds: Ints) -> Indices:
    """Indices of each bond into the table of embeddings, from both sides."""
    inside, outside = environments[:, ends], environments[:, ends[:, ::-1]]  # (2, bonds, sides)
    pairs = _mix(_mix(inside, kinds[:, None]), outside)
    seen = np.stack([inside[1], outside[1], *pairs], 2)
    buckets = _mix(seen, np.zeros(1)) % np.uint64(ENVIRONMENTS) + _FIRSTS[4:8].astype(np.uint64)
    of_kinds = np.broadcast_to((kinds + _FIRSTS[3])[:, None, None], (len(ends), 2, 1))
    return np.concatenate([of_kinds, buckets.astype(np.int64)], 2).astype(np.int32)


def _mix(values: npt.NDArray[np.uint64], others: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    mixed = (values ^ (values >> _SHIFTS[0])) * _MIX + others.astype(np.uint64)
    return np.asarray(mixed ^ (mixed >> _SHIFTS[1]), np.uint64)


def describe(context: MoleculeContext) -> FragmentRows:
    """Describe the fragments of a molecule after up to three cleavages.

    A mass that can be broken out in several ways with equally few cleavages has a row for each of
    them, `MAX_WAYS` at most: those of the lowest keys, whatever the order of atoms.
    """
    units = context.units.copy()
    units[:, 1] += context.atom_keys << _KEY_SHIFT
    values, codes, broken, _ = listed(units, context.bonds, MAX_CLEAVAGES, MAX_FRAGMENT_ROWS)
    keys = values[:, 1] ^ np.append(context.bond_keys, 0)[broken].sum(1)
    order = np.lexsort((keys, codes, values[:, 0]))
    rows = _chosen(order, values[:, 0], codes)
    if len(rows) > MAX_ROWS:
        rows = rows[np.sort(np.argsort(codes[rows], kind="stable")[:MAX_ROWS])]
    inside, parts = _members(units, context.bonds, values[rows], broken[rows])
    numbers, counts = _numbers(context.counts, inside, values[rows, 0] / PER_DALTON)
    hydrogens = values[rows, 1] & ((1 << HYDROGEN_BITS) - 1)
    return FragmentRows(
        values[rows, 0] / PER_DALTON,
        hydrogens.astype(np.int32),
        numbers,
        _indices(context, inside, parts, codes[rows], broken[rows], counts),
    )


def compositions(rows: FragmentRows) -> Ints:
    """Atoms of each element in each fragment, shape (rows, len(SYMBOLS))."""
    counts = np.rint(rows.numbers[:, :_ELEMENT_COLUMNS] * _UNITS)
    return np.asarray(counts, np.int64)


def _numbers(
    counts: npt.NDArray[np.int16], inside: npt.NDArray[np.bool_], masses: npt.NDArray[np.float64]
) -> tuple[Floats, Ints]:
    """Inputs of the network, and atoms of each element in the fragments and in their losses."""
    # Whole numbers, so that sums are exact in any order.
    of_fragment = inside.astype(np.float32) @ counts.astype(np.float32)
    both = np.stack([of_fragment, counts.sum(0, dtype=np.float32) - of_fragment], 1)
    elements, flags = both[:, :, :_ELEMENT_COLUMNS], both[:, :, _ELEMENT_COLUMNS:]
    unsaturation = 1 + (elements * _VALENCES).sum(2) / 2
    mass, whole = masses.astype(np.float32), np.float32(masses.max())
    columns = [
        (elements / _UNITS).reshape(len(both), -1),
        (elements[:, :, : _ELEMENT_COLUMNS - 2] > 0).reshape(len(both), -1),
        (flags / 3).reshape(len(both), -1),
        unsaturation / 5,
        np.stack([mass / whole, mass / 300, (whole - mass) / 100, mass * 0 + whole / 500], 1),
    ]
    return np.hstack(columns).astype(np.float32), elements.astype(np.int64)


def _indices(
    context: MoleculeContext,
    inside: npt.NDArray[np.bool_],
    parts: Ints,
    codes: npt.NDArray[np.int8],
    broken: Indices,
    counts: Ints,
) -> Indices:
    """Indices into the table of embeddings."""
    rows = np.arange(len(inside))[:, None]
    contexts = np.zeros((len(inside), _MAX_BROKEN, _BOND_INDICES), np.int32)
    if len(context.bonds):
        ends = context.bonds[broken]  # (rows, broken, 2); of the last bond where none is broken
        first, second = inside[rows, ends[:, :, 0]], inside[rows, ends[:, :, 1]]
        cut = (broken >= 0) & (first != second)
        contexts = np.where(cut[:, :, None], context.contexts[broken, second.astype(int)], 0)
    odd = (counts[:, 0] * (_VALENCES.astype(np.int64) & 1)).sum(1) & 1
    formula, loss = _hashed(counts).T
    indices = np.column_stack(
        [
            contexts.reshape(len(inside), -1),
            _FIRSTS[0] + codes,
            _FIRSTS[1] + np.minimum(parts, 4) - 1,
            _FIRSTS[2] + odd,
            _FIRSTS[8] + loss % LOSSES,
            _FIRSTS[9] + formula % FORMULAS,
        ]
    )
    # Rising, so that sums do not depend on the order of broken bonds.
    return np.sort(indices.astype(np.int32), axis=1)


@compiled
def _hashed(counts: Ints) -> Ints:
    """One number for each composition, counts being (rows, 2, elements)."""
    values = np.full(counts.shape[:2], 7, np.uint64)
    for column in range(counts.shape[2]):
        values = (values ^ (values >> _SHIFTS[0])) * _MIX + counts[:, :, column].astype(np.uint64)
        values = values ^ (values >> _SHIFTS[1])
    return (values >> np.uint64(1)).astype(np.int64)


@compiled
def _chosen(order: Ints, masses: Ints, codes: npt.NDArray[np.int8]) -> Ints:
    """Keep the rows with the fewest cleavages of each mass, in this order, at most `MAX_WAYS`."""
    rows = np.empty(len(order), np.int64)
    count, mass, fewest, ways = 0, np.int64(-1), 0, 0
    for row in order:
        if masses[row] != mass:
            mass, fewest, ways = masses[row], codes[row], 0
        if codes[row] == fewest and ways < MAX_WAYS:
            rows[count] = row
            count, ways = count + 1, ways + 1
    return rows[:count]


@compiled
def _members(
    units: Ints, bonds: Indices, values: Ints, broken: Indices
) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Atoms of each fragment, shape (rows, atoms), and parts that its broken bonds leave."""
    atoms = len(units)
    starts = np.zeros(atoms + 1, np.int64)
    for bond in range(len(bonds)):
        starts[bonds[bond, 0] + 1] += 1
        starts[bonds[bond, 1] + 1] += 1
    starts = np.cumsum(starts)
    fill, around = starts[:-1].copy(), np.empty(2 * len(bonds), np.int64)
    for bond in range(len(bonds)):
        for side in range(2):
            around[fill[bonds[bond, side]]] = bond
            fill[bonds[bond, side]] += 1
    inside, parts = np.zeros((len(values), atoms), np.bool_), np.zeros(len(values), np.int64)
    label, stack = np.empty(atoms, np.int64), np.empty(atoms, np.int64)
    for row in range(len(values)):
        label[:] = -1
        fragment = -1
        for root in range(atoms):
            if label[root] >= 0:
                continue
            mass, packed, depth = np.int64(0), np.int64(0), 1
            stack[0], label[root] = root, parts[row]
            while depth > 0:
                depth -= 1
                atom = stack[depth]
                mass, packed = mass + units[atom, 0], packed + units[atom, 1]
                for at in range(starts[atom], starts[atom + 1]):
                    bond = around[at]
                    if bond in (broken[row, 0], broken[row, 1], broken[row, 2]):
                        continue
                    other = bonds[bond, 0] + bonds[bond, 1] - atom
                    if label[other] < 0:
                        label[other] = parts[row]
                        stack[depth] = other
                        depth += 1
            if fragment < 0 and mass == values[row, 0] and packed == values[row, 1]:
                fragment = parts[row]
            parts[row] += 1
        inside[row] = label == fragment
    return inside, parts
