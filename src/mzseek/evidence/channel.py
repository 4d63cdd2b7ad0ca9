"""The interface of an evidence channel, and its state on disk."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from mzseek.core.errors import EvidenceError, ModelError
from mzseek.core.registry import NoOptions
from mzseek.evidence.queries import Blocks, Lists, Measured, Molecules, TrainingSet
from mzseek.io.manifest import Manifest, parse_object
from mzseek.library import Library
from mzseek.parallel.engine import Progress, silent
from mzseek.runs.checkpoints import read_arrays

Features = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ChannelState:
    """What a channel has learned, and from which molecules.

    Attributes
    ----------
    arrays : mapping of str to array
    facts : mapping of str to plain data
    blocks : bytes array
        First InChIKey blocks of the molecules that it learned from. Nothing may be fitted on what
        it says of these, or of their like: `mzseek.evidence.fitting` sees to that.
    ready : dict
        What a channel has made of the arrays to work with; never written.
    """

    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    blocks: Blocks = field(default_factory=lambda: np.empty(0, "S14"))
    ready: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ExtendedState:
    """What a channel knows after it has taken in more reference spectra.

    Attributes
    ----------
    learned : ChannelState
    spectra, molecules : int
        That are new; spectra of molecules that it knew are new spectra only.
    left_out : int
        Molecules whose spectra it did not take in.
    """

    learned: ChannelState
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
    reads_fragments : bool
        Whether it reads the fragments of candidates, which take time to find.
    reads_fingerprints : tuple of str
        Kinds of fingerprint that it reads of candidates, beside that of their table.
    feature_names : tuple of str
    shapes : mapping of str to tuple of int
        Of learned arrays whose shape does not depend on what was learned from.
    """

    name: ClassVar[str]
    options_type: ClassVar[type] = NoOptions
    learns: ClassVar[bool] = True
    sees_spectrum: ClassVar[bool] = True
    reads_fragments: ClassVar[bool] = False
    reads_fingerprints: tuple[str, ...] = ()
    shapes: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    feature_names: tuple[str, ...]

    def __init__(self, options: Any = None) -> None:
        self.options = self.options_type() if options is None else options

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.name

    @abstractmethod
    def learn(self, lessons: TrainingSet, progress: Progress = silent) -> ChannelState:
        """What these lessons teach.

        Nothing depends on the order of spectra, peaks or candidates.
        """

    @abstractmethod
    def features(self, learned: ChannelState, lists: Lists) -> Features:
        """What it says of every candidate: shape (rows of the lists, feature names).

        A row depends on its spectrum, its candidate and what was learned, and on no other row;
        where ``lists.not_analogs`` is given, on these molecules as well, in no order.
        """

    def adopt(self, learned: ChannelState, library: Library) -> None:
        """Take what a library has made ready, if its spectra are those that it learned from.

        It changes nothing but time and memory.
        """
        return

    def extended(self, learned: ChannelState, more: Measured) -> ExtendedState | None:
        """What it knows with more reference spectra; None where it takes in none, as most do.

        What was learned stays as it is. A molecule that is known already, by its first InChIKey
        block, stays one molecule. Nothing depends on the order of spectra.
        """
        return None


def read_once(
    channels: Iterable[Channel], molecules: Molecules, progress: Progress = silent
) -> None:
    """Read candidates once for all channels: fragments and fingerprints of one parsed molecule."""
    wanted = list(channels)
    kinds = [kind for channel in wanted for kind in channel.reads_fingerprints]
    fragments = any(channel.reads_fragments for channel in wanted)
    molecules.read(kinds, fragments=fragments, progress=progress)


FOLDER = "evidence"
AGAIN = "run `mzseek fit` again"
MANIFEST = Manifest("fitted evidence", EvidenceError, AGAIN, versions=(1,))
_BLOCKS, _WIDTH = "learned_from", 14
_CHANNEL = "channel"


def save_states(folder: Path, channels: Sequence[Channel], learned: Sequence[ChannelState]) -> None:
    """Write what each channel has learned, a file each, and sign the folder."""
    folder.mkdir()
    for place, (channel, each) in enumerate(zip(channels, learned, strict=True)):
        # safetensors know no texts: blocks go as the bytes that they are.
        blocks = np.frombuffer(each.blocks.astype(f"S{_WIDTH}").tobytes(), np.uint8)
        arrays = {name: np.ascontiguousarray(array) for name, array in each.arrays.items()}
        save_file(
            arrays | {_BLOCKS: blocks.reshape(-1, _WIDTH)},
            folder / _file(place, channel),
            # One entry: several would come in an order by chance, and bytes with them.
            metadata={"facts": json.dumps({_CHANNEL: channel.name, **each.facts})},
        )
    MANIFEST.write(folder, {})


def open_states(folder: Path, channels: Sequence[Channel]) -> list[ChannelState]:
    """What each channel has learned, as `save_states` wrote it.

    Raises
    ------
    EvidenceError
        A file is missing, damaged, changed, or of another channel.
    """
    MANIFEST.check_files(folder, MANIFEST.read(folder), checksums=True)
    return [_open(folder / _file(n, channel), channel) for n, channel in enumerate(channels)]


def _file(place: int, channel: Channel) -> str:
    return f"{place}-{channel.name}.safetensors"


def _open(path: Path, channel: Channel) -> ChannelState:
    try:
        arrays, metadata = read_arrays(path)
        facts = parse_object(metadata.get("facts", ""), path, EvidenceError, AGAIN)
    except ModelError as error:
        raise EvidenceError(f"{error}; {AGAIN}") from error
    blocks = arrays.pop(_BLOCKS, np.empty(0))
    if facts.pop(_CHANNEL, None) != channel.name or blocks.shape[1:] != (_WIDTH,):
        raise EvidenceError(f"{path}: is not what {channel.name} has learned; {AGAIN}")
    return ChannelState(arrays, facts, np.ascontiguousarray(blocks).view(f"S{_WIDTH}").reshape(-1))
