"""Molecules besides those that the database returns: of library matches, and for comparison."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.annotation.answers import Reference
from mzseek.annotation.asking.ask import Asked, can_be, can_form
from mzseek.annotation.asking.ions import Hypothesis
from mzseek.annotation.candidates.source import Molecule
from mzseek.annotation.candidates.store import molecules_of_table
from mzseek.annotation.confidence import Confidence
from mzseek.annotation.levels import LEAST_MATCHED, LEAST_SIMILARITY
from mzseek.annotation.references import Neighbours
from mzseek.annotation.scoring import Scored, score
from mzseek.evidence.fitted import Fitted

LIBRARY_SOURCE = "library"  # the source of a candidate that a reference spectrum brought in
LEAST_PEAKS_TO_JOIN = 3  # matching peaks of a reference spectrum whose molecule is reported
BACKGROUND = 32  # molecules that a short list is compared with, its own candidates included
_NAME_LENGTH = 80


class MoleculesByMass(Protocol):
    """The bundled molecules, sorted by mass."""

    @property
    def masses(self) -> npt.NDArray[np.float64]:
        """Rising."""

    def rows(self, rows: npt.NDArray[np.integer]) -> pa.Table:
        """Return the molecules at these places."""


def joins_candidates(match: Reference) -> bool:
    """Return whether a reference spectrum matches well enough to make its molecule a candidate."""
    return (
        match.similarity >= LEAST_SIMILARITY
        and match.peaks >= LEAST_PEAKS_TO_JOIN
        and match.matched_intensity >= LEAST_MATCHED
    )


def add_library_candidates(query: Asked, near: Neighbours) -> Asked:
    """Add the molecules of matching reference spectra that the database did not return.

    Parameters
    ----------
    query : Asked
    near : Neighbours
        Reference spectra of the same precursor m/z.

    Returns
    -------
    Asked
        The same object if there is nothing to add. Added molecules have the source ``library``.
    """
    known = {molecule.key for own in query.molecules for molecule in own}
    extra: dict[Hypothesis, list[Molecule]] = {}
    for key, match in near.matches.items():
        if key in known or not joins_candidates(match):
            continue
        if query.formula and match.formula != query.formula:
            continue
        molecule = Molecule(
            match.smiles, key, match.formula, match.mass, match.name, (LIBRARY_SOURCE,)
        )
        reading = next((each for each in query.hypotheses if can_be(molecule, each)), None)
        if reading is not None:
            extra.setdefault(reading, []).append(molecule)
    if not extra:
        return query
    found = dict(zip(query.readings, query.molecules, strict=False))
    readings = [reading for reading in query.hypotheses if found.get(reading) or reading in extra]
    lists = [
        sorted([*found.get(reading, ()), *extra.get(reading, ())], key=lambda m: m.key)
        for reading in readings
    ]
    total = sum(map(len, extra.values()))
    note = (
        f"{_named(next(iter(extra.values()))[0])} is a candidate because a reference spectrum of "
        "it matches; the database does not hold it"
        if total == 1
        else f"{total} candidates come from matching reference spectra; the database does not "
        "hold them"
    )
    return replace(
        query, readings=tuple(readings), molecules=tuple(lists), found=query.found + total,
        notes=(*query.notes, note),
    )  # fmt: skip


def unlisted_match(query: Asked, near: Neighbours) -> Reference | None:
    """Return the best matching reference spectrum whose molecule is no candidate, if any.

    Its molecule must be able to form an ion that was tried, and it must be more similar than the
    reference spectra of all candidates.
    """
    known = {molecule.key for own in query.molecules for molecule in own}
    own = max((near.similar.get(key, 0.0) for key in known), default=0.0)
    for key, match in near.matches.items():
        if key in known or not joins_candidates(match) or match.similarity <= own:
            continue
        molecule = Molecule(match.smiles, key, match.formula, match.mass)
        if any(can_be(molecule, reading) for reading in query.hypotheses):
            return match
    return None


def unlisted_note(match: Reference) -> str:
    """Say that a reference spectrum of a molecule outside the list matches."""
    name = _named_reference(match)
    return (
        f"a reference spectrum of {name} matches at {match.similarity:.2f}; {name} is not in "
        "your list"
    )


def background_of(
    query: Asked,
    store: MoleculesByMass,
    place: int = 0,
    *,
    without: str = "",
    most: int = BACKGROUND,
) -> Asked | None:
    """Return bundled molecules to compare the scores of the candidates of one ion with.

    A list of one candidate says nothing about how well a wrong molecule would score. The
    background holds the bundled molecules of the same mass that are no candidates, so that one
    which fits better shows, and fills short lists up to `BACKGROUND` with those nearest in mass.

    Parameters
    ----------
    query : Asked
    store : MoleculesByMass
    place : int
        Of the adduct hypothesis among the readings of the query.
    without : str
        InChIKey (first block) of a molecule to leave out.
    most : int
        Molecules of the same mass, and of candidates and background together, at the most.

    Returns
    -------
    Asked or None
        The same feature with background molecules in the place of its candidates; None where
        there are none.
    """
    if not len(store.masses):
        return None
    known = {molecule.key for own in query.molecules for molecule in own} | {without}
    reading = query.readings[place]
    number = max(most - len(query.molecules[place]), 0)
    molecules = _nearest(store, reading, number, most, known)
    if not molecules:
        return None
    return replace(query, readings=(reading,), molecules=(molecules,), found=len(molecules))


def count_same_mass(background: Asked | None) -> int:
    """Return how many molecules of a background have the mass of the candidates."""
    if background is None:
        return 0
    [reading], [molecules] = background.readings, background.molecules
    return sum(abs(each.mass - reading.mass) <= reading.reach for each in molecules)


def score_backgrounds(
    backgrounds: Sequence[Asked | None], fitted: Fitted, confidence: Confidence, fingerprint: str
) -> list[Scored | None]:
    """Score the background of each query; None where there is none."""
    full = [each for each in backgrounds if each is not None]
    scored = iter(score(full, fitted, confidence, fingerprint)[0])
    return [None if each is None else next(scored) for each in backgrounds]


def _nearest(
    store: MoleculesByMass, reading: Hypothesis, number: int, most: int, known: set[str]
) -> list[Molecule]:
    """Return the molecules of a mass, and of the nearest masses up to a number, not the known."""
    mass, masses = reading.mass, store.masses
    low, high = np.searchsorted(masses, [mass - reading.reach, mass + reading.reach])
    around = number + len(known) if number else 0
    rows = np.arange(max(low - around, 0), min(high + around, len(masses)))
    away = np.abs(masses[rows] - mass)
    order = np.argsort(away, kind="stable")
    found: dict[str, Molecule] = {}
    for molecule in molecules_of_table(store.rows(rows[order])):
        is_same_mass = abs(molecule.mass - mass) <= reading.reach
        if len(found) >= (most if is_same_mass else number):
            break
        if molecule.key not in known and can_form(molecule, reading):
            found.setdefault(molecule.key, replace(molecule, row=-1))
    return list(found.values())


def _named(molecule: Molecule) -> str:
    return (molecule.name or molecule.smiles)[:_NAME_LENGTH]


def _named_reference(match: Reference) -> str:
    return (match.name or match.smiles)[:_NAME_LENGTH]
