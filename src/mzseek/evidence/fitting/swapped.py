"""A control: the spectrum of another molecule of nearly equal mass in the place of each."""

import numpy as np
import numpy.typing as npt

from mzseek.chem import fingerprints
from mzseek.errors import EvidenceError
from mzseek.evidence.asked import chance
from mzseek.evidence.fitting.crossfit import Groups
from mzseek.prepared.reader import Prepared

_CLUSTERS = "morgan2"  # as data sets are split by


def groups_from(prepared: Prepared, molecules: npt.NDArray[np.integer], number: int) -> Groups:
    """Measured molecules by cluster of structure, dealt into groups."""
    rows = fingerprints([prepared.smiles[int(each)] for each in molecules], _CLUSTERS)
    return Groups.of(prepared.blocks[molecules], rows, number)


def swapped(prepared: Prepared, queries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each spectrum another: of the same adduct, nearest in mass, of a molecule not alike.

    What still points to the truth then is no evidence of the spectrum, but of what candidates
    look like. Molecules of one structure cluster would share much of their spectra, and are not
    taken for one another.

    Raises
    ------
    EvidenceError
        A spectrum has no other of its adduct.
    """
    molecules = np.unique(prepared.molecule[queries])
    groups = groups_from(prepared, molecules, 1)
    cluster = groups.cluster[groups.places(prepared.blocks[prepared.molecule[queries]])]
    adducts = np.array([prepared.adduct(int(each)) or "" for each in queries])
    names = [prepared.identifiers[int(each)].encode() for each in queries]
    mz = prepared.precursor_mz[queries]
    found = np.empty(len(queries), np.int64)
    for adduct in np.unique(adducts):
        own = np.flatnonzero(adducts == adduct)
        for each in own:
            other = own[cluster[own] != cluster[each]]
            if not len(other):
                raise EvidenceError(
                    f"{names[each].decode()}: there is no spectrum of {adduct or 'its adduct'} of "
                    "another molecule to take in its place"
                )
            # Spectra of one molecule are as near as each other: the lot decides, not the order.
            distance = np.abs(mz[other] - mz[each]).round(3)
            nearest = other[distance == distance.min()]
            found[each] = min(nearest, key=lambda one: chance(names[each], names[one]))
    return queries[found]
