"""A fitted evidence model: channels with their states, and the ranker that combines them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from mzseek.core.errors import EvidenceError, ModelError
from mzseek.evidence.channel import Channel, ChannelState, precompute
from mzseek.evidence.queries import Queries
from mzseek.evidence.ranker import Ranker
from mzseek.evidence.registry import channel_from
from mzseek.io import StrPath
from mzseek.io.manifest import Manifest, parse_object
from mzseek.runs.checkpoints import read_arrays
from mzseek.runs.run import Run

FOLDER = "evidence"
_AGAIN = "run `mzseek fit` again"
_MANIFEST = Manifest("fitted evidence", EvidenceError, _AGAIN, versions=(1,))
_KEYS, _KEY_LENGTH = "learned_from", 14


@dataclass(frozen=True, eq=False)
class EvidenceModel:
    """Channels, the state of each, and the ranker over their features."""

    channels: Sequence[Channel]
    states: Sequence[ChannelState]
    ranker: Ranker

    @classmethod
    def open(cls, run: Run | StrPath) -> "EvidenceModel":
        """Open a run that `mzseek fit` has written.

        Raises
        ------
        RunError, EvidenceError
            It is no run, was trained and not fitted, or is damaged.
        """
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
        features = [
            channel.features(state, queries)
            for channel, state in zip(self.channels, self.states, strict=True)
        ]
        return self.ranker.contributions(features, queries.modes, queries.counts)

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


def total_scores(contributions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Sum the contributions of all channels."""
    return np.asarray(contributions.sum(1, dtype=np.float64), np.float32)


def save_states(folder: Path, channels: Sequence[Channel], states: Sequence[ChannelState]) -> None:
    """Write the state of each channel to a file of its own, and a manifest."""
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
