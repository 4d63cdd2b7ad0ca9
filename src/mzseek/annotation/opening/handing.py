"""What takes long to make is made once, and handed to other processes: plain arrays in files.

Candidates of a file that are described, and what channels have taken in of a user's libraries. The
folder is made by this process for its own workers, and nothing in it is ever unpickled.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from mzseek.annotation.candidates.described import open_described, save_described
from mzseek.annotation.candidates.listed import ListedSource
from mzseek.annotation.opening.lending import Added
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.states import open_states, save_states

_STATES, _ADDED = "evidence", "added.json"


@dataclass(frozen=True)
class Handed:
    """A folder with what was made.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    def put(self, source: ListedSource | None, fitted: Fitted, added: Added) -> None:
        """Write described candidates, and what channels have taken in, if there are any."""
        if source is not None:
            save_described(self.folder, source)
        if added:
            own = [place for place, each in enumerate(fitted.channels) if each.label in added]
            save_states(
                self.folder / _STATES,
                [fitted.channels[place] for place in own],
                [fitted.learned[place] for place in own],
            )
            (self.folder / _ADDED).write_text(json.dumps(added), encoding="utf-8")

    def source(self) -> ListedSource:
        """The candidates that were described."""
        return open_described(self.folder)

    def lent(self, fitted: Fitted) -> tuple[Fitted, Added]:
        """The channels with what they have taken in, as `put` was given it."""
        if not (self.folder / _ADDED).is_file():
            return fitted, {}
        added: Added = json.loads((self.folder / _ADDED).read_text(encoding="utf-8"))
        own = [channel for channel in fitted.channels if channel.label in added]
        opened = dict(zip(added, open_states(self.folder / _STATES, own), strict=True))
        learned = [
            opened.get(channel.label, known)
            for channel, known in zip(fitted.channels, fitted.learned, strict=True)
        ]
        return replace(fitted, learned=learned), added
