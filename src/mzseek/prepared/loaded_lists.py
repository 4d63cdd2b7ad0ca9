"""Candidate lists with the bits of their candidates, ready to be strung together."""

import numpy as np
import numpy.typing as npt

from mzseek.errors import CacheError
from mzseek.prepared.reader import Prepared
from mzseek.ragged import gather, pointers

_CANDIDATES_AT_A_TIME = 200_000


class LoadedLists:
    """Candidates' bits in the order of their lists, held in memory as 16-bit positions.

    A batch of lists is then a few dozen contiguous copies. It takes 2 bytes a set bit: 60 MB for
    the lists of 4,400 molecules of MassBank, 0.7 GB at MassSpecGym's size.

    Parameters
    ----------
    prepared : Prepared
    setting : str
        Name of the candidate lists.
    molecules : int array
        Measured molecules whose lists are wanted, each once.
    """

    def __init__(
        self, prepared: Prepared, setting: str, molecules: npt.NDArray[np.integer]
    ) -> None:
        self._prepared, self._setting = prepared, setting
        lists = prepared.candidates(setting)
        numbers = np.asarray(lists.list_of)[molecules]
        numbers = numbers[numbers >= 0]
        counts = lists.sizes[numbers]
        # Where a measured molecule's list begins, counted in candidates; -1 where it has none.
        self._place = np.full(len(lists.list_of), -1, np.int64)
        self._place[molecules[lists.list_of[molecules] >= 0]] = np.arange(len(numbers))
        self._indptr = pointers(counts)
        _, members = gather(lists.indptr, (lists.molecules, lists.identity), numbers)
        self.molecules, self.identity = map(np.asarray, members)
        sizes = self._sizes = prepared.fingerprint_sizes[self.molecules]
        self._bit_indptr = pointers(sizes)
        self._bits = np.empty(int(sizes.sum()), np.uint16)
        for start in range(0, len(self.molecules), _CANDIDATES_AT_A_TIME):
            end = min(start + _CANDIDATES_AT_A_TIME, len(self.molecules))
            rows = prepared.fingerprint_rows(self.molecules[start:end])
            self._bits[self._bit_indptr[start] : self._bit_indptr[end]] = rows.indices

    def labelled(self, identity: int) -> npt.NDArray[np.bool_]:
        """For each molecule of the table, whether it has a list with the truth labelled in it."""
        has_label = np.zeros(len(self._place), bool)
        has = np.flatnonzero(self._place >= 0)
        if len(has):
            hits = pointers((self.identity & identity) > 0)
            place = self._place[has]
            has_label[has] = hits[self._indptr[place + 1]] > hits[self._indptr[place]]
        return has_label

    def _places(self, molecules: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        place: npt.NDArray[np.int64] = self._place[molecules]
        if place.min(initial=0) < 0:
            smiles = self._prepared.smiles[int(molecules[int(place.argmin())])]
            raise CacheError(
                f"{self._prepared.folder}: {smiles} has no {self._setting} candidates, or they "
                "were not asked for"
            )
        return place

    def of(
        self, molecules: npt.NDArray[np.integer]
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.int32],
        npt.NDArray[np.uint16],
        npt.NDArray[np.uint8],
    ]:
        """Lists of the molecules asked for: counts, bits a candidate, the bits, identities."""
        place = self._places(molecules)
        starts, ends = self._indptr[place], self._indptr[place + 1]
        spans = [slice(s, e) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
        first, last = self._bit_indptr[starts].tolist(), self._bit_indptr[ends].tolist()
        return (
            ends - starts,
            np.concatenate([self._sizes[span] for span in spans]),
            np.concatenate([self._bits[s:e] for s, e in zip(first, last, strict=True)]),
            np.concatenate([self.identity[span] for span in spans]),
        )

    def counts(self, molecules: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Candidates in the list of each of the molecules."""
        place = self._places(molecules)
        return np.asarray(self._indptr[place + 1] - self._indptr[place])

    def members(
        self, molecules: npt.NDArray[np.integer]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """The lists of the molecules strung together: candidates, and in what sense each is it."""
        _, (members, identity) = gather(
            self._indptr, (self.molecules, self.identity), self._places(molecules)
        )
        return members, identity
