"""A fitted run, opened and applied to spectra and candidates of any origin."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.core.errors import EvidenceError
from mzseek.evidence.channel import FOLDER, Channel, ChannelState, open_states, read_once
from mzseek.evidence.queries import Lists
from mzseek.evidence.ranker import Ranker
from mzseek.evidence.registry import channel_from
from mzseek.io import StrPath
from mzseek.runs.run import Run


@dataclass(frozen=True, eq=False)
class Fitted:
    """Channels with what they learned, and the ranker that combines them.

    Attributes
    ----------
    channels : sequence of Channel
    learned : sequence of ChannelState
        What each of them has.
    ranker : Ranker
    """

    channels: Sequence[Channel]
    learned: Sequence[ChannelState]
    ranker: Ranker

    @classmethod
    def open(cls, run: Run | StrPath) -> "Fitted":
        """What `mzseek fit` has written.

        Raises
        ------
        RunError, EvidenceError
            It is no run, was trained and not fitted, or is damaged.
        """
        run = run if isinstance(run, Run) else Run.open(run)
        made = run.description.fitted
        if made is None:
            raise EvidenceError(
                f"{run.folder}: was trained, not fitted; `mzseek fit` takes it as a channel, "
                f"run:{run.folder}"
            )
        channels = [channel_from(each["name"], dict(each["options"])) for each in made.channels]
        ranker = Ranker.from_dict(made.ranker, run.path)
        if [channel.label for channel in channels] != list(ranker.features):
            raise EvidenceError(f"{run.path}: its ranker is of other channels than it names")
        for channel in channels:
            if tuple(channel.feature_names) != tuple(ranker.features[channel.label]):
                raise EvidenceError(
                    f"{run.path}: its ranker weighs other features of {channel.label} than there "
                    "are now; run `mzseek fit` again"
                )
        return cls(channels, open_states(run.folder / FOLDER, channels), ranker)

    def parts(self, lists: Lists) -> npt.NDArray[np.float32]:
        """What each channel adds to the score of each candidate: shape (rows, channels), nats."""
        read_once(self.channels, lists.molecules)
        features = [
            channel.features(learned, lists)
            for channel, learned in zip(self.channels, self.learned, strict=True)
        ]
        return self.ranker.parts(features, lists.modes, lists.counts)

    def scores(self, lists: Lists) -> npt.NDArray[np.float32]:
        """Score of each candidate: log-odds, in nats, against the average one of its list."""
        return score_of(self.parts(lists))

    def describe(self) -> dict[str, Any]:
        """The model of a run, as plain data."""
        return {
            "ranker": self.ranker.to_dict(),
            "channels": [
                {
                    "name": channel.name,
                    "label": channel.label,
                    "options": vars(channel.options),
                    "sees_spectrum": learned.facts.get("sees_spectrum", channel.sees_spectrum),
                }
                for channel, learned in zip(self.channels, self.learned, strict=True)
            ],
        }


def score_of(parts: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The score that parts add up to."""
    return np.asarray(parts.sum(1, dtype=np.float64), np.float32)
