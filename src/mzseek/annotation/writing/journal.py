"""The journal of a run: which features are finished, and how far each file had grown by then.

A process may be killed at any time. What it wrote after its last note in the journal is cut off,
and the next one goes on from there.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mzseek.annotation.features import Feature
from mzseek.errors import RunError

JOURNAL = "journal.jsonl"


class Journal:
    """Notes of finished features, in a folder where work is done.

    Parameters
    ----------
    folder : Path
    signature : str
        Of the run: inputs, options, versions. Notes of another run are refused.

    Attributes
    ----------
    features, spectra : int
        Finished so far.
    """

    def __init__(self, folder: Path, signature: str) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        self.features = self.spectra = 0
        self._done: Counter[str] = Counter()
        end = self._read(signature) if self.path.exists() else 0
        self._file = self.path.open("ab")
        self._file.truncate(end)
        if end == 0:
            self._note({"signature": signature})

    def was_done(self, feature: Feature) -> bool:
        """Whether an earlier process has finished a feature; each note counts for one."""
        key = _key(feature)
        if self._done[key] == 0:
            return False
        self._done[key] -= 1
        return True

    def note(self, feature: Feature, places: Mapping[str, int]) -> None:
        """Take down that a feature is finished, and how long each file is."""
        self.features += 1
        self.spectra += len(feature.spectra)
        self._note([_key(feature), len(feature.spectra), dict(places)])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _note(self, note: Any) -> None:
        self._file.write(json.dumps(note).encode() + b"\n")
        self._file.flush()

    def _read(self, signature: str) -> int:
        """Take in all notes that hold, and cut files to the last of them; returns where it ends."""
        with self.path.open("rb") as file:
            first = _parsed(file.readline())
            if not isinstance(first, dict):
                return 0
            if first.get("signature") != signature:
                raise RunError(
                    f"{self.folder}: was begun with other spectra, options or versions; "
                    "remove it, or run the command without --resume"
                )
            end = file.tell()
            places: dict[str, int] = {}
            for line in file:
                note = _parsed(line)
                if not isinstance(note, list) or not self._holds(note[2]):
                    break
                key, spectra, places = note
                self._done[key] += 1
                self.features += 1
                self.spectra += spectra
                end += len(line)
        for name in [*places] or [each.name for each in self._others()]:
            with (self.folder / name).open("ab") as grown:
                grown.truncate(places.get(name, 0))
        return end

    def _holds(self, places: Mapping[str, int]) -> bool:
        """Whether files are as long as a note says: after a power cut they may not be."""
        return all(
            (self.folder / name).is_file() and (self.folder / name).stat().st_size >= place
            for name, place in places.items()
        )

    def _others(self) -> list[Path]:
        return [each for each in self.folder.iterdir() if each.is_file() and each != self.path]


def _parsed(line: bytes) -> Any:
    """What a note says; None for one that was cut short."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None


def _key(feature: Feature) -> str:
    return f"{feature.where}\t{feature.name}"
