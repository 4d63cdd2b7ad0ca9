"""Candidate lists of several settings as one list each: what they share is asked once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mzseek.evidence.asked import molecules_from
from mzseek.evidence.lists import Ints, Lists
from mzseek.prepared.reader import Prepared
from mzseek.ragged import gather, pointers
from mzseek.spectra import Spectrum


@dataclass(frozen=True, eq=False)
class Joined:
    """Spectra with all candidates that any of their lists names, each once.

    What a channel says of a candidate depends on no other candidate, so that the rows of a
    setting's lists can be picked from those of all.

    Attributes
    ----------
    lists : Lists
    ends : mapping of str to int64 array, shape (lists + 1,)
        For each setting, where the candidates of each list begin …
    places : mapping of str to int64 array
        … and the place of each in the joined list.
    """

    lists: Lists
    ends: Mapping[str, Ints]
    places: Mapping[str, Ints]

    def rows(self, setting: str, spectra: npt.NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Rows of the candidates that some spectra have in a setting, and how many each has."""
        numbers = self.lists.list_of[spectra]
        ends, (places,) = gather(self.ends[setting], (self.places[setting],), numbers)
        counts = np.diff(ends)
        return np.repeat(self.lists.ragged.starts[spectra], counts) + places, counts


def joined_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    settings: Sequence[str],
    spectra: list[Spectrum],
    jobs: int | None = None,
) -> Joined:
    """Spectra of a prepared folder with their lists of some settings.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
    settings : sequence of str
        A spectrum without a list of one of them has no candidates there.
    spectra : list of Spectrum
        What is read of each query.
    jobs : int, optional
        Processes that read molecules.
    """
    asked, list_of = np.unique(prepared.molecule[queries], return_inverse=True)
    own = {setting: _candidates(prepared, setting, asked) for setting in settings}
    all_of = [np.unique(np.concatenate(each)) for each in zip(*own.values(), strict=True)]
    places = {
        setting: [np.searchsorted(all_of[n], each) for n, each in enumerate(lists)]
        for setting, lists in own.items()
    }
    table, members = np.unique(np.concatenate(all_of), return_inverse=True)
    return Joined(
        Lists(
            spectra, np.asarray(list_of, np.int64), pointers([len(each) for each in all_of]),
            members.astype(np.int64), molecules_from(prepared, table, jobs),
        ),
        {setting: pointers([len(each) for each in lists]) for setting, lists in own.items()},
        {setting: np.concatenate(each).astype(np.int64) for setting, each in places.items()},
    )  # fmt: skip


def _candidates(
    prepared: Prepared, setting: str, molecules: npt.NDArray[np.integer]
) -> list[npt.NDArray[np.int32]]:
    """Candidates of each molecule; none where it has no list."""
    lists = prepared.candidates(setting)
    nothing = np.empty(0, np.int32)
    return [
        np.asarray(lists.of_molecule(int(each))) if lists.list_of[each] >= 0 else nothing
        for each in molecules
    ]
