"""The pieces of many molecules, one after the other in arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol

from mzseek.errors import MoleculeError
from mzseek.fragments.breaking import MOST_BREAKS, Pieces, pieces, pieces_of_graph
from mzseek.fragments.graph import graph_of
from mzseek.ragged import pointers
from mzseek.rejects import Rejects, reporter
from mzseek.work.batches import in_batches
from mzseek.work.progress import Progress, silent

_BATCH = 500
_ASIDE = -1


@dataclass(frozen=True, eq=False)
class PieceTable:
    """Pieces of many molecules, one after the other.

    Attributes
    ----------
    starts : int64 array, shape (molecules + 1,)
        Molecule i has rows ``starts[i]`` to ``starts[i + 1]``; none where it was set aside.
    masses, codes, hydrogens, electrons : arrays, shape (rows,)
        As in `Pieces`.
    breaks : int8 array, shape (molecules,)
        Up to how many breaks all pieces of each are listed; −1 where it was set aside.
    wanted : int
        Up to how many were asked for.
    """

    starts: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int8]
    hydrogens: npt.NDArray[np.int32]
    electrons: npt.NDArray[np.int32]
    breaks: npt.NDArray[np.int8]
    wanted: int = MOST_BREAKS

    def __len__(self) -> int:
        return len(self.breaks)

    @property
    def cut_short(self) -> npt.NDArray[np.bool_]:
        """Molecules of which pieces were left out because there are too many."""
        return (self.breaks >= 0) & (self.breaks < self.wanted)

    def of(self, molecule: int) -> Pieces:
        """Pieces of one of the molecules."""
        rows = slice(self.starts[molecule], self.starts[molecule + 1])
        return Pieces(
            self.masses[rows],
            self.codes[rows],
            self.hydrogens[rows],
            self.electrons[rows],
            int(self.breaks[molecule]),
            self.wanted,
        )


def piece_table(
    smiles: Sequence[str],
    breaks: int = MOST_BREAKS,
    rejects: Rejects | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> PieceTable:
    """Pieces of each of many molecules.

    Parameters
    ----------
    smiles : sequence of str
    breaks : int
        0 to 3.
    rejects : list or callable, optional
        Gets (SMILES, reason) for what is no molecule, which then has no pieces. Without it the
        first of them raises.
    jobs : int, optional
        Processes; all cores by default. RDKit holds Python's lock while it parses.
    progress : callable

    Examples
    --------
    >>> table = piece_table(["CCO", "CO"])
    >>> len(table.of(0)), len(table.of(1)), table.breaks.tolist()
    (6, 3, [3, 3])
    """
    pieces("C")  # compiled here and kept on disk, once, and not by each process
    found: list[Pieces | str] = []
    for batch, result in in_batches(partial(_batch, breaks=breaks), list(smiles), _BATCH, jobs):
        for text, each in zip(batch, result, strict=True):
            if isinstance(each, str):
                if rejects is None:
                    raise MoleculeError(each)
                reporter(rejects)(text, each)
        found += result
        progress("pieces", len(found), len(smiles))
    return _strung(found, breaks)


def table_of(molecules: Sequence[Mol], breaks: int = MOST_BREAKS) -> PieceTable:
    """Pieces of molecules that are parsed already."""
    return _strung([pieces_of_graph(graph_of(each), breaks) for each in molecules], breaks)


def join_tables(tables: Sequence[PieceTable]) -> PieceTable:
    """The molecules of several tables, one table after the other.

    Examples
    --------
    >>> both = join_tables([piece_table(["CCO"]), piece_table(["CO"])])
    >>> len(both.of(0)), len(both.of(1))
    (6, 3)
    """
    first = _strung([], tables[0].wanted if tables else MOST_BREAKS)
    whole = [first, *tables]
    return PieceTable(
        pointers(np.concatenate([np.diff(each.starts) for each in whole])),
        np.concatenate([each.masses for each in whole]),
        np.concatenate([each.codes for each in whole]),
        np.concatenate([each.hydrogens for each in whole]),
        np.concatenate([each.electrons for each in whole]),
        np.concatenate([each.breaks for each in whole]),
        first.wanted,
    )


def _strung(found: Sequence[Pieces | str], breaks: int) -> PieceTable:
    """Pieces one after the other; a text in the place of pieces says why there are none."""
    good = [each for each in found if isinstance(each, Pieces)]
    return PieceTable(
        pointers([0 if isinstance(each, str) else len(each) for each in found]),
        np.concatenate([np.empty(0), *(each.masses for each in good)]),
        np.concatenate([np.empty(0, np.int8), *(each.codes for each in good)]),
        np.concatenate([np.empty(0, np.int32), *(each.hydrogens for each in good)]),
        np.concatenate([np.empty(0, np.int32), *(each.electrons for each in good)]),
        np.array([_ASIDE if isinstance(each, str) else each.breaks for each in found], np.int8),
        breaks,
    )


def _batch(smiles: Sequence[str], breaks: int) -> list[Pieces | str]:
    """Pieces of each molecule, or why there are none."""
    found: list[Pieces | str] = []
    for text in smiles:
        try:
            found.append(pieces(text, breaks))
        except MoleculeError as error:
            found.append(str(error))
    return found
