"""The result of annotating a feature: candidates, probabilities, evidence, level."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from rdkit.Chem import Mol, MolFragmentToSmiles

from mzseek.annotation.features import Feature
from mzseek.chem import parse_molecule
from mzseek.chem.depiction import structure
from mzseek.classes import CompoundClass
from mzseek.core.errors import AnnotationError, MzseekError
from mzseek.core.text import Table
from mzseek.formulas import RankedFormula
from mzseek.fragments import Explanation, explain
from mzseek.fragments.matching import LEAST, PPM
from mzseek.proposals.proposal import Proposal
from mzseek.spectra import Spectrum

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reference:
    """A reference spectrum that a candidate is credited with.

    Attributes
    ----------
    record : str
        Identifier of the spectrum in its library.
    smiles, name : str
        Its molecule; the name may be empty.
    similarity : float
        Of the two spectra, from 0 to 1.
    peaks : int
        Peaks that match.
    tanimoto : float
        Tanimoto similarity (morgan2) of its molecule with the candidate; 1 for the same molecule.
    contributor, licence, library : str
        Whose it is, under which licence, and where it was found; may be empty.
    adduct : str
    precursor_mz : float
    mz, intensities : float64 arrays
        The spectrum itself, for a mirror plot.
    formula : str
        Of its molecule.
    mass : float
        Monoisotopic mass of its molecule.
    matched_intensity : float
        Share of the intensity in matching peaks, precursor peaks left out: the lower of the
        shares of the two spectra.
    """

    record: str
    smiles: str
    name: str
    similarity: float
    peaks: int
    tanimoto: float
    contributor: str
    licence: str
    library: str
    adduct: str
    precursor_mz: float
    mz: Floats
    intensities: Floats
    formula: str = ""
    mass: float = 0.0
    matched_intensity: float = 1.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A molecule that may be behind a feature.

    Attributes
    ----------
    smiles, key, formula : str
        ``key`` is the first block of the InChIKey (InChIkey2D).
    mass : float
        Monoisotopic, of the neutral molecule.
    name : str
        Empty where the source gives none.
    adduct : str
        The ion that it would be.
    error_ppm : float
        Measured minus computed m/z of the precursor.
    score : float
        Log-odds (natural logarithm) against the average candidate.
    probability : float
        Calibrated, that this is the molecule, given that one of the candidates is.
    in_set : bool
        Whether it is in the prediction set.
    parts : tuple of float
        What each channel adds to the score, in the order of ``Annotation.channels``.
    explained : float
        Share of the intensity (of all spectra, precursor left out) that its fragments explain.
    peaks_explained : int
        Of the spectrum with the most peaks.
    sources, identifiers : tuple of str
        Where it was found, and its names there ("HMDB0000001").
    match : Reference or None
        A library spectrum of this very molecule that matches: another kind of evidence than the
        rest.
    analog : Reference or None
        The reference spectrum of another molecule that supports it most.
    peaks : tuple of tuples of Explanation
        Of each spectrum of the feature all peaks, with the fragments that explain them; empty
        where this was not computed with the scores (`Annotation.peaks_of` does it on demand).
    structure : mapping or None
        2D coordinates (`mzseek.chem.depiction.structure`), likewise.
    adducts : tuple of str
        Of each spectrum of the feature, where these are of several ions; else empty.
    """

    smiles: str
    key: str
    formula: str
    mass: float
    name: str
    adduct: str
    error_ppm: float
    score: float
    probability: float
    in_set: bool
    parts: tuple[float, ...]
    explained: float
    peaks_explained: int
    sources: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    match: Reference | None = None
    analog: Reference | None = None
    peaks: tuple[tuple[Explanation, ...], ...] = ()
    structure: Mapping[str, Any] | None = None
    adducts: tuple[str, ...] = ()


@dataclass(frozen=True)
class IonSupport:
    """What the spectra of one ion of a feature of several say alone.

    Attributes
    ----------
    adduct : str
        Under the hypothesis of the best candidate.
    spectra : int
    probability : float
        Of the best candidate, by the channels' scores of these spectra.
    preferred : str
        SMILES of the candidate that is the most probable by these spectra.
    preferred_name : str
        Its name; may be empty.
    preferred_probability : float
    """

    adduct: str
    spectra: int
    probability: float
    preferred: str
    preferred_name: str
    preferred_probability: float


