"""The interface of an evidence channel."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mzseek.core.registry import NoOptions
from mzseek.evidence.queries import Keys, Molecules, Queries, ReferenceSpectra, TrainingSet
from mzseek.library import Library
from mzseek.parallel.engine import Progress, silent

Features = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ChannelState:
    """The fitted state of a channel.

    Attributes
    ----------
    arrays, metadata : mapping of str to array, mapping of str to plain data
    inchikey14 : bytes array
        Molecules it was fitted on. No ranker may be fitted on features of these molecules or of
        their near-duplicates: `mzseek.evidence.fitting` enforces that.
    cache : dict
        What a channel has computed from the arrays; never written.
    """

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    inchikey14: Keys = field(default_factory=lambda: np.empty(0, "S14"))
    cache: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ExtendedState:
    """A channel state with more reference spectra.

    Attributes
    ----------
    state : ChannelState
    spectra, molecules : int
        How many are new; further spectra of known molecules are new spectra only.
    left_out : int
        Molecules whose spectra were not added.
    """

    state: ChannelState
    spectra: int
    molecules: int
    left_out: int


class Channel(ABC):
    """One way to score a candidate against a spectrum.

    To add a channel, write one module with a subclass and its options dataclass, and one line in
    `mzseek.evidence.registry.CHANNELS`.

    Parameters
    ----------
    options
        An instance of `options_type`; its defaults if left out.

    Attributes
    ----------
    name : str
        In the registry.
    options_type : type
        A dataclass.
    pretrained : bool
        Whether it was trained elsewhere, so that no molecule can be left out of its training.
    sees_spectrum : bool
        Whether its features depend on the spectrum; those of a prior do not.
    needs_fragments : bool
        Whether it reads the fragments of candidates, which take time to enumerate.
    needs_fingerprints : tuple of str
        Kinds of fingerprint that it reads, beside that of the molecule table.
    feature_names : tuple of str
    shapes : mapping of str to tuple of int
        State arrays whose shape does not depend on the training set.
    """

    name: ClassVar[str]
    options_type: ClassVar[type] = NoOptions
    pretrained: ClassVar[bool] = False
    sees_spectrum: ClassVar[bool] = True
    needs_fragments: ClassVar[bool] = False
    needs_fingerprints: tuple[str, ...] = ()
    shapes: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    feature_names: tuple[str, ...]

    def __init__(self, options: Any = None) -> None:
        self.options = self.options_type() if options is None else options

    @property
    def label(self) -> str:
        """Name shown in tables."""
        return self.name

    @abstractmethod
    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Fit the channel; the order of spectra, peaks and candidates has no effect."""

    @abstractmethod
    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Return features of every candidate, shape (rows of the queries, feature names).

        A row depends on its spectrum, its candidate and the state, and on no other row; where
        ``queries.excluded_analogs`` is given, on these molecules as well, in no order.
        """

    def use_library(self, state: ChannelState, library: Library) -> None:
        """Reuse the index of a library that has the spectra of the state; saves time and memory."""
        return

    def extend(self, state: ChannelState, references: ReferenceSpectra) -> ExtendedState | None:
        """Return the state with more reference spectra; None for channels that use none.

        The given state does not change. A molecule that is known already, by its first InChIKey
        block, stays one molecule. The order of spectra has no effect.
        """
        return None


def precompute(
    channels: Iterable[Channel], molecules: Molecules, progress: Progress = silent
) -> None:
    """Compute fragments and fingerprints that channels need, parsing each molecule once."""
    needed = list(channels)
    kinds = [kind for channel in needed for kind in channel.needs_fingerprints]
    fragments = any(channel.needs_fragments for channel in needed)
    molecules.compute(kinds, fragments=fragments, progress=progress)
