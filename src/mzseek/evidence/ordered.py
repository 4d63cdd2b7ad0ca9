"""Questions in an order of their own: what is learned step by step must not depend on a file's."""

from dataclasses import replace

import numpy as np

from mzseek.evidence.asked import chance
from mzseek.evidence.known import Questions
from mzseek.evidence.lists import Lists
from mzseek.ragged import Ragged, pointers
from mzseek.spectra import Spectrum


def in_order(asked: Questions) -> Questions:
    """The same questions: spectra by molecule and content, candidates by their SMILES.

    Every spectrum gets a list of its own, so that what belongs together stands together.
    """
    lots = np.array([_content(spectrum) for spectrum in asked.lists.spectra], np.int64)
    asked = asked.only(np.lexsort((lots, asked.blocks)))
    lists = asked.lists
    rank = np.empty(len(lists.molecules), np.int64)
    rank[np.argsort(np.array(lists.molecules.smiles, object), kind="stable")] = np.arange(len(rank))
    owner = Ragged(lists.counts).owner
    order = np.lexsort((rank[lists.candidates], owner))
    sorted_lists: Lists = replace(
        lists,
        list_of=np.arange(len(lists.spectra)),
        pointers=pointers(lists.counts),
        members=lists.candidates[order],
    )
    return Questions(sorted_lists, asked.labels[order], asked.blocks)


def _content(spectrum: Spectrum) -> int:
    order = np.lexsort((spectrum.intensities, spectrum.mz))
    numbers = np.concatenate(
        [spectrum.mz[order], spectrum.intensities[order], [spectrum.precursor_mz]]
    )
    return chance(numbers.astype(np.float64).tobytes(), spectrum.identifier.encode())
