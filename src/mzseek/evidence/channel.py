"""What a channel is: spectra and candidate lists in, features of every candidate out."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mzseek.evidence.known import Blocks, Lessons, Measured
from mzseek.evidence.lists import Lists
from mzseek.evidence.molecules import Molecules
from mzseek.library import Library
from mzseek.registry import NoOptions
from mzseek.work.progress import Progress, silent

Features = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Learned:
    """What a channel has learned, and from which molecules.

    Attributes
    ----------
    arrays : mapping of str to array
    facts : mapping of str to plain data
    blocks : bytes array
        First InChIKey blocks of the molecules that it learned from. Nothing may be fitted on what
        it says of these, or of their like: `mzseek.evidence.fitting.crossfit` sees to that.
    ready : dict
        What a channel has made of the arrays to work with; never written.
    """

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    blocks: Blocks = field(default_factory=lambda: np.empty(0, "S14"))
    ready: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Extended:
    """What a channel knows after it has taken in more reference spectra.

    Attributes
    ----------
    learned : Learned
    spectra, molecules : int
        That are new; spectra of molecules that it knew are new spectra only.
    left_out : int
        Molecules whose spectra it did not take in.
    """

    learned: Learned
    spectra: int
    molecules: int
    left_out: int


class Channel(ABC):
    """One way in which a spectrum speaks for a candidate.

    Parameters
    ----------
    options
        Of the type that the channel names; its defaults if left out.

    Attributes
    ----------
    name : str
        In the registry.
    options_type : type
        A dataclass: the options that it has.
    learns : bool
        Whether it learns from lessons that it is given. One that does not has learned elsewhere,
        and what it learned from cannot be left out.
    sees_spectrum : bool
        Whether what it says depends on the spectrum; a prior does not.
    reads_pieces : bool
        Whether it reads the pieces of candidates, which take time to find.
    reads_fingerprints : tuple of str
        Kinds of fingerprint that it reads of candidates, beside that of their table.
    feature_names : tuple of str
    """

    name: ClassVar[str]
    options_type: ClassVar[type] = NoOptions
    learns: ClassVar[bool] = True
    sees_spectrum: ClassVar[bool] = True
    reads_pieces: ClassVar[bool] = False
    reads_fingerprints: tuple[str, ...] = ()
    feature_names: tuple[str, ...]

    def __init__(self, options: Any = None) -> None:
        self.options = self.options_type() if options is None else options

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.name

    @abstractmethod
    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
        """What these lessons teach.

        Nothing depends on the order of spectra, peaks or candidates.
        """

    @abstractmethod
    def features(self, learned: Learned, lists: Lists) -> Features:
        """What it says of every candidate: shape (rows of the lists, feature names).

        A row depends on its spectrum, its candidate and what was learned, and on no other row;
        where ``lists.known_are_matches``, on its list as well, in no order.
        """

    def adopt(self, learned: Learned, library: Library) -> None:
        """Take what a library has made ready, if its spectra are those that it learned from.

        It changes nothing but time and memory.
        """
        return

    def extended(self, learned: Learned, more: Measured) -> Extended | None:
        """What it knows with more reference spectra; None where it takes in none, as most do.

        What was learned stays as it is. A molecule that is known already, by its first InChIKey
        block, stays one molecule. Nothing depends on the order of spectra.
        """
        return None


def read_once(
    channels: Iterable[Channel], molecules: Molecules, progress: Progress = silent
) -> None:
    """Read candidates once for all channels: pieces and fingerprints of one parsed molecule."""
    wanted = list(channels)
    kinds = [kind for channel in wanted for kind in channel.reads_fingerprints]
    pieces = any(channel.reads_pieces for channel in wanted)
    molecules.read(kinds, pieces=pieces, progress=progress)
