"""Molecules of the simulated demo set, enumerated from written tables.

No measured data is involved. Three tables lie beside this file:

- ``known.tsv``: metabolites and drugs with their names and formulas,
- ``scaffolds.tsv``: ring systems and chains with numbered attachment points, one letter each in
  ``sites``: ``a`` aromatic carbon, ``k`` alkyl carbon, ``s`` carbon beside a heteroatom that would
  make an unstable aminal with O or N, ``h`` nitrogen or oxygen,
- ``substituents.tsv``: what may sit at which site, and at most how often in one molecule
  (``limit``). Those of limit 1 are *rare*: a molecule carries one of them at most.

Retrieval is hard only where candidates share a formula. So the enumeration is grouped by formula
before any molecule is built, and whole groups are drawn: a group holds positional isomers (the
same substituents moved around) and functional isomers (other substituents or another scaffold).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit import Chem

from mzseek.chem.molecules import inchikey14_of

ELEMENTS = ("C", "H", "N", "O", "P", "S", "F", "Cl", "Br")
MASS_RANGE = (100.0, 600.0)
MIN_GROUP = 8
# Targets well below the cap: many mid-sized groups rather than a few full ones. Groups around the
# known molecules are smaller, or the same hundred formulas would fill every draw.
TARGET_SIZES = (12, 36)
TARGET_SIZES_KNOWN = (10, 18)
# Positional isomers taken from one choice of substituents before another choice is drawn.
ARRANGEMENTS = 6
RARE_LIMIT = 1

# Seven bits an element: formula keys add up as the formulas do, and nine elements fill 63 bits.
_BITS = 7
_SITE_KINDS = "aksh"

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DemoMolecule:
    """One molecule of the simulated demo set.

    Attributes
    ----------
    smiles
        RDKit canonical SMILES without stereochemistry.
    name
        Common name of a well-known molecule, otherwise None.
    source
        ``"known"`` or ``"enumerated"``.
    """

    smiles: str
    name: str | None
    source: str


def read_table(name: str) -> list[dict[str, str]]:
    """Rows of one of the TSV tables beside this module, keyed by its header line."""
    text = files("mzseek.datasets.demo").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def demo_molecules(seed: int = 0, size: int = 3000) -> list[DemoMolecule]:
    """Molecules of the demo set: every known one, then enumerated isomers up to ``size``.

    Formulas of known molecules are filled first, so that the known ones have rivals too; further
    formulas follow in random order. The same ``seed`` and ``size`` give the same list.

    Parameters
    ----------
    seed
        Decides which of the possible formulas and isomers are drawn.
    size
        Number of molecules returned.

    Raises
    ------
    ValueError
        If ``size`` is smaller than the table of known molecules, or larger than what the tables
        can enumerate.

    Examples
    --------
    >>> demo_molecules(size=200)[0]
    DemoMolecule(smiles='Cn1c(=O)c2c(ncn2C)n(C)c1=O', name='caffeine', source='known')
    """
    known = _known()
    if size < len(known):
        raise ValueError(f"size must be at least {len(known)} (the known molecules), got {size}")
    rng = np.random.default_rng(seed)
    pool = _pool()
    chosen = [molecule for molecule, _, _ in known]
    seen = {identity for _, identity, _ in known}
    have: dict[int, int] = {}
    for _, _, key in known:
        have[key] = have.get(key, 0) + 1

    shuffled = rng.permutation(len(pool.keys))
    of_known = np.isin(pool.keys[shuffled], np.array(sorted(have), dtype=np.int64))
    for group in np.concatenate([shuffled[of_known], shuffled[~of_known]]):
        remaining = size - len(chosen)
        if remaining == 0:
            break
        held = have.get(int(pool.keys[group]), 0)
        wanted = _group_target(remaining, held, rng)
        members = list(_isomers(pool, int(group), wanted, seen, rng))
        if len(members) + held < min(MIN_GROUP, wanted):
            continue
        seen.update(identity for _, identity in members)
        chosen.extend(DemoMolecule(smiles, None, "enumerated") for smiles, _ in members)
    if len(chosen) < size:
        raise ValueError(f"the tables enumerate only {len(chosen)} molecules, got size {size}")
    return chosen


def _group_target(remaining: int, held: int, rng: np.random.Generator) -> int:
    """New members for the next formula, never leaving a rest too small for a group of its own."""
    wanted = int(rng.integers(*(TARGET_SIZES_KNOWN if held else TARGET_SIZES))) - held
    if remaining - wanted < MIN_GROUP:
        # The last group takes the rest; TARGET_SIZES + MIN_GROUP stays below 60.
        return remaining
    return max(wanted, 1)


@lru_cache(maxsize=1)
def _known() -> list[tuple[DemoMolecule, str, int]]:
    """Known molecules with their identity and formula key."""
    rows = []
    for row in read_table("known.tsv"):
        mol = Chem.MolFromSmiles(row["smiles"])
        molecule = DemoMolecule(Chem.MolToSmiles(mol), row["name"], "known")
        rows.append((molecule, inchikey14_of(mol), _formula_key(mol)))
    return rows


class _Multisets(NamedTuple):
    """All allowed unordered choices of substituents for the sites of one kind."""

    members: _Ints  # (choices, sites): row numbers of substituents.tsv
    keys: _Ints  # (choices,): summed formula keys
    rare: _Ints  # (choices,): how many rare substituents


class _Pool(NamedTuple):
    """Everything the tables can express, grouped by formula; nothing is built yet."""

    scaffolds: list[dict[str, str]]
    substituents: list[dict[str, str]]
    parts: list[list[_Multisets]]  # per scaffold, one entry for each of _SITE_KINDS
    keys: _Ints  # (groups,): distinct formula keys
    starts: _Ints  # (groups + 1,): slices of the two arrays below
    scaffold: _Ints  # (entries,): row number of scaffolds.tsv
    choice: _Ints  # (entries,): flat index into the product of that scaffold's parts


@lru_cache(maxsize=1)
def _pool() -> _Pool:
    """Formula groups over all scaffolds; a formula is a sum, so no molecule needs to be built."""
    scaffolds, substituents = read_table("scaffolds.tsv"), read_table("substituents.tsv")
    sub_keys = np.array([_substituent_key(s["smiles"]) for s in substituents])
    limits = np.array([int(s["limit"]) for s in substituents])
    cache: dict[tuple[str, int], _Multisets] = {}
    parts, keys, owners, choices = [], [], [], []
    for number, scaffold in enumerate(scaffolds):
        own = []
        for kind in _SITE_KINDS:
            where = (kind, scaffold["sites"].count(kind))
            if where not in cache:
                allowed = [i for i, s in enumerate(substituents) if kind in s["sites"]]
                cache[where] = _multisets(allowed, where[1], sub_keys, limits)
            own.append(cache[where])
        total = np.array([_formula_key(Chem.MolFromSmiles(scaffold["smiles"]))])
        rare = np.zeros(1, dtype=np.int64)
        for part in own:
            total = np.add.outer(total, part.keys).ravel()
            rare = np.add.outer(rare, part.rare).ravel()
        choice = np.flatnonzero(rare <= 1)
        parts.append(own)
        keys.append(total[choice])
        owners.append(np.full(len(choice), number))
        choices.append(choice)
    all_keys = np.concatenate(keys)
    masses = _key_masses(all_keys)
    inside = np.flatnonzero((masses >= MASS_RANGE[0]) & (masses <= MASS_RANGE[1]))
    order = inside[np.argsort(all_keys[inside], kind="stable")]
    unique, starts = np.unique(all_keys[order], return_index=True)
    return _Pool(
        scaffolds=scaffolds,
        substituents=substituents,
        parts=parts,
        keys=unique,
        starts=np.append(starts, len(order)),
        scaffold=np.concatenate(owners)[order],
        choice=np.concatenate(choices)[order],
    )


def _multisets(allowed: list[int], sites: int, sub_keys: _Ints, limits: _Ints) -> _Multisets:
    """Unordered choices of ``sites`` substituents that respect every limit."""
    rows = []
    for combo in combinations_with_replacement(allowed, sites):
        if sum(limits[i] <= RARE_LIMIT for i in combo) > 1:
            continue
        if all(combo.count(i) <= limits[i] for i in combo):
            rows.append(combo)
    members = np.array(rows, dtype=np.int64).reshape(len(rows), sites)
    rare = (limits[members] <= RARE_LIMIT).sum(axis=1)
    return _Multisets(members, sub_keys[members].sum(axis=1), rare)


def _isomers(
    pool: _Pool, group: int, wanted: int, seen: set[str], rng: np.random.Generator
) -> Iterator[tuple[str, str]]:
    """Up to ``wanted`` new (SMILES, identity) of one formula, in random order of substituents."""
    fresh: set[str] = set()
    for entry in rng.permutation(np.arange(pool.starts[group], pool.starts[group + 1])):
        scaffold = int(pool.scaffold[entry])
        own = pool.parts[scaffold]
        picks = np.unravel_index(int(pool.choice[entry]), [len(p.keys) for p in own])
        bags = [part.members[pick] for part, pick in zip(own, picks, strict=True)]
        if _over_limit(pool.substituents, np.concatenate(bags)):
            continue
        built: set[str] = set()
        for _ in range(2 * ARRANGEMENTS):
            if len(fresh) == wanted:
                return
            if len(built) == ARRANGEMENTS:
                break
            smiles = _assemble(pool, scaffold, [rng.permutation(bag) for bag in bags])
            if smiles in built:
                continue
            built.add(smiles)
            mol = Chem.MolFromSmiles(smiles)
            identity = inchikey14_of(mol)
            if identity not in seen and identity not in fresh:
                fresh.add(identity)
                yield Chem.MolToSmiles(mol), identity


def _over_limit(substituents: list[dict[str, str]], used: _Ints) -> bool:
    """Whether limits are broken by substituents that sit at sites of different kinds."""
    numbers, counts = np.unique(used, return_counts=True)
    return any(
        count > int(substituents[i]["limit"]) for i, count in zip(numbers, counts, strict=True)
    )


def _assemble(pool: _Pool, scaffold: int, bags: list[_Ints]) -> str:
    """SMILES text with each attachment point replaced by the next substituent of its kind."""
    smiles = pool.scaffolds[scaffold]["smiles"]
    queues = {kind: list(bag) for kind, bag in zip(_SITE_KINDS, bags, strict=True)}
    for number, kind in enumerate(pool.scaffolds[scaffold]["sites"], start=1):
        substituent = pool.substituents[queues[kind].pop()]["smiles"]
        smiles = smiles.replace(f"[*:{number}]", substituent.removeprefix("[*]"))
    return smiles


def _formula_key(mol: Chem.Mol) -> int:
    """Element counts packed into one integer, attachment points left out."""
    key = 0
    for atom in mol.GetAtoms():
        if atom.GetAtomicNum() > 1:
            key += 1 << (_BITS * ELEMENTS.index(atom.GetSymbol()))
            key += atom.GetTotalNumHs(includeNeighbors=True) << (_BITS * ELEMENTS.index("H"))
    return key


def _substituent_key(smiles: str) -> int:
    """Formula key of a substituent, read off its methane so that hydrogen is no special case."""
    methyl = _formula_key(Chem.MolFromSmiles("C[*]"))
    return _formula_key(Chem.MolFromSmiles(smiles.replace("[*]", "C"))) - methyl


def _key_masses(keys: _Ints) -> npt.NDArray[np.float64]:
    """Monoisotopic masses of packed formulas."""
    table = Chem.GetPeriodicTable()
    mass = np.zeros(len(keys))
    for position, element in enumerate(ELEMENTS):
        count = (keys >> (_BITS * position)) & ((1 << _BITS) - 1)
        mass += count * table.GetMostCommonIsotopeMass(element)
    return mass
