"""Spectra of known molecules: what channels learn from, and what a ranker is fitted on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.evidence.lists import Ints, Lists
from mzseek.evidence.molecules import Molecules
from mzseek.library.lists import Ions
from mzseek.library.lists import Lists as PeakLists
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


@dataclass(frozen=True, eq=False)
class Measured:
    """Reference spectra that come after the lessons, without questions.

    Attributes
    ----------
    peaks, ions : Lists, Ions
        Of all spectra, cleaned as those of the lessons were.
    molecule : int64 array, shape (spectra,)
        Of each, its place in `smiles`.
    smiles : sequence of str
    blocks : bytes array, shape (molecules,)
        Their first InChIKey blocks.
    """

    peaks: PeakLists
    ions: Ions
    molecule: Ints
    smiles: Sequence[str]
    blocks: Blocks

    def __len__(self) -> int:
        return len(self.molecule)

    def only(self, wanted: npt.NDArray[np.integer]) -> "Measured":
        """Some of the spectra, in the order that is asked for."""
        starts, ends = self.peaks.pointers[wanted], self.peaks.pointers[wanted + 1]
        new, peaks = spans(starts, ends)
        return Measured(
            PeakLists(new, self.peaks.values[peaks], self.peaks.weights[peaks]),
            Ions(self.ions.precursors[wanted], self.ions.modes[wanted]),
            self.molecule[wanted],
            self.smiles,
            self.blocks,
        )

    def in_order(self) -> "Measured":
        """Molecules of one block as one, by block; each spectrum once, in an order of its own.

        So that no order of files or records shows, and none counts twice.
        """
        blocks, place = np.unique(self.blocks, return_inverse=True)
        smiles: dict[int, str] = {}
        drawn = zip(place.tolist(), self.smiles, strict=True)
        for own, text in sorted(drawn, key=lambda one: (len(one[1]), one[1])):
            smiles.setdefault(own, text)
        used, molecule = np.unique(place[self.molecule], return_inverse=True)
        first: dict[tuple[int, bytes], int] = {}
        for at, key in enumerate(zip(molecule.tolist(), self.contents(), strict=True)):
            first.setdefault(key, at)
        merged = Measured(
            self.peaks,
            self.ions,
            np.asarray(molecule, np.int64),
            [smiles[own] for own in used.tolist()],
            blocks[used],
        )
        return merged.only(np.array([first[key] for key in sorted(first)], np.int64))

    def contents(self) -> list[bytes]:
        """Of each spectrum all that was measured: equal for equal ones, and for no others."""
        ends = self.peaks.pointers.tolist()
        return [
            precursor.tobytes() + mode.tobytes() + self.peaks.values[low:high].tobytes()
            + self.peaks.weights[low:high].tobytes()
            for precursor, mode, low, high in zip(
                self.ions.precursors, self.ions.modes, ends[:-1], ends[1:], strict=True
            )
        ]  # fmt: skip
