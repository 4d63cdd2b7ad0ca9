"""A user's own libraries lend their likeness: channels that can take in reference spectra do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mzseek.annotation.bundle.peaks import MOST_PEAKS, compact_ions, compact_peaks
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.known import Measured
from mzseek.library import Library
from mzseek.library.lists import Ions, Lists
from mzseek.ragged import pointers

Added = dict[str, dict[str, int]]


def lend(
    fitted: Fitted, libraries: Sequence[Library], most_peaks: int = MOST_PEAKS
) -> tuple[Fitted, Added]:
    """The same channels and ranker, with reference spectra of libraries taken in.

    Parameters
    ----------
    fitted : Fitted
        Stays as it is.
    libraries : sequence of Library
    most_peaks : int
        Of a spectrum: as those of the bundle were made compact.

    Returns
    -------
    Fitted, dict
        For each channel that takes in spectra, how many ``spectra`` and ``molecules`` are new to
        it, and how many molecules are ``left_out``.
    """
    more = measured(libraries, most_peaks)
    learned, added = list(fitted.learned), {}
    for place, (channel, own) in enumerate(zip(fitted.channels, fitted.learned, strict=True)):
        found = channel.extended(own, more) if len(more) else None
        if found is not None:
            learned[place] = found.learned
            added[channel.label] = {
                "spectra": found.spectra,
                "molecules": found.molecules,
                "left_out": found.left_out,
            }
    return replace(fitted, learned=learned), added


def measured(libraries: Sequence[Library], most_peaks: int = MOST_PEAKS) -> Measured:
    """Spectra of libraries, one library after the other, compact as those of a bundle."""
    empty = np.zeros(0)
    values, weights, precursors = [empty], [empty], [empty]
    counts, modes = [np.zeros(0, np.int64)], [np.zeros(0, np.int8)]
    molecule, smiles, blocks = [np.zeros(0, np.int64)], list[str](), list[str]()
    for library in libraries:
        peaks = compact_peaks(Lists._make(np.array(each) for each in library.peaks), most_peaks)
        ions = compact_ions(Ions._make(np.array(each) for each in library.ions))
        values.append(peaks.values)
        weights.append(peaks.weights)
        counts.append(np.diff(peaks.pointers))
        precursors.append(ions.precursors)
        modes.append(ions.modes)
        molecule.append(np.asarray(library.molecule_of, np.int64) + len(smiles))
        smiles += library.molecules["smiles"].to_pylist()
        blocks += [key[:BLOCK_LENGTH] for key in library.molecules["inchikey"].to_pylist()]
    return Measured(
        Lists(pointers(np.concatenate(counts)), np.concatenate(values), np.concatenate(weights)),
        Ions(np.concatenate(precursors), np.concatenate(modes)),
        np.concatenate(molecule),
        smiles,
        np.array(blocks, f"S{BLOCK_LENGTH}"),
    )


def lending_lines(added: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What the user should read about it.

    Examples
    --------
    >>> lending_lines({"analogs": {"spectra": 1200, "molecules": 300, "left_out": 0}})
    ['Your libraries add 1,200 spectra to analogs, with 300 new molecules.']
    """
    lines = []
    for label, own in added.items():
        line = (
            f"Your libraries add {_many(own['spectra'], 'spectrum', 'spectra')} to {label}, with "
            f"{_many(own['molecules'], 'new molecule', 'new molecules')}"
        )
        if own["left_out"]:
            others = _many(own["left_out"], "further molecule", "further molecules")
            line += f"; spectra of {others} are for matches only"
        lines.append(f"{line}.")
    return lines


def _many(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"
