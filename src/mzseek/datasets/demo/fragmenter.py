"""A bond-breaking fragmenter: simulated tandem mass spectra for the demo set.

They follow rules of thumb of collision-induced dissociation; they replace no measured spectra.

A fragment is a connected set of heavy atoms. One *cut* breaks a bridge bond, or two bonds of one
ring; fragments are the sides of one cut (depth 1) and the intersections of two sides (depth 2).
The intensity of a fragment ``f`` of depth ``d`` at collision energy ``E`` is

    I(f) = Poisson(d; lambda(E)) * share_d(f),
    share_d(f) ~ exp(-sum of costs of the broken bonds / T(E)) * P(the charge stays on f),

so more energy means more cuts (growing ``lambda``) and harder bonds (growing ``T``). Each fragment
appears with several numbers of shifted hydrogens, closed-shell ions preferred.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit import Chem

from mzseek.chem.adducts import parse_adduct

ADDUCTS = ("[M+H]+", "[M+Na]+")
MAX_ATOMS = 63
MAX_PEAKS = 60
MAX_DEPTH2 = 400
MIN_FRAGMENT_ATOMS = 3
MIN_MZ = 50.0
SHIFTS = np.array([-2, -1, 0, 1])

PPM_NOISE = 3.0
INTENSITY_NOISE = 0.25
NOISE_PEAKS = 2.0
WEAK = 0.01
WEAK_SURVIVAL = 0.1
# Open-shell ions are the exception, save where a bond is known to break homolytically.
RADICAL_PENALTY = 0.06
# Sodium holds on to the whole molecule longer than a mobile proton, and rarely leaves it.
SODIUM_ENERGY_SCALE = 0.55
SODIUM_TO_PROTON = 0.08
CO_MASS = 27.994914620
CO_COST = 3.2
# Ions this close share one peak of the simulated instrument.
MERGE_DA = 5e-4

# Rules are SMARTS and numbers; a later rule overrides an earlier one. First the cost of breaking
# a bond, which lies between the first two atoms of the pattern.
BOND_COSTS = """
*~* 3.0   *=* 5.0   *#* 8.0   C=C 3.8   *-;@* 1.5   *-;@[N,O,S] 1.1
*:* 2.3   c:[n,o,s] 1.9   *:c=O 1.7   c:o 1.5
[#6]-!@[#6] 2.8   [CX4;$(*-a)]-!@[#6;!a] 1.8   [CX4;$(*-[NX3])]-!@[#6] 1.9
c-!@[#6] 3.2   c-!@c 4.5   [#6]-!@[CX3]=O 1.9
[#6]-!@[OX2] 1.2   c-!@[OX2] 2.9   c-!@[OX2H] 4.3   [CX3](-!@[O,N])=O 1.2
[CX4]-[OX2H] 0.9   [CH3]-[OX2]-c 1.7   [CX4](-!@[O,n])-@O 0.4
[CX4]-!@[NX3] 1.4   [CX4]-[NH2] 1.0   c-!@[#7] 2.8   C(-!@[NX3])=O 1.0   [#6]-[N+](=O)[O-] 1.7
[#16]-!@[#6] 1.5   [#16]-!@[#7] 1.0   P-O 0.9   [#6]-F 2.8   [#6]-Cl 1.9   [#6]-Br 1.3
"""
# Changes of these costs, added up: what sits nearby on a ring tells positional isomers apart.
BOND_CHANGES = """
*-!@a:a-!@[OX2,NX3] -0.5   *-!@a:a-!@[#6,#7,#16]=O -0.35
*-!@a1:a:a:a(-!@[OX2,NX3]):a:a:1 -0.3
a(-!@[OX2,NX3]):a -0.4   a(-!@[CX3]=O):a -0.2
"""
# Bonds that break into two radicals, and carbons that may leave a ring as carbon monoxide.
HOMOLYTIC = "[CH3]-[OX2]-c   c-Br   c-[N+](=O)[O-]   [#16X2]-!@[CH3]"
CARBON_MONOXIDE = "c-[OX2H]   [#6;R]=O"
# How well the first atom holds a proton, and sodium.
AFFINITIES = """
* 0.05 0.05   a 0.15 0.1   [OX2] 0.4 0.9   [OX1] 0.8 1.5   [OX1]=C-[NX3] 1.4 1.8
[#7] 0.8 0.5   [nX2] 2.3 0.7   [NX3]-a 1.5 0.5   [NX2] 2.0 0.7
[NX3;$(*-[CX4]);!$(*-[C,S]=O);!$(*-a)] 3.0 0.6   [NX2]=C-[NX3] 3.5 0.7
"""

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
_Masks = npt.NDArray[np.uint64]


class _Atoms(NamedTuple):
    """What the rules above say about the heavy atoms and bonds of one molecule."""

    mass: _Floats  # (atoms,): with attached hydrogens
    hydrogens: _Floats  # (atoms,)
    parity: _Floats  # (atoms,): odd-valent atoms, attached hydrogens included
    adjacency: _Floats  # (atoms, atoms)
    cost: _Floats  # (atoms, atoms): of breaking the bond
    drift: _Floats  # (atoms, atoms): hydrogens that atom a gains when its bond to b breaks
    homolytic: _Floats  # (atoms, atoms): 1 where the bond breaks into radicals
    affinity: _Floats  # (2, atoms): for a proton, for sodium
    monoxide: _Floats  # (atoms,): carbons that may leave as CO


class _Ions(NamedTuple):
    """Possible ions, sorted by mass; one row for each fragment and hydrogen shift."""

    mass: _Floats  # neutral mass, the charge carrier left out
    depth: _Ints
    cost: _Floats  # summed cost of broken bonds
    proton: _Floats  # probability that a proton stays on this fragment
    sodium: _Floats  # likewise for sodium
    weight: _Floats  # preference for this hydrogen shift
    starts: _Ints  # first row of each distinguishable peak


class Fragmenter:
    """The fragment table of one molecule, from which spectra are drawn (all simulated).

    Enumeration happens once, in the constructor; a spectrum then costs a few array operations.

    Parameters
    ----------
    mol : Mol
        A sanitised molecule in one part, of 2 to 63 heavy atoms.

    Examples
    --------
    >>> paracetamol = Fragmenter(Chem.MolFromSmiles("CC(=O)Nc1ccc(O)cc1"))
    >>> mz, _ = paracetamol.spectrum("[M+H]+", 20.0, np.random.default_rng(0))
    >>> bool(np.any(np.abs(mz - 110.0600) < 0.002))  # ketene is lost
    True
    """

    def __init__(self, mol: Chem.Mol) -> None:
        mol = Chem.RemoveHs(mol)
        count = mol.GetNumAtoms()
        if not 2 <= count <= MAX_ATOMS:
            raise ValueError(f"a molecule needs 2 to {MAX_ATOMS} heavy atoms, got {count}")
        if len(Chem.GetMolFrags(mol)) > 1:
            raise ValueError(f"a molecule must be one part, got {Chem.MolToSmiles(mol)}")
        atoms = _describe(mol)
        self.mass = float(atoms.mass.sum())
        self._ions = _ions(*_fragments(_side_masks(mol), atoms), atoms)
        cheapest = self._ions.cost[self._ions.depth == 1]
        easiest = float(cheapest.min()) if len(cheapest) else 6.0
        # Labile and small molecules fall apart at lower energies.
        self._fragility = np.clip(np.exp(0.4 * (2.0 - easiest)), 0.4, 1.6) * (20.0 / count) ** 0.5

    def precursor_mz(self, adduct: str) -> float:
        """Theoretical m/z of the unbroken ion."""
        return self.mass + _carrier(adduct)

    def spectrum(
        self, adduct: str, energy: float, rng: np.random.Generator
    ) -> tuple[_Floats, _Floats]:
        """One simulated spectrum: m/z, ascending, and intensities with base peak 1.0.

        Parameters
        ----------
        adduct : str
            ``"[M+H]+"`` or ``"[M+Na]+"``; another one is a ValueError.
        energy : float
            Collision energy in eV, about 10 (gentle) to 60 (harsh); positive and finite.
        rng : Generator
            Source of all noise; the same state gives the same spectrum.
        """
        mz, intensity = self.expected(adduct, energy)
        intensity = intensity * np.exp(rng.normal(0.0, INTENSITY_NOISE, len(mz)))
        intensity /= intensity.max()
        lucky = rng.random(len(mz)) < WEAK_SURVIVAL * (intensity / WEAK)
        kept = np.flatnonzero((intensity >= WEAK) | lucky)
        precursor = self.precursor_mz(adduct)
        extra = min(int(rng.poisson(NOISE_PEAKS)), MAX_PEAKS - 1)
        stray = rng.uniform(min(MIN_MZ, precursor / 2), precursor, extra)
        faint = rng.uniform(0.3 * WEAK, 2.0 * WEAK, extra)
        kept = kept[np.argsort(-intensity[kept], kind="stable")[: MAX_PEAKS - extra]]
        mz = mz[kept] * (1.0 + 1e-6 * rng.normal(0.0, PPM_NOISE, len(kept)))
        mz, intensity = np.concatenate([mz, stray]), np.concatenate([intensity[kept], faint])
        order = np.argsort(mz, kind="stable")
        return mz[order], intensity[order]

    def expected(self, adduct: str, energy: float) -> tuple[_Floats, _Floats]:
        """Noise-free m/z and intensities (summing to one) of all possible ions."""
        carrier = _carrier(adduct)
        if not (np.isfinite(energy) and energy > 0):
            raise ValueError(f"energy must be positive and finite, got {energy}")
        sodium = adduct == "[M+Na]+"
        effective = energy * (SODIUM_ENERGY_SCALE if sodium else 1.0)
        cuts = effective / 12.0 * self._fragility
        temperature = 0.42 + effective / 110.0
        none, one = np.exp(-cuts), cuts * np.exp(-cuts)
        poisson = np.array([none, one, 1.0 - none - one])
        ions = self._ions
        retained = ions.sodium if sodium else ions.proton
        # Large ions have more ways to break again while the energy lasts.
        hardness = ions.cost / temperature + effective / 25.0 * ions.mass / self.mass
        raw = ions.weight * retained * np.exp(-hardness)
        totals = np.bincount(ions.depth, raw, minlength=3)
        shares = np.divide(poisson, totals, out=np.zeros(3), where=totals > 0)
        peaks = np.add.reduceat(raw * shares[ions.depth], ions.starts)
        mass = ions.mass[ions.starts]
        mz = mass + carrier
        if sodium:
            # A few fragments lose the sodium and appear protonated; the precursor cannot.
            broken = np.where(np.abs(mass - self.mass) > 1e-6, peaks, 0.0)
            mz = np.concatenate([mz, mass + _carrier("[M+H]+")])
            peaks = np.concatenate([peaks, SODIUM_TO_PROTON * broken])
        seen = mz >= min(MIN_MZ, self.mass / 2)
        return mz[seen], peaks[seen] / peaks[seen].sum()


def _carrier(adduct: str) -> float:
    """Mass that the adduct's charge carrier adds, or the reason why it is refused."""
    if adduct not in ADDUCTS:
        raise ValueError(f"unknown adduct {adduct!r}; known: {', '.join(ADDUCTS)}")
    return parse_adduct(adduct).offset


@lru_cache(maxsize=16)
def _rules(text: str, values: int) -> list[tuple[Chem.Mol, list[float]]]:
    """Patterns and their numbers, in the order of the text."""
    words = text.split()
    rules = [words[i : i + values + 1] for i in range(0, len(words), values + 1)]
    return [(Chem.MolFromSmarts(rule[0]), [float(v) for v in rule[1:]]) for rule in rules]


def _matches(mol: Chem.Mol, pattern: Chem.Mol, length: int) -> _Ints:
    """First ``length`` atoms of every match, without repetition: free of the atoms' order."""
    matches = mol.GetSubstructMatches(pattern, uniquify=False, maxMatches=10_000)
    return np.array(sorted({m[:length] for m in matches}), dtype=np.int64).reshape(-1, length)


def _describe(mol: Chem.Mol) -> _Atoms:
    """Apply the rule tables to one molecule."""
    table = Chem.GetPeriodicTable()
    numbers = np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()])
    hydrogens = np.array([atom.GetTotalNumHs() for atom in mol.GetAtoms()], dtype=np.float64)
    heavy = np.array([table.GetMostCommonIsotopeMass(int(number)) for number in numbers])
    adjacency = np.asarray(Chem.GetAdjacencyMatrix(mol), dtype=np.float64)
    cost, homolytic = np.zeros_like(adjacency), np.zeros_like(adjacency)
    for pattern, (value,) in _rules(BOND_COSTS, 1):
        a, b = _matches(mol, pattern, 2).T
        cost[a, b] = cost[b, a] = value
    for pattern, (change,) in _rules(BOND_CHANGES, 1):
        a, b = np.unique(np.sort(_matches(mol, pattern, 2), axis=1), axis=0).T
        cost[a, b] += change
        cost[b, a] += change
    for pattern, _ in _rules(HOMOLYTIC, 0):
        a, b = _matches(mol, pattern, 2).T
        homolytic[a, b] = homolytic[b, a] = 1.0
    affinity = np.zeros((2, len(numbers)))
    for pattern, values in _rules(AFFINITIES, 2):
        affinity[:, _matches(mol, pattern, 1)[:, 0]] = np.array(values)[:, None]
    monoxide = np.zeros(len(numbers))
    for pattern, _ in _rules(CARBON_MONOXIDE, 0):
        monoxide[_matches(mol, pattern, 1)[:, 0]] = 1.0

    # Charge goes to carbon as a cation, to N or O by way of an added proton.
    carbon, electrophile = numbers == 6, np.isin(numbers, (6, 15, 16))
    drift = np.where(electrophile[:, None], -1.0, 1.0) * adjacency
    drift = np.where(carbon[:, None] & carbon, -0.5 * adjacency, drift)
    mass = heavy + hydrogens * table.GetMostCommonIsotopeMass("H")
    parity = np.isin(numbers, (7, 9, 15, 17, 35)) + hydrogens
    cost = np.maximum(cost, 0.3) * adjacency
    return _Atoms(mass, hydrogens, parity, adjacency, cost, drift, homolytic, affinity, monoxide)


def _side_masks(mol: Chem.Mol) -> _Masks:
    """Both sides of every cut, as bit masks over heavy atoms, without repetition."""
    count = mol.GetNumAtoms()
    everything = (1 << count) - 1
    neighbours = [0] * count
    ends = []
    for bond in mol.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        ends.append((a, b))
        neighbours[a] |= 1 << b
        neighbours[b] |= 1 << a
    rings = mol.GetRingInfo().BondRings()
    bridges = set(range(len(ends))).difference(*rings)
    pairs = {pair for ring in rings for pair in combinations(sorted(ring), 2)}
    masks: set[int] = set()
    for cut in [*((bond,) for bond in bridges), *pairs]:
        opened = neighbours.copy()
        for bond in cut:
            a, b = ends[bond]
            opened[a] &= ~(1 << b)
            opened[b] &= ~(1 << a)
        side = _reach(ends[cut[0]][0], opened)
        # Two bonds of a fused ring may leave one piece, and no ring gives up a single atom.
        if min(side.bit_count(), count - side.bit_count()) >= len(cut):
            masks.update((side, everything ^ side))
    return np.array(sorted(masks), dtype=np.uint64)


def _reach(start: int, neighbours: list[int]) -> int:
    """Bit mask of the atoms connected to ``start``."""
    reached = frontier = 1 << start
    while frontier:
        lowest = frontier & -frontier
        new = neighbours[lowest.bit_length() - 1] & ~reached
        reached |= new
        frontier = (frontier ^ lowest) | new
    return reached


def _fragments(first: _Masks, atoms: _Atoms) -> tuple[_Floats, _Ints]:
    """Atom indicators (fragments, atoms) and depths: the molecule, depth 1, the best of depth 2."""
    count = len(atoms.mass)
    upper = np.triu_indices(len(first), 1)
    second = np.unique(first[upper[0]] & first[upper[1]])
    second = second[~np.isin(second, first)]
    one, two = _unpack(first, count), _unpack(second, count)
    merit = _boundary_sum(two, atoms.cost) - _retention(two, atoms.affinity[0])
    # Rounded, so that ties do not hang on the last bit of a matrix product.
    two = two[np.argsort(merit.round(6), kind="stable")[:MAX_DEPTH2]]
    two = two[_connected(two, atoms.adjacency)]
    depth = np.repeat([0, 1, 2], [1, len(one), len(two)])
    return np.concatenate([np.ones((1, count)), one, two]), depth


def _unpack(masks: _Masks, count: int) -> _Floats:
    """Bit masks as 0/1 rows (masks, count); fragments too small to be seen are left out."""
    bits = (masks[:, None] >> np.arange(count, dtype=np.uint64)) & np.uint64(1)
    return np.asarray(bits[bits.sum(axis=1) >= MIN_FRAGMENT_ATOMS], dtype=np.float64)


def _boundary_sum(bits: _Floats, per_bond: _Floats) -> _Floats:
    """Sum of ``per_bond[a, b]`` over broken bonds, ``a`` inside and ``b`` outside each fragment."""
    return np.asarray(((bits @ per_bond) * (1.0 - bits)).sum(axis=1))


def _connected(bits: _Floats, adjacency: _Floats) -> npt.NDArray[np.bool_]:
    """Which rows are connected: intersecting two cuts of one ring may leave two arcs."""
    reached = np.zeros_like(bits)
    reached[np.arange(len(bits)), bits.argmax(axis=1)] = 1.0
    while True:
        grown = ((reached @ adjacency + reached) > 0) * bits
        if np.array_equal(grown, reached):
            return np.asarray((reached == bits).all(axis=1))
        reached = grown


def _retention(bits: _Floats, affinity: _Floats) -> _Floats:
    """Log-odds that the charge stays: the best site counts most; small neutrals hold it badly."""
    inside = bits * affinity
    outside = (affinity - inside) * np.minimum((1.0 - bits).sum(axis=1, keepdims=True) / 4.0, 1.0)
    best = inside.max(axis=1) - outside.max(axis=1)
    return np.asarray(best + 0.15 * (inside - outside).sum(axis=1))


def _ions(bits: _Floats, depth: _Ints, atoms: _Atoms) -> _Ions:
    """Every fragment, the molecule first, with every hydrogen shift that it allows."""
    proton, sodium = (1.0 / (1.0 + np.exp(-_retention(bits, hold))) for hold in atoms.affinity)
    proton[0] = sodium[0] = 1.0
    cost = _boundary_sum(bits, atoms.cost)
    drift = _boundary_sum(bits, atoms.drift)
    homolytic = _boundary_sum(bits, atoms.homolytic) > 0
    hydrogens = bits @ atoms.hydrogens
    odd = np.round(bits @ atoms.parity) % 2

    # [F + H + shift]+ is closed-shell where the parities of valence sum and shift agree.
    closed = (odd[:, None] + SHIFTS) % 2 == 0
    weight = np.exp(-1.2 * np.abs(SHIFTS - drift[:, None]))
    weight *= np.where(closed, 1.0, np.where(homolytic[:, None], 1.0, RADICAL_PENALTY))
    weight *= hydrogens[:, None] + SHIFTS >= 0
    # An added hydrogen comes from the neutral, which must own one and stay a sensible molecule.
    donor = ((1.0 - bits).sum(axis=1) >= 2) & (hydrogens < hydrogens[0])
    weight[:, SHIFTS > 0] *= donor[:, None]
    weight[0] = SHIFTS == 0

    hydrogen = Chem.GetPeriodicTable().GetMostCommonIsotopeMass("H")
    shifted = (bits @ atoms.mass)[:, None] + hydrogen * SHIFTS
    columns = np.broadcast_arrays(shifted, *(c[:, None] for c in (depth, cost, proton, sodium)))
    table = np.stack([column.ravel() for column in (*columns, weight)])
    # Rings contract by CO, which no cut can express; it counts as one more cut.
    contracts = np.repeat((bits @ atoms.monoxide > 0) & (bits.sum(axis=1) > 5), len(SHIFTS))
    contracted = table[:, contracts & closed.ravel()]
    contracted[0] -= CO_MASS
    contracted[1] = np.minimum(contracted[1] + 1, 2)
    contracted[2] += CO_COST
    table = np.concatenate([table, contracted], axis=1)
    table = table[:, table[5] > 1e-3]
    table = table[:, np.argsort(table[0], kind="stable")]
    starts = np.flatnonzero(np.diff(table[0], prepend=-1.0) > MERGE_DA)
    mass, depth, cost, proton, sodium, weight = table
    return _Ions(mass, depth.astype(np.int64), cost, proton, sodium, weight, starts)
