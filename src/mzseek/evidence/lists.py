"""Spectra and the candidates of each: what channels read, wherever it comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mzseek.adducts import parse_adduct
from mzseek.errors import EvidenceError
from mzseek.evidence.molecules import Molecules
from mzseek.ragged import Ragged, places, pointers
from mzseek.spectra import Spectrum

Ints = npt.NDArray[np.int64]
MODES = {"positive": 1, "negative": -1}
_ROWS = 200_000


@dataclass(frozen=True, eq=False)
class Lists:
    """Spectra, each with a list of candidates; spectra of one molecule may share theirs.

    What is asked of a channel has a row for each candidate of each spectrum, the candidates of
    the first spectrum first.

    Attributes
    ----------
    spectra : sequence of Spectrum
    list_of : int64 array, shape (spectra,)
        The list of each.
    pointers : int64 array, shape (lists + 1,)
    members : int64 array
        Candidates of all lists, as places in `molecules`; list i is
        ``members[pointers[i]:pointers[i + 1]]``.
    molecules : Molecules
    known_are_matches : bool
        Known molecules among the candidates are judged by their own spectra, elsewhere, and lend
        their likeness to none.
    """

    spectra: Sequence[Spectrum]
    list_of: Ints
    pointers: Ints
    members: Ints
    molecules: Molecules
    known_are_matches: bool = False

    def __post_init__(self) -> None:
        if len(self.list_of) != len(self.spectra):
            raise EvidenceError(f"{len(self.list_of)} lists for {len(self.spectra)} spectra")
        if len(self.members) and not 0 <= self.members.min() <= self.members.max() < len(
            self.molecules
        ):
            raise EvidenceError(f"candidates are places in a table of {len(self.molecules)}")

    @classmethod
    def of(
        cls, spectra: Sequence[Spectrum], candidates: Sequence[Sequence[str]], **table: object
    ) -> "Lists":
        """Spectra with the SMILES of the candidates of each.

        Parameters
        ----------
        spectra : sequence of Spectrum
        candidates : sequence of sequences of str
        **table
            Of `Molecules`: the kind of fingerprint, processes.

        Examples
        --------
        >>> one = Spectrum(np.array([29.04]), np.array([1.0]), 47.05, "[M+H]+", 1, "a")
        >>> lists = Lists.of([one, one], [["CCO", "COC"], ["CCO"]])
        >>> lists.counts.tolist(), lists.candidates.tolist(), len(lists.molecules)
        ([2, 1], [0, 1, 0], 2)
        """
        distinct = list(dict.fromkeys(smiles for each in candidates for smiles in each))
        place = {smiles: number for number, smiles in enumerate(distinct)}
        members = np.array([place[smiles] for each in candidates for smiles in each], np.int64)
        sizes = [len(each) for each in candidates]
        molecules = Molecules(distinct, **table)  # type: ignore[arg-type]
        return cls(spectra, np.arange(len(sizes)), pointers(sizes), members, molecules)

    @cached_property
    def counts(self) -> Ints:
        """Candidates of each spectrum."""
        return np.asarray(np.diff(self.pointers)[self.list_of])

    @cached_property
    def place(self) -> Ints:
        """The place of each row's candidate in `members`."""
        return places(self.pointers, self.list_of)[1]

    @cached_property
    def candidates(self) -> Ints:
        """The candidate of each row."""
        return self.members[self.place]

    @cached_property
    def ragged(self) -> Ragged:
        """The lengths of the lists, spectrum by spectrum."""
        return Ragged(self.counts)

    @cached_property
    def modes(self) -> npt.NDArray[np.int8]:
        """1 for positive, −1 for negative, 0 where it is not known."""
        return np.array([mode_of(spectrum) for spectrum in self.spectra], np.int8)

    def only(self, wanted: npt.NDArray[np.integer]) -> "Lists":
        """Some of the spectra, with their lists."""
        chosen = [self.spectra[int(each)] for each in wanted]
        return replace(self, spectra=chosen, list_of=self.list_of[wanted])

    def in_parts(self, rows: int = _ROWS) -> Iterator[tuple[slice, "Lists"]]:
        """The same a few spectra at a time, each part with the rows that it has in the whole."""
        ends = pointers(self.counts)
        first = 0
        while first < len(self.spectra):
            last = max(int(np.searchsorted(ends, ends[first] + rows, side="right")) - 1, first + 1)
            yield slice(ends[first], ends[last]), self.only(np.arange(first, last))
            first = last


def mode_of(spectrum: Spectrum) -> int:
    """1 for positive, −1 for negative, 0 where neither charge, adduct nor record tells."""
    charge = spectrum.charge
    if charge is None and spectrum.adduct is not None:
        charge = parse_adduct(spectrum.adduct).charge
    if charge:
        return 1 if charge > 0 else -1
    return MODES.get(spectrum.metadata.get("ionmode", ""), 0)
