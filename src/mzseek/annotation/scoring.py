"""Features and candidates to scores: all channels asked, all spectra of a feature added up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mzseek.annotation.asking.ask import Asked
from mzseek.annotation.asking.ions import with_ion
from mzseek.annotation.confidence import Confidence
from mzseek.annotation.features import Feature
from mzseek.annotation.in_database import CHANNELS, ListEvidence
from mzseek.chem.ions import net_charge, takes_charged
from mzseek.evidence.channel import read_once
from mzseek.evidence.fitted import Fitted
from mzseek.evidence.lists import Lists
from mzseek.evidence.molecules import Index, Indexed, Molecules
from mzseek.fragments import explained_pairs, ion_forms, peak_table
from mzseek.ragged import Ragged, pointers
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_PIECES = "fragments"


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of a feature's candidates, those of the first reading first.

    Attributes
    ----------
    parts : float64 array, shape (candidates, channels)
        What each channel adds, in nats, all spectra together.
    ion : float64 array, shape (candidates,)
        Log of how common the ion is, against the others that were tried; 0 where there is one.
    absolute : float64 array, shape (candidates, channels)
        The same sums, not centred on the list: comparable between lists of any length.
    explained : float64 array, shape (candidates,)
        Share of the intensity that pieces explain, the mean over spectra.
    peaks : int64 array, shape (candidates,)
        Peaks that are explained, of the spectrum in which these are most.
    rows : int64 array, shape (candidates,)
        Places of the candidates in the table of molecules.
    weight : float
        What the sums over spectra are multiples of: spectra × dependence factor.
    """

    parts: Floats
    ion: Floats
    absolute: Floats
    explained: Floats
    peaks: Ints
    rows: Ints
    weight: float = 1.0

    @property
    def scores(self) -> Floats:
        """Log-odds against the average candidate."""
        return np.asarray(self.parts.sum(1) + self.ion)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Features laid out as lists: for each spectrum one list a reading, one after the other."""

    lists: Lists
    union: Ints  # candidates of each spectrum of each feature, all readings together
    spectra: Ints  # spectra of each feature


def score(
    asked: Sequence[Asked],
    fitted: Fitted,
    confidence: Confidence,
    fingerprint: str,
    index: Index | None = None,
) -> tuple[list[Scored], Molecules]:
    """Scores of the candidates of features; each must have some.

    What is said of a feature depends on no other.

    Parameters
    ----------
    asked : sequence of Asked
    fitted : Fitted
    confidence : Confidence
        For how far spectra of a feature are dependent, and how common ions are.
    fingerprint : str
        Kind that the model reads of candidates.
    index : Index, optional
        What was read before of the store that all candidates are from.

    Returns
    -------
    list of Scored, and the Molecules that `Scored.rows` are places in
    """
    layout = _laid_out(asked, fingerprint, index)
    lists, union = layout.lists, layout.union
    read_once(fitted.channels, lists.molecules)
    features = [
        channel.features(learned, lists)
        for channel, learned in zip(fitted.channels, fitted.learned, strict=True)
    ]
    # Lists of one spectrum lie side by side, so that all of its readings can be ranked as one.
    modes = np.repeat(
        [_mode(each) for each in asked], [len(each.feature.spectra) for each in asked]
    )
    parts = fitted.ranker.parts(features, modes, union).astype(np.float64)
    absolute = fitted.ranker.parts(features, modes, union, centred=False).astype(np.float64)
    explained, peaks = _explained(lists, fitted)
    found, start, first = [], 0, 0
    for each, number in zip(asked, layout.spectra, strict=True):
        size = int(union[first])
        shape = (int(number), size)
        own = slice(start, start + size * int(number))
        factor = confidence.of(_mode(each)).pooling.factor([number])[0]
        # Sorted before they are added: no order of spectra shows, to the last bit.
        sums, sums_absolute = (
            np.sort(values[own].reshape(*shape, -1), axis=0).sum(0) * factor
            for values in (parts, absolute)
        )
        found.append(
            Scored(
                sums,
                _ion_priors(each, confidence),
                sums_absolute,
                np.sort(explained[own].reshape(shape), axis=0).mean(0),
                peaks[own].reshape(shape).max(0),
                lists.candidates[own][:size],
                float(number * factor),
            )
        )
        start, first = own.stop, first + int(number)
    return found, lists.molecules


def _laid_out(asked: Sequence[Asked], fingerprint: str, index: Index | None) -> _Layout:
    # Molecules that an index has read come first in the table, the others after them.
    row_of = {m.smiles: m.row for each in asked for own in each.molecules for m in own}
    table_order = sorted(row_of, key=lambda smiles: row_of[smiles] < 0)
    place = {smiles: at for at, smiles in enumerate(table_order)}
    members: list[int] = []
    sizes: list[int] = []
    spectra: list[Spectrum] = []
    list_of: list[int] = []
    union: list[int] = []
    for each in asked:
        own = []
        for molecules in each.molecules:
            own.append(len(sizes))
            sizes.append(len(molecules))
            members += [place[molecule.smiles] for molecule in molecules]
        for number, spectrum in enumerate(each.feature.spectra):
            for reading, each_list in zip(each.readings, own, strict=True):
                spectra.append(with_ion(spectrum, reading.adducts[number]))
                list_of.append(each_list)
            union.append(each.kept)
    indexed = None
    if index is not None:
        rows = [row for row in map(row_of.__getitem__, table_order) if row >= 0]
        indexed = Indexed(index, np.array(rows, np.int64))
    table = Molecules(table_order, fingerprint, jobs=1, indexed=indexed)
    lists = Lists(
        spectra,
        np.array(list_of, np.int64),
        pointers(sizes),
        np.array(members, np.int64),
        table,
        known_are_matches=True,
    )
    numbers = np.array([len(each.feature.spectra) for each in asked], np.int64)
    return _Layout(lists, np.array(union, np.int64), numbers)


def _mode(asked: Asked) -> int:
    return -1 if asked.readings[0].adduct.endswith("-") else 1


def _ion_priors(asked: Asked, confidence: Confidence) -> Floats:
    """Log of how common each candidate's ion is; nothing where only one was tried.

    A molecule with a permanent charge can be no other ion than the one that it is.
    """
    if len(asked.tried) == 1:
        return np.zeros(asked.kept)
    own = confidence.of(_mode(asked))
    shares = {adduct: own.ion_prior(adduct) for adduct in asked.tried}
    total = sum(shares.values())
    return np.array(
        [
            0.0
            if takes_charged(reading.adduct) and net_charge(molecule.smiles)
            else np.log(shares[reading.adduct] / total)
            for reading, molecules in zip(asked.readings, asked.molecules, strict=True)
            for molecule in molecules
        ]
    )


def _explained(lists: Lists, fitted: Fitted) -> tuple[Floats, Ints]:
    """Share of intensity, and number of peaks, that each candidate's pieces explain."""
    forms = [ion_forms(str(spectrum.adduct)) for spectrum in lists.spectra]
    peaks = peak_table(lists.spectra, forms, **tolerance_of(fitted))
    pairs = explained_pairs(
        peaks, lists.molecules.pieces, lists.candidates, lists.counts, threads=1
    )
    rows = lists.ragged.total
    # Shares are of square roots of intensities.
    squares = peaks.shares**2
    totals = Ragged(np.diff(peaks.starts))
    sums = np.ones(len(totals))
    filled = totals.counts > 0
    sums[filled] = np.add.reduceat(squares, totals.starts[filled]) if filled.any() else 1.0
    share = squares / np.repeat(sums, totals.counts)
    explained = np.bincount(pairs.row, share[pairs.peak], minlength=rows)
    return np.asarray(explained, np.float64), np.bincount(pairs.row, minlength=rows)


