"""The prior: which of the candidates are molecules that people measure.

It never sees the spectrum, and what it says is no evidence. Candidate lists leak it: measured
molecules differ from what databases hold. So it stands apart: it is asked for by name, and its part
of a score is shown as its own.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from mzseek.chem.descriptors import DESCRIPTORS
from mzseek.errors import EvidenceError
from mzseek.evidence.blind import Blind, Floats, Ints, blind_rows, fit_blind
from mzseek.evidence.channel import Channel, Features, Learned
from mzseek.evidence.known import Lessons
from mzseek.evidence.lists import Lists
from mzseek.evidence.molecules import Molecules
from mzseek.evidence.ordered import in_order
from mzseek.registry import option
from mzseek.work.progress import Progress, silent


@dataclass(frozen=True)
class PriorOptions:
    """Options of the prior."""

    l2: float = option(0.03, "penalty on the squares of weights", above=0)


class Prior(Channel):
    """How much a candidate looks like molecules that were measured."""

    name: ClassVar[str] = "prior"
    options_type: ClassVar[type] = PriorOptions
    sees_spectrum: ClassVar[bool] = False
    feature_names = ("measured",)

    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
        """Weights of bits and descriptors, every molecule counting once."""
        asked = in_order(lessons.questions)
        _, first = np.unique(asked.blocks, return_index=True)
        once = asked.only(first)
        members, place = np.unique(once.lists.candidates, return_inverse=True)
        rows = _rows(once.lists.molecules, members)
        blind = fit_blind(rows, once.lists.counts, once.labels, members=place, l2=self.options.l2)
        facts = {"fingerprint": lessons.molecules.fingerprint, "descriptors": list(DESCRIPTORS)}
        return Learned(blind.arrays(), facts, lessons.learned_from)

    def features(self, learned: Learned, lists: Lists) -> Features:
        """Log-odds of a candidate, whatever the spectrum."""
        members, place = np.unique(lists.candidates, return_inverse=True)
        scores = self.log_odds(learned, lists.molecules, members)
        return scores[place].astype(np.float32)[:, None]

    def log_odds(self, learned: Learned, molecules: Molecules, members: Ints) -> Floats:
        """The same of molecules that are in no list: places in a table, each once.

        Returns
        -------
        float64 array, shape (members,)
            Up to what is the same for a whole list.

        Raises
        ------
        EvidenceError
            It has learned from other fingerprints or descriptors than these molecules have.
        """
        kind = learned.facts["fingerprint"]
        if kind != molecules.fingerprint:
            raise EvidenceError(
                f"the prior is over {kind} bits, and candidates have {molecules.fingerprint}"
            )
        if list(learned.facts["descriptors"]) != list(DESCRIPTORS):
            raise EvidenceError("the prior is over other descriptors than there are; fit it again")
        if not len(members):
            return np.zeros(0)
        return Blind.from_arrays(learned.arrays).score(_rows(molecules, members))


def _rows(molecules: Molecules, members: Ints) -> csr_array:
    return blind_rows(molecules.fingerprints(members), molecules.descriptors(members))
