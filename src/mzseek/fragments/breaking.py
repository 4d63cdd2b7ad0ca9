"""The pieces of one molecule."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.fragments.cuts import BONDS, RING_BONDS, distinct, listed
from mzseek.fragments.graph import HYDROGEN_BITS, PER_DALTON, AtomGraph, atom_graph

MOST_BREAKS = 3
# Ways to break a molecule that are listed at most. No molecule of 150 heavy atoms comes near;
# beyond, pieces of fewer breaks are listed, and it is said.
MOST_ROWS = 2_000_000


@dataclass(frozen=True, eq=False)
class Pieces:
    """Distinct masses of a molecule's pieces, rising.

    Unpacks into masses and bonds: ``masses, bonds = pieces(smiles)``.

    Attributes
    ----------
    masses : float64 array
        Of neutral atoms, each with the hydrogens that sit on it in the molecule.
    codes : int8 array
        How each was broken out, with the fewest bonds: a place in `BONDS` and `RING_BONDS`.
    hydrogens : int32 array
        In the piece, without isotopes that are named.
    electrons : int32 array
        Of the neutral piece; an odd number makes a radical.
    breaks : int
        Up to how many breaks all pieces are listed.
    wanted : int
        Up to how many were asked for.
    """

    masses: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int8]
    hydrogens: npt.NDArray[np.int32]
    electrons: npt.NDArray[np.int32]
    breaks: int
    wanted: int = MOST_BREAKS

    @property
    def bonds(self) -> npt.NDArray[np.int8]:
        """Bonds that break at least."""
        return BONDS[self.codes]

    @property
    def ring_bonds(self) -> npt.NDArray[np.int8]:
        """How many of them are in rings."""
        return RING_BONDS[self.codes]

    @property
    def cut_short(self) -> bool:
        """Whether pieces were left out because there are too many."""
        return self.breaks < self.wanted

    def __len__(self) -> int:
        return len(self.masses)

    def __iter__(self) -> Iterator[npt.NDArray[np.generic]]:
        yield self.masses
        yield self.bonds


def pieces(smiles: str, breaks: int = MOST_BREAKS) -> Pieces:
    """All connected pieces that a molecule has after up to three breaks.

    One bond outside rings, any two, or three with at least two of them in rings. The molecule
    itself (each part, where it has several) is a piece with no bond broken.

    Parameters
    ----------
    smiles : str
    breaks : int
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
    if not 0 <= breaks <= MOST_BREAKS:
        raise ValueError(f"breaks is {breaks}, expected 0 to {MOST_BREAKS}")
    return pieces_of_graph(atom_graph(smiles), breaks)


def pieces_of_graph(graph: AtomGraph, breaks: int = MOST_BREAKS) -> Pieces:
    """Pieces of a molecule that is a graph already."""
    values, codes, _, complete = listed(graph.units, graph.bonds, breaks, MOST_ROWS)
    kept = distinct(values, codes)
    counts = values[kept, 1]
    return Pieces(
        values[kept, 0] / PER_DALTON,
        codes[kept],
        (counts & ((1 << HYDROGEN_BITS) - 1)).astype(np.int32),
        (counts >> HYDROGEN_BITS).astype(np.int32),
        int(complete),
        breaks,
    )
