"""Channels extended by the user's libraries, and the folder that hands them to workers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mzseek.annotation.sources import ListedSource, open_described, save_described
from mzseek.bundle.bundle import MOST_PEAKS, compact_ions, compact_peaks
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.ragged import pointers
from mzseek.evidence.model import EvidenceModel, open_states, save_states
from mzseek.evidence.queries import ReferenceSpectra
from mzseek.library import Library
from mzseek.library.similarity import PeakLists, PrecursorIons

Added = dict[str, dict[str, int]]


def extend_channels(
    fitted: EvidenceModel, libraries: Sequence[Library], most_peaks: int = MOST_PEAKS
) -> tuple[EvidenceModel, Added]:
    """Return the same channels and ranker, extended by the reference spectra of libraries.

    Parameters
    ----------
    fitted : EvidenceModel
        Stays as it is.
    libraries : sequence of Library
    most_peaks : int
        Of a spectrum: as those of the bundle were made compact.

    Returns
    -------
    EvidenceModel, dict
        For each channel that takes in spectra, how many ``spectra`` and ``molecules`` are new to
        it, and how many molecules are ``left_out``.
    """
    more = library_spectra(libraries, most_peaks)
    states, added = list(fitted.states), {}
    for place, (channel, own) in enumerate(zip(fitted.channels, fitted.states, strict=True)):
        found = channel.extend(own, more) if len(more) else None
        if found is not None:
            states[place] = found.state
            added[channel.label] = {
                "spectra": found.spectra,
                "molecules": found.molecules,
                "left_out": found.left_out,
            }
    return replace(fitted, states=states), added


def library_spectra(libraries: Sequence[Library], most_peaks: int = MOST_PEAKS) -> ReferenceSpectra:
    """Return the spectra of libraries, one library after the other, compact as those of a bundle."""
    empty = np.zeros(0)
    values, weights, precursors = [empty], [empty], [empty]
    counts, modes = [np.zeros(0, np.int64)], [np.zeros(0, np.int8)]
    molecule, smiles, blocks = [np.zeros(0, np.int64)], list[str](), list[str]()
    for library in libraries:
        peaks = compact_peaks(PeakLists._make(np.array(each) for each in library.peaks), most_peaks)
        ions = compact_ions(PrecursorIons._make(np.array(each) for each in library.ions))
        values.append(peaks.values)
        weights.append(peaks.weights)
        counts.append(np.diff(peaks.pointers))
        precursors.append(ions.precursors)
        modes.append(ions.modes)
        molecule.append(np.asarray(library.molecule_of, np.int64) + len(smiles))
        smiles += library.molecules["smiles"].to_pylist()
        blocks += [key[:BLOCK_LENGTH] for key in library.molecules["inchikey"].to_pylist()]
    return ReferenceSpectra(
        PeakLists(
            pointers(np.concatenate(counts)), np.concatenate(values), np.concatenate(weights)
        ),
        PrecursorIons(np.concatenate(precursors), np.concatenate(modes)),
        np.concatenate(molecule),
        smiles,
        np.array(blocks, f"S{BLOCK_LENGTH}"),
    )


def extension_lines(added: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return lines about what libraries have added to channels.

    Examples
    --------
    >>> extension_lines({"analogs": {"spectra": 1200, "molecules": 300, "left_out": 0}})
    ['Your libraries add 1,200 spectra to analogs, with 300 new molecules.']
    """
    lines = []
    for label, own in added.items():
        line = (
            f"Your libraries add {_counted(own['spectra'], 'spectrum', 'spectra')} to {label}, with "
            f"{_counted(own['molecules'], 'new molecule', 'new molecules')}"
        )
        if own["left_out"]:
            others = _counted(own["left_out"], "further molecule", "further molecules")
            line += f"; spectra of {others} are for matches only"
        lines.append(f"{line}.")
    return lines


def _counted(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"


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
