"""In-silico fragmentation: bond cleavages of a molecule graph and the fragments they give."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rdkit.Chem import GetPeriodicTable, Mol

from mzseek.chem.molecules import parse_molecule
from mzseek.core.compiled import compiled

# Masses are whole numbers of nanodaltons: sums are exact, and so the same in any order of atoms.
PER_DALTON = 1_000_000_000
# Electrons and hydrogens are packed into one number: electrons · 2²⁰ + hydrogens.
HYDROGEN_BITS = 20
HYDROGEN = 1


@dataclass(frozen=True, eq=False)
class AtomGraph:
    """Heavy atoms and their bonds.

    Hydrogens belong to the atom they sit on, isotopes of hydrogen, too. Masses are of neutral
    atoms: formal charges are not counted. ``units`` has a row for each atom with its hydrogens: the
    mass in nanodaltons, and electrons and hydrogens (without isotopes that are named).
    """

    molecule: Mol
    atoms: list[int]  # RDKit's index of each heavy atom: its position in the SMILES
    hosts: dict[int, int]  # from a hydrogen that is an atom of its own to its heavy atom
    units: npt.NDArray[np.int64]  # shape (atoms, 2)
    bonds: npt.NDArray[np.int32]  # the two atoms of each bond


def atom_graph(smiles: str) -> AtomGraph:
    """Build the graph of a SMILES; raises `MoleculeError`."""
    return graph_of(parse_molecule(smiles))


def graph_of(molecule: Mol) -> AtomGraph:
    """Build the graph of a molecule that is parsed already."""
    # By index, and not over RDKit's sequences, which take most of the time for themselves.
    atoms = [molecule.GetAtomWithIdx(index) for index in range(molecule.GetNumAtoms())]
    units = [_unit(atom.GetAtomicNum(), atom.GetIsotope(), atom.GetTotalNumHs()) for atom in atoms]
    bonds = map(molecule.GetBondWithIdx, range(molecule.GetNumBonds()))
    pairs = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds]
    heavy, hosts = list(range(len(units))), {}
    if len(units) > molecule.GetNumHeavyAtoms():
        for atom in atoms:  # a hydrogen that is bound to no heavy atom stays an atom
            host = atom.GetNeighbors()[:1]
            if atom.GetAtomicNum() == HYDROGEN and host and host[0].GetAtomicNum() != HYDROGEN:
                hosts[atom.GetIdx()] = host[0].GetIdx()
        for hydrogen, host in hosts.items():
            (mass, counts), (more_mass, more_counts) = units[host], units[hydrogen]
            units[host] = mass + more_mass, counts + more_counts
        heavy = [atom for atom in heavy if atom not in hosts]
        index = {atom: new for new, atom in enumerate(heavy)}
        pairs = [(index[a], index[b]) for a, b in pairs if a in index and b in index]
        units = [units[atom] for atom in heavy]
    return AtomGraph(
        molecule,
        heavy,
        hosts,
        np.array(units, np.int64).reshape(-1, 2),
        np.array(pairs, np.int32).reshape(-1, 2),
    )


@lru_cache(maxsize=4096)
def _unit(number: int, isotope: int, hydrogens: int) -> tuple[int, int]:
    """Return mass, and electrons and hydrogens, of an atom with its hydrogens."""
    mass = nano_mass(number, isotope) + hydrogens * nano_mass(HYDROGEN)
    held = hydrogens + (number == HYDROGEN and not isotope)
    return mass, ((number + hydrogens) << HYDROGEN_BITS) + held


@lru_cache(maxsize=4096)
def nano_mass(number: int, isotope: int = 0) -> int:
    """Return the mass of an atom in nanodaltons, of its most abundant isotope where none is named.

    Examples
    --------
    >>> nano_mass(6), nano_mass(6, 13)
    (12000000000, 13003354840)
    """
    table = GetPeriodicTable()
    usual = table.GetMostCommonIsotopeMass
    mass = table.GetMassForIsotope(number, isotope) if isotope else usual(number)
    return round(float(mass) * PER_DALTON)


Ints = npt.NDArray[np.int64]
# For each bond the atom below it; for each atom when it was reached, the last reached below it,
# and the sums of its subtree.
Tree = tuple[Ints, Ints, Ints, Ints]
Rows = tuple[Ints, npt.NDArray[np.int8], npt.NDArray[np.int32]]
FragmentColumns = tuple[
    npt.NDArray[np.float64], npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int32]
]

# How a fragment was broken out, by code: bonds, and how many of them are in rings.
BONDS = np.array([0, 1, 2, 2, 3, 3], np.int8)
RING_BONDS = np.array([0, 0, 0, 2, 2, 3], np.int8)
WHOLE, ONE_BOND, TWO_BONDS, TWO_RING, ONE_AND_TWO_RING, THREE_RING = range(6)

_EXACT_LABELS = 62  # cycles that have a bit each; beyond, labels are random numbers of 63 bits


@compiled
def rooted(atoms: int, bonds: npt.NDArray[np.int32]) -> tuple[Ints, Ints, Ints, Ints]:
    """Build a depth-first forest.

    Returns, for each atom: when it was reached, the last that was reached below it, its part of
    the molecule; and for each bond the atom below it, −1 where it is not in the forest.
    """
    count = len(bonds)
    starts = np.zeros(atoms + 1, np.int64)
    for b in range(count):
        starts[bonds[b, 0] + 1] += 1
        starts[bonds[b, 1] + 1] += 1
    starts = np.cumsum(starts)
    fill = starts[:-1].copy()
    around = np.empty(2 * count, np.int64)
    for b in range(count):
        for side in range(2):
            atom = bonds[b, side]
            around[fill[atom]] = b
            fill[atom] += 1
    reached = np.full(atoms, -1, np.int64)
    last = np.zeros(atoms, np.int64)
    part = np.zeros(atoms, np.int64)
    below = np.full(count, -1, np.int64)
    cursor = starts[:-1].copy()
    stack = np.empty(atoms, np.int64)
    clock, parts = 0, 0
    for root in range(atoms):
        if reached[root] >= 0:
            continue
        stack[0], depth = root, 1
        reached[root], part[root] = clock, parts
        clock += 1
        while depth > 0:
            atom = stack[depth - 1]
            if cursor[atom] == starts[atom + 1]:
                last[atom] = clock - 1
                depth -= 1
                continue
            b = around[cursor[atom]]
            cursor[atom] += 1
            other = bonds[b, 0] + bonds[b, 1] - atom
            if reached[other] < 0:
                below[b] = other
                reached[other], part[other] = clock, parts
                clock += 1
                stack[depth] = other
                depth += 1
        parts += 1
    return reached, last, part, below


@compiled
def labelled(
    bonds: npt.NDArray[np.int32], reached: Ints, below: Ints, units: Ints
) -> tuple[Ints, Ints]:
    """Label of each bond, and the sum of `units` in the subtree of each atom."""
    atoms, count = len(reached), len(bonds)
    labels = np.zeros(count, np.int64)
    through = np.zeros(atoms, np.int64)
    cycles = 0
    for b in range(count):
        cycles += below[b] < 0
    seen = 0
    state = np.uint64(0x9E3779B97F4A7C15)
    for b in range(count):
        if below[b] >= 0:
            continue
        if cycles <= _EXACT_LABELS:
            labels[b] = np.int64(1) << seen
        else:
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            labels[b] = np.int64(state >> np.uint64(1))
        seen += 1
        through[bonds[b, 0]] ^= labels[b]
        through[bonds[b, 1]] ^= labels[b]
    up = np.full(atoms, -1, np.int64)
    over = np.full(atoms, -1, np.int64)
    for b in range(count):
        if below[b] >= 0:
            up[below[b]] = bonds[b, 0] + bonds[b, 1] - below[b]
            over[below[b]] = b
    order = np.argsort(reached)
    sums = units.copy()
    for position in range(atoms - 1, -1, -1):
        atom = order[position]
        if up[atom] >= 0:
            through[up[atom]] ^= through[atom]
            sums[up[atom]] += sums[atom]
            labels[over[atom]] = through[atom]
    return labels, sums


@compiled
def _within(inner: int, outer: int, reached: Ints, last: Ints) -> bool:
    """Whether an atom is in the subtree of another."""
    return bool(reached[outer] <= reached[inner] and reached[inner] <= last[outer])


@compiled
def _odd_side(cut: Ints, tree: Tree) -> Ints:
    """Return the sums over atoms below an odd number of the cut's bonds.

    Subtrees contain one another or do not meet: each adds its sums or takes them away, by the
    number of the cut's subtrees around it.
    """
    below, reached, last, sums = tree
    total = np.zeros(2, np.int64)
    for bond in cut:
        if below[bond] < 0:
            continue
        around = 0
        for other in cut:
            if other != bond and below[other] >= 0:
                around += _within(below[bond], below[other], reached, last)
        total += sums[below[bond]] * (1 if around % 2 == 0 else -1)
    return total


@compiled
def _between(bridge: int, cut: Ints, side: Ints, whole: Ints, tree: Tree) -> Ints:
    """Return the sums of the part between a bond outside rings and a cut of two ring bonds.

    `side` and `whole` are the sums of the cut's odd side and of the part of the molecule.
    """
    below, reached, last, sums = tree
    atom = below[bridge]
    around = 0
    for bond in cut:
        if below[bond] >= 0:
            if _within(below[bond], atom, reached, last):
                inner: Ints = sums[atom] - side
                return inner
            around += _within(atom, below[bond], reached, last)
    left: Ints = (side if around % 2 == 1 else whole - side) - sums[atom]
    return left


@compiled
def _groups(labels: Ints) -> tuple[Ints, Ints]:
    """Sort ring bonds by label; return them and where each label begins."""
    order = np.argsort(labels, kind="mergesort")
    first = 0
    while first < len(order) and labels[order[first]] == 0:
        first += 1
    ring = order[first:]
    if not len(ring):
        return ring, np.zeros(1, np.int64)
    ring_labels = labels[ring]
    changes = np.nonzero(ring_labels[1:] != ring_labels[:-1])[0] + 1
    return ring, np.concatenate((np.array([0]), changes, np.array([len(ring)])))


@compiled
def _third(ring: Ints, starts: Ints, labels: Ints, first: int, second: int) -> int:
    """Group whose label cancels those of two others and comes after them; −1 for none."""
    label = labels[ring[starts[first]]] ^ labels[ring[starts[second]]]
    low, high = second + 1, len(starts) - 1
    while low < high:
        middle = (low + high) // 2
        if labels[ring[starts[middle]]] < label:
            low = middle + 1
        else:
            high = middle
    is_found = low < len(starts) - 1 and labels[ring[starts[low]]] == label
    return low if is_found else -1


@compiled
def count_rows(labels: Ints, bond_part: Ints, parts: int) -> Ints:
    """Count the rows that `listed` makes of 0, 1, 2 and 3 cleavages."""
    ring, starts = _groups(labels)
    bridges = np.zeros(parts, np.int64)
    for b in range(len(labels)):
        bridges[bond_part[b]] += labels[b] == 0
    rows = np.zeros(4, np.int64)
    rows[0], rows[1] = parts, 2 * bridges.sum()
    rows[2] = (bridges * (bridges - 1) // 2).sum()
    for first in range(len(starts) - 1):
        size = starts[first + 1] - starts[first]
        pairs = size * (size - 1) // 2
        rows[2] += 2 * pairs
        rows[3] += pairs * bridges[bond_part[ring[starts[first]]]]
        for second in range(first + 1, len(starts) - 1):
            third = _third(ring, starts, labels, first, second)
            if third >= 0:
                more = (starts[second + 1] - starts[second]) * (starts[third + 1] - starts[third])
                rows[3] += 2 * size * more
    return rows


@compiled
def _put(rows: Rows, at: int, sums: Ints, code: int, broken: tuple[int, int, int]) -> int:
    values, codes, bonds = rows
    values[at, 0], values[at, 1] = sums[0], sums[1]
    codes[at] = code
    bonds[at, 0], bonds[at, 1], bonds[at, 2] = broken
    return at + 1


@compiled
def _list_bridges(
    bridges: Ints, bond_part: Ints, wholes: Ints, tree: Tree, max_cleavages: int, rows: Rows
) -> int:
    """List fragments of up to two bonds outside rings, and whole parts."""
    below, reached, last, sums = tree
    at = 0
    for part in range(len(wholes)):
        at = _put(rows, at, wholes[part], WHOLE, (-1, -1, -1))
    if max_cleavages < 1:
        return at
    for position in range(len(bridges)):
        first = bridges[position]
        inside, whole = sums[below[first]], wholes[bond_part[first]]
        at = _put(rows, at, inside, ONE_BOND, (first, -1, -1))
        at = _put(rows, at, whole - inside, ONE_BOND, (first, -1, -1))
        if max_cleavages < 2:
            continue
        for second in bridges[position + 1 :]:
            if bond_part[second] != bond_part[first]:
                continue
            other = sums[below[second]]
            if _within(below[second], below[first], reached, last):
                middle = inside - other
            elif _within(below[first], below[second], reached, last):
                middle = other - inside
            else:
                middle = whole - inside - other
            at = _put(rows, at, middle, TWO_BONDS, (first, second, -1))
    return at


@compiled
def _list_rings(
    labels: Ints, bridges: Ints, bond_part: Ints, wholes: Ints, tree: Tree, max_cleavages: int,
    rows: Rows, at: int,
) -> int:  # fmt: skip
    """List fragments cut out by two or three ring bonds, or two and one outside rings."""
    ring, starts = _groups(labels)
    for group_a in range(len(starts) - 1):
        group = ring[starts[group_a] : starts[group_a + 1]]
        whole = wholes[bond_part[group[0]]]
        for first in range(len(group)):
            for second in range(first + 1, len(group)):
                pair = np.array([group[first], group[second]])
                side = _odd_side(pair, tree)
                at = _put(rows, at, side, TWO_RING, (pair[0], pair[1], -1))
                at = _put(rows, at, whole - side, TWO_RING, (pair[0], pair[1], -1))
                if max_cleavages < 3:
                    continue
                for bridge in bridges:
                    if bond_part[bridge] == bond_part[pair[0]]:
                        middle = _between(bridge, pair, side, whole, tree)
                        at = _put(rows, at, middle, ONE_AND_TWO_RING, (bridge, pair[0], pair[1]))
        if max_cleavages < 3:
            continue
        for group_b in range(group_a + 1, len(starts) - 1):
            group_c = _third(ring, starts, labels, group_a, group_b)
            if group_c < 0:
                continue
            for a in group:
                for b in ring[starts[group_b] : starts[group_b + 1]]:
                    for c in ring[starts[group_c] : starts[group_c + 1]]:
                        side = _odd_side(np.array([a, b, c]), tree)
                        at = _put(rows, at, side, THREE_RING, (a, b, c))
                        at = _put(rows, at, whole - side, THREE_RING, (a, b, c))
    return at


@compiled
def listed(
    units: Ints, bonds: npt.NDArray[np.int32], cleavages: int, max_rows: int
) -> tuple[Ints, npt.NDArray[np.int8], npt.NDArray[np.int32], int]:
    """List all fragments of up to `cleavages` cleavages, one row for each way to break one out.

    Returns the sums of `units` over each fragment, shape (rows, 2); the code of its cleavages; its
    broken bonds, shape (rows, 3), −1 for none; and up to how many cleavages all are there: fewer
    than asked for where the rows would be more than `max_rows`.
    """
    reached, last, part, below = rooted(len(units), bonds)
    labels, sums = labelled(bonds, reached, below, units)
    parts = part.max() + 1
    wholes = np.zeros((parts, 2), np.int64)
    for atom in range(len(units)):
        wholes[part[atom]] += units[atom]
    bond_part = np.zeros(len(bonds), np.int64)
    for b in range(len(bonds)):
        bond_part[b] = part[bonds[b, 0]]
    counts = count_rows(labels, bond_part, parts)
    max_cleavages = min(cleavages, 3)
    while max_cleavages > 0 and counts[: max_cleavages + 1].sum() > max_rows:
        max_cleavages -= 1
    size = counts[: max_cleavages + 1].sum()
    values, codes = np.empty((size, 2), np.int64), np.empty(size, np.int8)
    broken = np.empty((size, 3), np.int32)
    rows, tree = (values, codes, broken), (below, reached, last, sums)
    bridges = np.nonzero(labels == 0)[0]
    at = _list_bridges(bridges, bond_part, wholes, tree, max_cleavages, rows)
    if max_cleavages >= 2:
        _list_rings(labels, bridges, bond_part, wholes, tree, max_cleavages, rows, at)
    return values, codes, broken, max_cleavages


@compiled
def distinct(values: Ints, codes: npt.NDArray[np.int8]) -> Ints:
    """Return rows of distinct mass, rising: of each the one with the fewest cleavages."""
    order = np.argsort(values[:, 0] * 8 + codes, kind="mergesort")
    rows = np.empty(len(order), np.int64)
    count = 0
    for row in order:
        if count == 0 or values[row, 0] != values[rows[count - 1], 0]:
            rows[count] = row
            count += 1
    return rows[:count]


MAX_CLEAVAGES = 3
# Ways to break a molecule that are listed at most. No molecule of 150 heavy atoms comes near;
# beyond, fragments of fewer cleavages are listed, and it is said.
MAX_FRAGMENT_ROWS = 2_000_000


@dataclass(frozen=True, eq=False)
class Fragments:
    """Distinct masses of a molecule's fragments, rising.

    Unpacks into masses and bonds: ``masses, bonds = pieces(smiles)``.

    Attributes
    ----------
    masses : float64 array
        Of neutral atoms, each with the hydrogens that sit on it in the molecule.
    codes : int8 array
        How each was broken out, with the fewest bonds: an index of `BONDS` and `RING_BONDS`.
    hydrogens : int32 array
        In the fragment, without isotopes that are named.
    electrons : int32 array
        Of the neutral fragment; an odd number makes a radical.
    cleavages : int
        Up to how many cleavages all fragments are listed.
    requested : int
        Up to how many were asked for.
    """

    masses: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int8]
    hydrogens: npt.NDArray[np.int32]
    electrons: npt.NDArray[np.int32]
    cleavages: int
    requested: int = MAX_CLEAVAGES

    @property
    def bonds(self) -> npt.NDArray[np.int8]:
        """Bonds that break at least."""
        return BONDS[self.codes]

    @property
    def ring_bonds(self) -> npt.NDArray[np.int8]:
        """How many of them are in rings."""
        return RING_BONDS[self.codes]

    @property
    def truncated(self) -> bool:
        """Whether fragments were left out because there are too many."""
        return self.cleavages < self.requested

    def __len__(self) -> int:
        return len(self.masses)

    def __iter__(self) -> Iterator[npt.NDArray[np.generic]]:
        yield self.masses
        yield self.bonds


def pieces(smiles: str, cleavages: int = MAX_CLEAVAGES) -> Fragments:
    """Find all connected fragments that a molecule has after up to three cleavages.

    One bond outside rings, any two, or three with at least two of them in rings. The molecule
    itself (each part, where it has several) is a fragment with no bond broken.

    Parameters
    ----------
    smiles : str
    cleavages : int
        0 to 3.

    Raises
    ------
    MoleculeError
        It is no molecule.

    Examples
    --------
    >>> masses, bonds = pieces("CCO")
    >>> [(round(float(mass), 4), int(bond)) for mass, bond in zip(masses, bonds)]
    [(14.0157, 2), (15.0235, 1), (17.0027, 1), (29.0391, 1), (31.0184, 1), (46.0419, 0)]
    """
    if not 0 <= cleavages <= MAX_CLEAVAGES:
        raise ValueError(f"cleavages is {cleavages}, expected 0 to {MAX_CLEAVAGES}")
    return fragments_of_graph(atom_graph(smiles), cleavages)


def fragments_of_graph(graph: AtomGraph, cleavages: int = MAX_CLEAVAGES) -> Fragments:
    """Find the fragments of a molecule graph."""
    values, codes, _, complete = listed(graph.units, graph.bonds, cleavages, MAX_FRAGMENT_ROWS)
    rows = distinct(values, codes)
    return Fragments(*columns_of(values[rows], codes[rows]), int(complete), cleavages)


def columns_of(values: Ints, codes: npt.NDArray[np.int8]) -> FragmentColumns:
    """Return masses, codes, hydrogens and electrons of fragments."""
    hydrogens = (values[:, 1] & ((1 << HYDROGEN_BITS) - 1)).astype(np.int32)
    electrons = (values[:, 1] >> HYDROGEN_BITS).astype(np.int32)
    return values[:, 0] / PER_DALTON, codes, hydrogens, electrons
