"""Spectra of known molecules: what channels learn from, and what a ranker is fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.evidence.lists import Ints, Lists
from mzseek.evidence.molecules import Molecules
from mzseek.ragged import spans
from mzseek.spectra import Spectrum

Blocks = npt.NDArray[np.bytes_]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Questions:
    """Lists whose answers are known.

    Attributes
    ----------
    lists : Lists
    labels : bool array, a value for each row of the lists
        Candidates that are the truth; each spectrum has one at least.
    blocks : bytes array, shape (spectra,)
        First InChIKey block of each spectrum's molecule.
    """

    lists: Lists
    labels: Flags
    blocks: Blocks

    def __len__(self) -> int:
        return len(self.blocks)

    def only(self, wanted: npt.NDArray[np.integer]) -> "Questions":
        """Some of the spectra."""
        return Questions(
            self.lists.only(wanted), self.labels[self.rows(wanted)], self.blocks[wanted]
        )

    def rows(self, wanted: npt.NDArray[np.integer]) -> Ints:
        """Rows of some of the spectra."""
        starts = self.lists.ragged.starts[wanted]
        return spans(starts, starts + self.lists.counts[wanted])[1]

    def weights(self) -> npt.NDArray[np.float64]:
        """What each spectrum counts if every molecule counts once."""
        _, molecule, counts = np.unique(self.blocks, return_inverse=True, return_counts=True)
        return 1.0 / counts[molecule]


@dataclass(frozen=True, eq=False)
class Lessons:
    """What a channel learns from.

    Attributes
    ----------
    spectra : sequence of Spectrum
    molecule : int64 array, shape (spectra,)
        Of each, its place in `molecules`.
    molecules : Molecules
        The known ones.
    blocks : bytes array, shape (molecules,)
        Their first InChIKey blocks.
    questions : Questions
        Some of the spectra, with lists.
    """

    spectra: Sequence[Spectrum]
    molecule: Ints
    molecules: Molecules
    blocks: Blocks
    questions: Questions

    def without(self, blocks: Blocks) -> "Lessons":
        """All but what is about these molecules."""
        kept = np.flatnonzero(~np.isin(self.blocks[self.molecule], blocks))
        asked = np.flatnonzero(~np.isin(self.questions.blocks, blocks))
        return Lessons(
            [self.spectra[int(each)] for each in kept],
            self.molecule[kept],
            self.molecules,
            self.blocks,
            self.questions.only(asked),
        )

    @property
    def learned_from(self) -> Blocks:
        """Molecules that they are about, each once."""
        return np.union1d(self.blocks[self.molecule], self.questions.blocks)