def best_ion(query: Asked, scored: Scored) -> tuple[int, Ints]:
    """Return the adduct hypothesis of the best candidate, and the rows of its candidates.

    Whether the molecule is in the database is judged among the candidates of one ion: those of
    rarer ions have lower scores whatever their structure, and would flatter the best one.
    """
    reading = np.repeat(np.arange(len(query.molecules)), [len(own) for own in query.molecules])
    best = int(reading[np.argmax(scored.absolute.sum(1) + scored.ion)])
    return best, np.flatnonzero(reading == best)


def list_evidence(
    feature: Feature,
    scored: Scored,
    rows: Ints,
    background: Scored | None,
    channels: Sequence[str],
    nearest: float,
    same_mass: int,
) -> ListEvidence:
    """Gather what the scores of a list and of its background say about the whole list.

    Parameters
    ----------
    feature : Feature
    scored, background : Scored
        Of the candidates, and of molecules that they are compared with.
    rows : int64 array
        Candidates that count: those of one ion.
    channels : sequence of str
        Labels, in the order of the columns of `Scored.absolute`.
    nearest : float
        Similarity of the nearest reference spectrum.
    same_mass : int
        How many of the background molecules have the mass of the candidates.
    """
    empty = np.zeros(0)
    own = scored.absolute[rows] / max(scored.weight, 1e-12)
    columns = [
        own[:, list(channels).index(name)] if name in channels else np.zeros(len(own))
        for name in CHANNELS
    ]
    return ListEvidence(
        scores=scored.absolute.sum(1)[rows],
        explained=scored.explained[rows],
        channels=np.column_stack(columns),
        background=empty if background is None else background.absolute.sum(1),
        background_explained=empty if background is None else background.explained,
        nearest=nearest,
        peaks=float(np.mean([len(spectrum) for spectrum in feature.spectra])),
        same_mass=same_mass,
    )


def tolerance_of(fitted: Fitted) -> dict[str, Any]:
    """Tolerances of peaks, as the channel of fragments has them."""
    for channel in fitted.channels:
        if channel.name == _PIECES:
            return {"ppm": channel.options.ppm, "least": channel.options.least}
    return {}
