"""Evidence channels, and the fitted model: channels with their states, and a ranker over them."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import EvidenceError, ModelError
from mzseek.core.registry import NoOptions
from mzseek.evidence import channel_from
from mzseek.evidence.queries import Ints, Keys, Molecules, Queries, ReferenceSpectra, TrainingSet
from mzseek.evidence.ranker import Ranker
from mzseek.io import StrPath
from mzseek.io.manifest import Manifest, parse_object
from mzseek.library import Library
from mzseek.parallel.engine import Progress, silent

if TYPE_CHECKING:
    from mzseek.runs.run import Run

Features = npt.NDArray[np.float32]
FOLDER = "evidence"
_AGAIN = "run `mzseek fit` again"
_MANIFEST = Manifest("fitted evidence", EvidenceError, _AGAIN, versions=(1,))
_KEYS, _KEY_LENGTH = "learned_from", 14


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
    """A channel state with more reference spectra."""

    state: ChannelState
    spectra: int  # how many are new; further spectra of known molecules are new spectra only
    molecules: int  # how many are new
    left_out: int  # molecules whose spectra were not added


class Channel(ABC):
    """One way to score a candidate against a spectrum.

    To add a channel, write one module with a subclass and its options dataclass, and one line in
    `mzseek.evidence.CHANNELS`. A subclass sets `name` and `feature_names` and implements `fit` and
    `features`.

    Parameters
    ----------
    options
        An instance of `options_type`; its defaults if left out.

    Attributes
    ----------
    name : str
        Key in the registry.
    kind : str
        Kind of evidence that results add it to: ``evidence`` (the spectrum itself), ``analogy``
        (reference spectra of other molecules) or ``prior`` (nothing of the spectrum).
    options_type : type
        A dataclass whose fields are made with `mzseek.core.registry.option`.
    pretrained : bool
        Whether it was trained elsewhere, so that it cannot be cross-fitted.
    reranks : bool
        Whether it is so slow that beside other channels it only scores a shortlist of theirs.
    sees_spectrum : bool
        Whether its features depend on the spectrum; those of a prior do not.
    needs_fragments : bool
        Whether it reads ``queries.molecules.fragments``, which are slow to enumerate.
    needs_fingerprints : tuple of str
        Kinds of fingerprint that it reads, in addition to that of the molecule table.
    feature_names : tuple of str
        One for each column that `features` returns.
    shapes : mapping of str to tuple of int
        Shapes of state arrays that do not depend on the training set; checked when a bundle is
        opened.

    Examples
    --------
    >>> class Length(Channel):
    ...     name, feature_names = "length", ("length",)
    ...
    ...     def fit(self, training_set, progress=silent):
    ...         return ChannelState(inchikey14=training_set.molecules_used)
    ...
    ...     def features(self, state, queries):
    ...         smiles = [queries.molecules.smiles[row] for row in queries.candidates]
    ...         return np.array([[len(text)] for text in smiles], np.float32)
    >>> from mzseek.spectra import Spectrum
    >>> spectrum = Spectrum(np.array([29.04]), np.array([1.0]), 47.05, "[M+H]+", 1, "a")
    >>> queries = Queries.of([spectrum], [["CCO", "CO"]])
    >>> Length().features(ChannelState(), queries).tolist()
    [[3.0], [2.0]]
    """

    name: ClassVar[str]
    kind: ClassVar[str] = "evidence"
    options_type: ClassVar[type] = NoOptions
    pretrained: ClassVar[bool] = False
    reranks: ClassVar[bool] = False
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
        """Fit the channel; the order of spectra, peaks and candidates must have no effect.

        The state must list the molecules it has learned from, `TrainingSet.molecules_used`.
        """

    @abstractmethod
    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Return features of the candidates, shape (``len(queries.candidates)``, feature names).

        Row i is about candidate ``queries.candidates[i]``, an index into ``queries.molecules``. It
        must not depend on other rows. Channels that use reference spectra must ignore those of
        ``queries.excluded_analogs``.
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


@dataclass(frozen=True, eq=False)
class EvidenceModel:
    """Channels, the state of each, and the ranker over their features."""

    channels: Sequence[Channel]
    states: Sequence[ChannelState]
    ranker: Ranker

    @classmethod
    def open(cls, run: "Run | StrPath") -> "EvidenceModel":
        """Open a run that `mzseek fit` has written.

        Raises
        ------
        RunError, EvidenceError
            It is no run, was trained and not fitted, or is damaged.
        """
        from mzseek.runs.run import Run

        run = run if isinstance(run, Run) else Run.open(run)
        fitted = run.description.fitted
        if fitted is None:
            raise EvidenceError(
                f"{run.folder}: was trained, not fitted; `mzseek fit` takes it as a channel, "
                f"run:{run.folder}"
            )
        channels = [
            channel_from(channel_fields["name"], dict(channel_fields["options"]))
            for channel_fields in fitted.channels
        ]
        ranker = Ranker.from_dict(fitted.ranker, run.path)
        try:
            ranker.check_channels(channels)
        except EvidenceError as error:
            raise EvidenceError(f"{run.path}: {error}; {_AGAIN}") from error
        return cls(channels, open_states(run.folder / FOLDER, channels), ranker)

    def contributions(self, queries: Queries) -> npt.NDArray[np.float32]:
        """Log-odds that each channel adds to each candidate's score, shape (rows, channels)."""
        precompute(self.channels, queries.molecules)
        features = self.features(queries, queries.modes, queries.counts)
        return self.ranker.contributions(features, queries.modes, queries.counts)

    def features(
        self, queries: Queries, modes: npt.NDArray[np.integer], counts: Ints
    ) -> list[Features]:
        """Features of all channels; 0 where a channel that re-ranks does not score a candidate.

        ``modes`` and ``counts`` are those of the lists that are ranked, which may each be several
        consecutive lists of the queries.
        """
        fitted = list(zip(self.channels, self.states, strict=True))
        first = len(fitted) if self.ranker.first is None else len(self.ranker.first.features)
        features = [channel.features(state, queries) for channel, state in fitted[:first]]
        if first < len(fitted):
            inside = self.ranker.shortlist(features, modes, counts)
            short = queries.keep(inside)
            for channel, state in fitted[first:]:
                features.append(spread_out(channel.features(state, short), inside))
        return features

    @property
    def first_stage(self) -> "EvidenceModel":
        """The model without channels that re-rank."""
        if self.ranker.first is None:
            return self
        number = len(self.ranker.first.features)
        return EvidenceModel(self.channels[:number], self.states[:number], self.ranker.first)

    def scores(self, queries: Queries) -> npt.NDArray[np.float32]:
        """Log-odds of each candidate against the average one of its list."""
        return total_scores(self.contributions(queries))

    def describe(self) -> dict[str, Any]:
        """The model section of ``run.json``, as plain data."""
        return {
            "ranker": self.ranker.to_dict(),
            "channels": [
                {
                    "name": channel.name,
                    "label": channel.label,
                    "options": vars(channel.options),
                    "sees_spectrum": state.metadata.get("sees_spectrum", channel.sees_spectrum),
                }
                for channel, state in zip(self.channels, self.states, strict=True)
            ],
        }


