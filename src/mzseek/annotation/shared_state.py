"""Channels extended by the user's libraries, and the folder that hands them to workers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mzseek.annotation.sources import ListedSource, open_described, save_described
from mzseek.bundle.bundle import MAX_PEAKS, compact_ions, compact_peaks
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.ragged import pointers
from mzseek.core.text import pluralize
from mzseek.evidence.model import EvidenceModel, open_states, save_states
from mzseek.evidence.queries import ReferenceSpectra
from mzseek.library import Library
from mzseek.library.similarity import PeakLists, PrecursorIons

Added = dict[str, dict[str, int]]


def extend_channels(
    fitted: EvidenceModel, libraries: Sequence[Library], max_peaks: int = MAX_PEAKS
) -> tuple[EvidenceModel, Added]:
    """Return the same channels and ranker, extended by the reference spectra of libraries.

    Spectra are made as compact as those of the bundle, with `max_peaks` each.

    Returns
    -------
    EvidenceModel, dict
        For each channel that takes in spectra, how many ``spectra`` and ``molecules`` are new to
        it, and how many molecules are ``left_out``.
    """
    more = library_spectra(libraries, max_peaks)
    states, added = list(fitted.states), {}
    for index, channel in enumerate(fitted.channels):
        extended = channel.extend(states[index], more) if len(more) else None
        if extended is not None:
            states[index] = extended.state
            added[channel.label] = {
                "spectra": extended.spectra,
                "molecules": extended.molecules,
                "left_out": extended.left_out,
            }
    return replace(fitted, states=states), added


def library_spectra(libraries: Sequence[Library], max_peaks: int = MAX_PEAKS) -> ReferenceSpectra:
    """Return the spectra of libraries, one after the other, compact as those of a bundle."""
    peaks = [
        compact_peaks(PeakLists._make(map(np.array, library.peaks)), max_peaks)
        for library in libraries
    ]
    ions = [compact_ions(PrecursorIons._make(map(np.array, library.ions))) for library in libraries]
    before = np.cumsum([0, *(len(library.molecules) for library in libraries)])
    molecules = [
        np.asarray(library.molecule_of, np.int64) + offset
        for library, offset in zip(libraries, before, strict=False)
    ]
    keys = [key for library in libraries for key in library.molecules["inchikey"].to_pylist()]
    return ReferenceSpectra(
        PeakLists(
            pointers(_joined([np.diff(part.pointers) for part in peaks], np.int64)),
            _joined([part.values for part in peaks], np.float64),
            _joined([part.weights for part in peaks], np.float64),
        ),
        PrecursorIons(
            _joined([part.precursors for part in ions], np.float64),
            _joined([part.modes for part in ions], np.int8),
        ),
        _joined(molecules, np.int64),
        [smiles for library in libraries for smiles in library.molecules["smiles"].to_pylist()],
        np.array([key[:BLOCK_LENGTH] for key in keys], f"S{BLOCK_LENGTH}"),
    )


def _joined(arrays: Sequence[Any], dtype: Any) -> Any:
    return np.concatenate([np.zeros(0, dtype), *arrays])


def extension_lines(added: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return lines about what libraries have added to channels.

    Examples
    --------
    >>> extension_lines({"analogs": {"spectra": 1200, "molecules": 300, "left_out": 0}})
    ['Your libraries add 1,200 spectra to analogs, with 300 new molecules.']
    """
    lines = []
    for label, counts in added.items():
        spectra = pluralize(counts["spectra"], "spectrum", "spectra")
        molecules = pluralize(counts["molecules"], "new molecule", "new molecules")
        line = f"Your libraries add {spectra} to {label}, with {molecules}"
        if counts["left_out"]:
            others = pluralize(counts["left_out"], "further molecule", "further molecules")
            line += f"; spectra of {others} are for matches only"
        lines.append(f"{line}.")
    return lines


_STATES, _ADDED = "evidence", "added.json"


@dataclass(frozen=True)
class SharedState:
    """A folder with what one process has made and the others need not make again."""

    folder: Path

    def save(self, source: ListedSource | None, fitted: EvidenceModel, added: Added) -> None:
        """Write described candidates, and the states of extended channels, if there are any."""
        if source is not None:
            save_described(self.folder, source)
        if added:
            extended = [
                (channel, state)
                for channel, state in zip(fitted.channels, fitted.states, strict=True)
                if channel.label in added
            ]
            channels, states = zip(*extended, strict=True)
            save_states(self.folder / _STATES, channels, states)
            (self.folder / _ADDED).write_text(json.dumps(added), encoding="utf-8")

    def source(self) -> ListedSource:
        """Return the candidates that were described."""
        return open_described(self.folder)

    def extend(self, fitted: EvidenceModel) -> tuple[EvidenceModel, Added]:
        """Return the channels with the states that `save` has written."""
        if not (self.folder / _ADDED).is_file():
            return fitted, {}
        added: Added = json.loads((self.folder / _ADDED).read_text(encoding="utf-8"))
        channels = [channel for channel in fitted.channels if channel.label in added]
        opened = dict(zip(added, open_states(self.folder / _STATES, channels), strict=True))
        states = [
            opened.get(channel.label, state)
            for channel, state in zip(fitted.channels, fitted.states, strict=True)
        ]
        return replace(fitted, states=states), added