@dataclass(frozen=True)
class Level:
    """How far an annotation goes, in the field's words.

    Attributes
    ----------
    number : str
        Of Schymanski et al. 2014: "2a", "3", "4" or "5"; never 1, which needs a standard.
    reason : str
        Why, in a sentence.
    formula : str
        Of level 4, where it rests on a formula without a database.
    """

    number: str
    reason: str
    formula: str = ""


@dataclass(frozen=True, eq=False)
class Annotation:
    """All that is said about a feature.

    Attributes
    ----------
    feature : Feature
    candidates : tuple of Candidate
        The most probable first; those after the first ``top`` may have been left out.
    found : int
        Molecules whose ion has the precursor's m/z, of all ions tried.
    scored : int
        How many of them were scored in full. Fewer than ``found`` where the list was capped.
    channels : tuple of str
        Names of what the score is made of.
    kinds : mapping of str to str
        Of each channel: "evidence" (the spectrum itself), "analogy" (other spectra), "match"
        (reference spectra of the candidate itself), "external" (other programs), "prior".
    ions : mapping of str to float
        Probability of each ion that was tried.
    coverage : float
        That the prediction set was made for.
    set_size : int
        Candidates in it.
    objective : str
        What ranks first is decided for: "hit", "tanimoto", "cosine", "bits" or "f1".
    choices : mapping of str to int
        For each objective the place in ``candidates`` of what it decides for.
    present : float or None
        Probability that the molecule is among the candidates at all; None where the model cannot
        say.
    nearest : float
        Similarity of the nearest reference spectrum of any molecule.
    unlike : bool
        Whether that is lower than of nearly all spectra that the model was tried on.
    matches : tuple of Reference
        Reference spectra of the same precursor m/z that match, of whatever molecule; best first.
    level : Level
    notes : tuple of str
        What the reader must know: a capped list, an ion that was guessed, peaks left out.
    removed : mapping of str to int
        Molecules of the right mass that cannot form the ion, by ion and reason.
    unlisted : Reference or None
        The best matching reference spectrum whose molecule is no candidate.
    mass_mismatches : int
        Candidates listed for the feature whose mass contradicts its precursor.
    ppm, least : float
        Tolerance of peaks that candidates were scored with: the larger of `ppm` of the m/z and
        `least`.
    processed : Feature or None
        The feature as it was scored, cleaned and with its masses recalibrated; None where nothing
        was done.
    unmatched_scores : tuple of str
        Molecules (first InChIKey block) with external scores that are no candidates.
    ion_support : tuple of IonSupport
        Of each ion, where the feature has several; else empty.
    expected : mapping of str to mapping of str to float
        Expected value by one objective (first key) of the decision for another (second key), given
        that one of the candidates is the molecule.
    compound_class : CompoundClass or None
        Superclass, class and subclass of the molecule, whether it is a candidate or not; None where
        the bundle has no model of classes.
    formulas : tuple of RankedFormula
        Formulas that it may have without a database, the most probable first.
    proposals : tuple of Proposal
        Structures that are no candidates, made of known molecules; the most probable first.
    nearest_reference : Reference or None
        The most similar reference spectrum of any molecule and precursor; None for none.
    """

    feature: Feature
    candidates: tuple[Candidate, ...]
    found: int
    scored: int
    channels: tuple[str, ...]
    kinds: Mapping[str, str]
    ions: Mapping[str, float]
    coverage: float
    set_size: int
    objective: str
    choices: Mapping[str, int]
    present: float | None
    nearest: float
    unlike: bool
    matches: tuple[Reference, ...]
    level: Level
    notes: tuple[str, ...] = field(default=())
    removed: Mapping[str, int] = field(default_factory=dict)
    unlisted: Reference | None = None
    mass_mismatches: int = 0
    ppm: float = PPM
    least: float = LEAST
    processed: Feature | None = None
    unmatched_scores: tuple[str, ...] = ()
    ion_support: tuple[IonSupport, ...] = ()
    expected: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    compound_class: CompoundClass | None = None
    formulas: tuple[RankedFormula, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    nearest_reference: Reference | None = None

    @property
    def best(self) -> Candidate | None:
        """What is decided for; None where there are no candidates."""
        if not self.candidates:
            return None
        return self.candidates[self.choices.get(self.objective, 0)]

    @property
    def confidence(self) -> float:
        """Probability that the annotation is right, in the database or not; 0 for none."""
        return 0.0 if self.best is None else self.confidence_of(self.best)

    def confidence_of(self, candidate: Candidate) -> float:
        """Return the probability that a candidate is the molecule, in the database or not."""
        return candidate.probability * (1.0 if self.present is None else self.present)

    def among_candidates(self, formula: RankedFormula) -> float | None:
        """Return the probability that the candidates give to a formula and ion; None for none.

        Among those that are listed, given that one of the candidates is the molecule.
        """
        if not self.candidates:
            return None
        return sum(
            candidate.probability
            for candidate in self.candidates
            if (candidate.formula, candidate.adduct) == (formula.formula, formula.adduct)
        )

    @cached_property
    def ranked(self) -> tuple[Candidate, ...]:
        """Candidates by rank: what is decided for, then the others by probability."""
        best = self.best
        if best is None:
            return ()
        return (best, *(candidate for candidate in self.candidates if candidate is not best))

    def candidate(self, rank: int = 1) -> Candidate:
        """Return the candidate of a rank, from 1; raise `AnnotationError` if there is none."""
        if not 1 <= rank <= len(self.ranked):
            have = f"1 to {len(self.ranked):,}" if self.ranked else "none: it has no candidates"
            raise AnnotationError(f"feature {self.feature.name}: rank is {rank}, expected {have}")
        return self.ranked[rank - 1]

    def peaks_of(self, candidate: Candidate | None) -> tuple[tuple[Explanation, ...], ...]:
        """Return the peaks of each spectrum, with the fragments of a candidate that explain them.

        Without a candidate no peak is explained. m/z are as measured, errors as recalibrated;
        removed peaks are not explained.
        """
        if candidate is not None and candidate.peaks:
            return candidate.peaks
        if self.processed is None:
            return explained_spectra(self.feature, candidate, self.ppm, self.least)
        explained = explained_spectra(self.processed, candidate, self.ppm, self.least)
        spectra = self.feature.spectra
        return tuple(map(_as_measured, spectra, explained, self.artefacts))

    @property
    def artefacts(self) -> tuple[tuple[str, ...], ...]:
        """Why each peak of each spectrum was removed before scoring; empty for the others."""
        if self.processed is not None and self.processed.artefacts:
            return self.processed.artefacts
        return tuple(("",) * len(spectrum) for spectrum in self.feature.spectra)

    def with_details(self, number: int) -> "Annotation":
        """Return it with peaks and structures of the first candidates by rank computed."""
        first = self.ranked[:number]
        if not first:
            return self
        candidates = tuple(
            replace(
                candidate, peaks=self.peaks_of(candidate), structure=structure(candidate.smiles)
            )
            if any(candidate is other for other in first)
            else candidate
            for candidate in self.candidates
        )
        return replace(self, candidates=candidates)

    def peaks(self, rank: int = 1) -> Any:
        """Annotate all peaks with fragments of the candidate of a rank.

        Returns
        -------
        pandas.DataFrame
            One row a peak: ``spectrum``, ``mz``, ``intensity``, ``relative`` (to the strongest peak
            of its spectrum), and of explained peaks ``formula``, ``error_ppm``, ``charge``,
            ``bonds`` broken, ``hydrogens`` moved and the ``fragment`` as SMILES; ``removed`` is why
            a peak was not scored. A feature without candidates has unexplained peaks only.

        Raises
        ------
        AnnotationError
            There is no candidate of this rank.
        """
        candidate = None if not self.candidates and rank == 1 else self.candidate(rank)
        fragments = FragmentSmiles(candidate)
        rows = [
            (spectrum, peak)
            for spectrum, peaks in zip(self.feature.spectra, self.peaks_of(candidate), strict=True)
            for peak in peaks
        ]
        copied = ("formula", "error_ppm", "charge", "bonds", "hydrogens")
        return Table(
            {
                "spectrum": [spectrum.identifier for spectrum, _ in rows],
                "mz": [peak.mz for _, peak in rows],
                "intensity": [peak.intensity for _, peak in rows],
                "relative": [peak.intensity / strongest(s.intensities) for s, peak in rows],
                **{name: [getattr(peak, name) for _, peak in rows] for name in copied},
                "fragment": [fragments.smiles(peak.atoms) or None for _, peak in rows],
                "removed": [peak.removed or None for _, peak in rows],
            }
        ).to_frame()

    def plot(self, rank: int = 1, *, mirror: bool = False) -> Any:
        """Draw the spectrum with the most peaks, and those that a candidate explains.

        Parameters
        ----------
        rank : int
            Of the candidate.
        mirror : bool
            Draw the candidate's reference spectrum below: its library match, else its analog.

        Returns
        -------
        matplotlib.figure.Figure, or Svg (a str) where matplotlib is not installed

        Raises
        ------
        AnnotationError
            There is no candidate of this rank, or no reference spectrum to mirror.
        """
        from mzseek.export.spectrum_plot import plot_annotation  # drawing is a layer above

        return plot_annotation(self, rank, mirror=mirror)

    def __repr__(self) -> str:
        best = self.best
        name = "no candidate" if best is None else f"{best.name or best.smiles} {best.adduct}"
        return (
            f"Annotation({self.feature.name!r}, {name}, confidence {self.confidence:.2f}, "
            f"level {self.level.number})"
        )

    def nats(self, candidate: Candidate, kind: str) -> float:
        """What the channels of a kind ("evidence", "analogy", "match", "prior") add to a score."""
        return float(
            sum(
                part
                for channel, part in zip(self.channels, candidate.parts, strict=True)
                if self.kinds[channel] == kind
            )
        )


def strongest(intensities: Floats) -> float:
    """Return the highest intensity; 1 where there is none above 0, for dividing by it."""
    return float(intensities.max(initial=0.0)) or 1.0


def explained_spectra(
    feature: Feature, candidate: Candidate | None, ppm: float, least: float
) -> tuple[tuple[Explanation, ...], ...]:
    """Return the peaks of each spectrum, with the fragment of a candidate that explains each best.

    A molecule or an ion that cannot be taken apart explains nothing.
    """

    def explained(index: int, spectrum: Spectrum) -> tuple[Explanation, ...]:
        if candidate is not None:
            with suppress(MzseekError):
                adduct = candidate.adducts[index] if candidate.adducts else candidate.adduct
                return tuple(
                    explain(spectrum, candidate.smiles, adduct=adduct or None, ppm=ppm, least=least)
                )
        nothing = (None, None, (), None, None, None, (), None, None)
        peaks = zip(spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True)
        return tuple(Explanation(mz, *nothing, intensity, 0.0, 0) for mz, intensity in peaks)

    return tuple(explained(index, spectrum) for index, spectrum in enumerate(feature.spectra))


def _as_measured(
    spectrum: Spectrum, explained: tuple[Explanation, ...], removed: tuple[str, ...]
) -> tuple[Explanation, ...]:
    """Return explained peaks under the m/z that were measured, and removed peaks among them."""
    kept = iter(explained)
    peaks = zip(spectrum.mz.tolist(), spectrum.intensities.tolist(), removed, strict=True)
    return tuple(
        Explanation(mz, intensity=intensity, removed=reason)
        if reason
        else next(kept)._replace(mz=mz)
        for mz, intensity, reason in peaks
    )


class FragmentSmiles:
    """Fragments of a candidate as SMILES, each written once."""

    def __init__(self, candidate: Candidate | None) -> None:
        self._molecule: Mol | None = None
        self._written: dict[tuple[int, ...], str] = {}
        if candidate is not None:
            with suppress(MzseekError):
                self._molecule = parse_molecule(candidate.smiles)

    def smiles(self, atoms: tuple[int, ...]) -> str:
        """Return the SMILES of some atoms of the candidate; empty where it cannot be read."""
        if self._molecule is None or not atoms:
            return ""
        if atoms not in self._written:
            self._written[atoms] = MolFragmentToSmiles(self._molecule, list(atoms))
        return self._written[atoms]