def spread_out(features: Features, inside: npt.NDArray[np.bool_]) -> Features:
    """Features of some rows in the places of all, 0 elsewhere."""
    values = np.zeros((len(inside), features.shape[1]), np.float32)
    values[inside] = features
    return values


def total_scores(contributions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Sum the contributions of all channels."""
    return np.asarray(contributions.sum(1, dtype=np.float64), np.float32)


def save_states(folder: Path, channels: Sequence[Channel], states: Sequence[ChannelState]) -> None:
    """Write the state of each channel to a file of its own, and a manifest."""
    from safetensors.numpy import save_file

    folder.mkdir()
    for number, (channel, state) in enumerate(zip(channels, states, strict=True)):
        # safetensors has no strings: InChIKey blocks are stored as bytes.
        keys = np.frombuffer(state.inchikey14.astype(f"S{_KEY_LENGTH}").tobytes(), np.uint8)
        arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
        save_file(
            arrays | {_KEYS: keys.reshape(-1, _KEY_LENGTH)},
            folder / _file_name(number, channel),
            # One entry: several would be written in no fixed order.
            metadata={"facts": json.dumps({"channel": channel.name, **state.metadata})},
        )
    _MANIFEST.write(folder, {})


def open_states(folder: Path, channels: Sequence[Channel]) -> list[ChannelState]:
    """Open the states that `save_states` wrote.

    Raises
    ------
    EvidenceError
        A file is missing, damaged, changed, or of another channel.
    """
    from mzseek.runs.checkpoints import read_arrays

    _MANIFEST.check_files(folder, _MANIFEST.read(folder), checksums=True)
    states = []
    for number, channel in enumerate(channels):
        path = folder / _file_name(number, channel)
        try:
            arrays, stored = read_arrays(path)
            metadata = parse_object(stored.get("facts", ""), path, EvidenceError, _AGAIN)
        except ModelError as error:
            raise EvidenceError(f"{error}; {_AGAIN}") from error
        keys = arrays.pop(_KEYS, np.empty(0))
        if metadata.pop("channel", None) != channel.name or keys.shape[1:] != (_KEY_LENGTH,):
            raise EvidenceError(f"{path}: is no state of the channel {channel.name}; {_AGAIN}")
        keys = np.ascontiguousarray(keys).view(f"S{_KEY_LENGTH}").reshape(-1)
        states.append(ChannelState(arrays, metadata, keys))
    return states


def _file_name(number: int, channel: Channel) -> str:
    return f"{number}-{channel.name}.safetensors"
