"""Reference spectra behind an annotation: matches, analogs, levels they support."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mzseek.annotation.annotation import Candidate, Level, Reference
from mzseek.annotation.candidates import Molecule, is_formula
from mzseek.annotation.config import Tolerance
from mzseek.annotation.query import FeatureQuery, Hypothesis, can_be, with_ion
from mzseek.chem import inchikey_block, parse_molecule
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import BLOCK_LENGTH
from mzseek.core.errors import MoleculeError
from mzseek.core.ragged import pointers
from mzseek.fragments.matching import AT_PRECURSOR
from mzseek.library import Library
from mzseek.library.library import Matches
from mzseek.library.options import TOLERANCE
from mzseek.library.similarity import PeakLists
from mzseek.similarity.packed import Words, packed_tanimoto
from mzseek.spectra import Spectrum

LEAST_SIMILARITY = 0.7
LEAST_PEAKS = 6
LEAST_MATCHED = 0.5
MARGIN = 0.05
PLAUSIBLE = 0.2
HALF = 0.5


@dataclass(frozen=True)
class LevelEvidence:
    """What a level rests on besides the candidates.

    Attributes
    ----------
    scored : int
        Candidates for the ion of the best one, which it was compared with.
    p_in_database : float or None
        Probability that the molecule is among the candidates; None where it is not known.
    similar : mapping of str to float
        By InChIKey (first block), similarity of the best library spectrum of every molecule that
        the library has at this precursor m/z.
    unlisted : Reference or None
        A matching reference spectrum whose molecule is no candidate.
    matched : float
        Probability, given that the molecule is among the candidates, that it is one of those
        with a library match.
    formulas : mapping of str to float
        Posterior probability of each formula among the candidates.
    is_reached : bool
        Whether the best score is as far ahead of wrong molecules as that of true molecules.
    least_explained : float
        Share of the intensity that true molecules explain at least.
    """

    scored: int = 0
    p_in_database: float | None = None
    similar: Mapping[str, float] = field(default_factory=dict)
    unlisted: Reference | None = None
    matched: float = 0.0
    formulas: Mapping[str, float] = field(default_factory=dict)
    is_reached: bool = True
    least_explained: float = 0.0


def is_good_match(match: Reference, least_peaks: int = LEAST_PEAKS) -> bool:
    """Return whether a reference spectrum passes the bounds of a library match."""
    return (
        match.similarity >= LEAST_SIMILARITY
        and match.peaks >= least_peaks
        and match.matched_intensity >= LEAST_MATCHED
    )


def level_of(candidates: Sequence[Candidate], grounds: LevelEvidence) -> Level:
    """Return the level of an annotation, with its reason.

    Parameters
    ----------
    candidates : sequence of Candidate
        The best first.
    grounds : LevelEvidence

    Examples
    --------
    >>> level_of([], LevelEvidence()).reason
    'exact mass only: no candidate has it'
    """
    if not candidates:
        return Level("5", "exact mass only: no candidate has it")
    best = candidates[0]
    p_in_database = 1.0 if grounds.p_in_database is None else grounds.p_in_database
    confidence = best.probability * p_in_database
    if best.match is not None:
        problem = _match_problem(best, best.match, confidence, grounds)
        if problem is None:
            return Level("2a", f"library match: {_shown(best.match)} is of this molecule")
        # One of several isomers that all match; a lone candidate was compared with none of them.
        is_one_of_several = (
            is_good_match(best.match) and grounds.scored > 1 and grounds.unlisted is None
        )
        if is_one_of_several and grounds.matched * p_in_database >= HALF:
            return Level("3", f"tentative structure: {problem}")
        level = _without_match(best, confidence, p_in_database, grounds)
        return Level(level.number, f"{level.reason}; {problem}")
    return _without_match(best, confidence, p_in_database, grounds)


def _without_match(
    best: Candidate, confidence: float, p_in_database: float, grounds: LevelEvidence
) -> Level:
    """Return the level by the evidence of the candidates."""
    if grounds.unlisted is not None:
        name = _short_name(grounds.unlisted)
        return _five(f"a reference spectrum of {name}, which is no candidate, matches")
    if grounds.scored < 2:
        unmatched = ", and no library spectrum of it matches" if best.match is None else ""
        return _five(f"it is the only candidate for {best.adduct}{unmatched}")
    if best.explained < max(grounds.least_explained, 1e-9):
        return _five(
            f"fragments of the best candidate explain {best.explained:.0%} of the intensity; nine "
            f"of ten correct molecules explain {grounds.least_explained:.0%} or more"
        )
    if not grounds.is_reached:
        return _five(
            "the score margin of the best candidate over wrong molecules is lower than for nine of "
            "ten correct molecules"
        )
    if confidence >= HALF:
        return Level(
            "3", f"tentative structure: the best candidate has confidence {confidence:.2f}"
        )
    formula = max(grounds.formulas, key=lambda name: grounds.formulas[name], default="")
    likely = grounds.formulas.get(formula, 0.0) * p_in_database
    if formula and len(grounds.formulas) > 1 and likely >= HALF:
        return Level("4", f"formula: {formula} has probability {likely:.2f}")
    if p_in_database < HALF:
        missing = 1 - p_in_database
        return _five(f"with probability {missing:.2f} no candidate is the molecule")
    return _five(f"the best candidate has confidence {confidence:.2f}")


def _five(reason: str) -> Level:
    return Level("5", f"exact mass only: {reason}")


def _match_problem(
    best: Candidate, match: Reference, confidence: float, grounds: LevelEvidence
) -> str | None:
    """Return why the best candidate's library match is no level 2a; None if it is."""
    if match.peaks < LEAST_PEAKS:
        many = "1 peak" if match.peaks == 1 else f"{match.peaks:,} peaks"
        return f"its library match has {many}, and level 2a needs {LEAST_PEAKS}"
    if match.similarity < LEAST_SIMILARITY:
        return f"its library match has similarity {match.similarity:.2f}, not {LEAST_SIMILARITY:g}"
    if match.matched_intensity < LEAST_MATCHED:
        return (
            f"its library match shares {match.matched_intensity:.0%} of the intensity, and "
            f"level 2a needs {LEAST_MATCHED:.0%}"
        )
    # The database may hold the library's molecule in another form.
    same_molecule = {best.key, _key(match.smiles)}
    rival = max(
        (value for key, value in grounds.similar.items() if key not in same_molecule), default=0.0
    )
    if rival > match.similarity - MARGIN:
        return (
            f"its library match has similarity {match.similarity:.2f}, and one of another "
            f"molecule {rival:.2f}"
        )
    if confidence < PLAUSIBLE:
        return f"it has a library match, but a confidence of {confidence:.2f}"
    return None


def _key(smiles: str) -> str | None:
    try:
        return inchikey_block(smiles)
    except MoleculeError:
        return None


def _shown(match: Reference) -> str:
    return (
        f"a reference spectrum with similarity {match.similarity:.2f} and {match.peaks:,} matching "
        "peaks"
    )


_MATCHES, _ANALOGS = 500, 10  # records
_KIND = "morgan2"
_WIDER = 1e6 * (1 + 1e-12)  # m/z to ppm, rounded up
_Keyed = tuple[str, Reference]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """What libraries have to say about a feature.

    Attributes
    ----------
    matches : mapping of str to Reference
        Of the same precursor m/z, similar enough, by the key of their molecules; the best first.
    analogs : mapping of str to Reference
        The most similar of whatever precursor, by the key of their molecules.
    similar : mapping of str to float
        For each molecule that libraries have spectra of at this precursor m/z, by its key, the best
        similarity; 0 where none has a peak in common.
    """

    matches: Mapping[str, Reference] = field(default_factory=dict)
    analogs: Mapping[str, Reference] = field(default_factory=dict)
    similar: Mapping[str, float] = field(default_factory=dict)

    @property
    def nearest(self) -> float:
        """The highest similarity among the analogs; 0 for none."""
        return max((reference.similarity for reference in self.analogs.values()), default=0.0)


def neighbours(
    queries: Sequence[FeatureQuery],
    libraries: Sequence[tuple[str, Library]],
    tolerance: Tolerance,
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[Neighbours]:
    """Reference spectra near to the spectra of features.

    Parameters
    ----------
    queries : sequence of FeatureQuery
    libraries : sequence of (label, Library)
    tolerance : Tolerance
        Of precursors, for what is to match.
    names : mapping of str to str, optional
        Names of molecules by their key (first InChIKey block); libraries do not keep any.
    """
    spectra = [
        with_ion(spectrum, adduct)
        for query in queries
        for spectrum, adduct in zip(query.feature.spectra, query.hypotheses[0].adducts, strict=True)
    ]
    bare = [without_precursor(spectrum) for spectrum in spectra]
    query_of = np.repeat(np.arange(len(queries)), [len(query.feature.spectra) for query in queries])
    matches: list[list[_Keyed]] = [[] for _ in queries]
    analogs: list[list[_Keyed]] = [[] for _ in queries]
    similar: list[dict[str, float]] = [{} for _ in queries]
    precursors = np.array([spectrum.precursor_mz for spectrum in spectra])
    widths = np.array([tolerance.of(mz) for mz in precursors.tolist()])
    for label, library in libraries:
        if not len(library) or not spectra:
            continue
        same = library_without_precursors(library).search(
            bare, "cosine", min(_MATCHES, len(library)),
            precursor_ppm=_WIDER * widths / precursors, threads=1,
        )  # fmt: skip
        keys = [text[:BLOCK_LENGTH] for text in library.molecules["inchikey"].to_pylist()]
        for index, spectrum in enumerate(spectra):
            for molecule in _of_precursor(library, spectrum, widths[index]):
                similar[query_of[index]].setdefault(keys[molecule], 0.0)
        # The search takes a tolerance in ppm, which is rounded; this one is exact.
        is_near = np.abs(same.mass_differences) <= widths[same.queries]
        for row in np.flatnonzero(is_near).tolist():
            index, score = int(same.queries[row]), float(same.scores[row])
            by_key, key = similar[query_of[index]], keys[same.molecules[row]]
            by_key[key] = max(by_key.get(key, 0.0), score)
            if same.scores[row] >= LEAST_SIMILARITY:  # however few peaks: what counts is shown
                key, match = _reference(same, row, library, label, names)
                shared = matched_intensity(bare[index], match)
                matches[query_of[index]].append((key, replace(match, matched_intensity=shared)))
        similar_spectra = library.search(spectra, "analog", _ANALOGS, threads=1)
        for row, index in enumerate(similar_spectra.queries.tolist()):
            reference = _reference(similar_spectra, row, library, label, names)
            analogs[query_of[index]].append(reference)
    return [
        Neighbours(_best(of_same_mass), _best(of_any_mass), by_key)
        for of_same_mass, of_any_mass, by_key in zip(matches, analogs, similar, strict=True)
    ]


def _of_precursor(library: Library, spectrum: Spectrum, width: float) -> npt.NDArray[np.int64]:
    """Molecules that a library has spectra of at a precursor m/z, in the spectrum's mode."""
    mode = 0 if not spectrum.charge else (1 if spectrum.charge > 0 else -1)
    is_near = np.abs(library.ions.precursors - spectrum.precursor_mz) <= width
    is_near &= (library.ions.modes == mode) | (library.ions.modes == 0) | (mode == 0)
    return np.unique(np.asarray(library.molecule_of)[is_near]).astype(np.int64)


def without_precursor(spectrum: Spectrum) -> Spectrum:
    """A spectrum less its precursor's peaks: every spectrum of that m/z has those in common.

    One that has no others stays as it is.
    """
    far = np.abs(spectrum.mz - spectrum.precursor_mz) > AT_PRECURSOR
    if far.all() or not far.any():
        return spectrum
    return replace(spectrum, mz=spectrum.mz[far], intensities=spectrum.intensities[far])


_bare: "WeakKeyDictionary[Library, Library]" = WeakKeyDictionary()


def library_without_precursors(library: Library) -> Library:
    """Return the same library, its spectra less the peaks of their precursors; made once."""
    if library not in _bare:
        peaks, list_index = library.peaks, library.peaks.list_index
        values, weights = np.asarray(peaks.values), np.asarray(peaks.weights)
        far = np.abs(values - np.asarray(library.ions.precursors)[list_index]) > AT_PRECURSOR
        far |= np.bincount(list_index[far], minlength=len(library))[list_index] == 0
        counts = np.bincount(list_index[far], minlength=len(library))
        remaining = PeakLists(pointers(counts), values[far], weights[far])
        _bare[library] = Library.from_arrays(
            library.folder, remaining, library.ions, library.molecule_of, library.records,
            library.molecules,
        )  # fmt: skip
    return _bare[library]


def credited(
    smiles: Sequence[str], keys: Sequence[str], neighbours: Neighbours
) -> list[tuple[Reference | None, Reference | None]]:
    """For each candidate a match of its own, and the analog that speaks most for it.

    Parameters
    ----------
    smiles, keys : sequences of str
        Of candidates.
    neighbours : Neighbours
    """
    analogs = [item for item in neighbours.analogs.items() if item[1].similarity > 0]
    tanimoto = np.zeros((len(smiles), len(analogs)), np.float32)
    if analogs and smiles:
        others = np.stack([packed_fingerprint(reference.smiles) for _, reference in analogs])
        tanimoto = packed_tanimoto(np.stack([packed_fingerprint(text) for text in smiles]), others)
    similarities = np.array([reference.similarity for _, reference in analogs])
    credits = []
    for row, key in enumerate(keys):
        analog = None
        for column in np.argsort(-tanimoto[row] * similarities, kind="stable"):
            if analogs[column][0] != key and tanimoto[row, column] > 0:
                analog = replace(analogs[column][1], tanimoto=float(tanimoto[row, column]))
                break
        credits.append((neighbours.matches.get(key), analog))
    return credits


@lru_cache(maxsize=50_000)
def packed_fingerprint(smiles: str) -> Words:
    """Return a packed fingerprint; cached, since the same molecules are met again and again."""
    words: Words = fingerprint_kind(_KIND).words([parse_molecule(smiles)])[0]
    return words


def _reference(
    matches: Matches, row: int, library: Library, label: str, names: Mapping[str, str]
) -> _Keyed:
    record = int(matches.records[row])
    details = library.records.slice(record, 1).to_pylist()[0]
    molecule = library.molecules.slice(int(library.molecule_of[record]), 1).to_pylist()[0]
    peak_rows = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    key = molecule["inchikey"][:BLOCK_LENGTH]
    return key, Reference(
        record=details["identifier"],
        smiles=molecule["smiles"],
        name=names.get(key, ""),
        similarity=float(matches.scores[row]),
        peaks=int(matches.matched_peaks[row]),
        tanimoto=1.0,
        contributor=details["contributor"] or "",
        licence=details["license"] or "",
        library=label,
        adduct=details["adduct"] or "",
        precursor_mz=float(library.ions.precursors[record]),
        mz=np.array(library.peaks.values[peak_rows], np.float64),
        intensities=np.array(library.peaks.weights[peak_rows], np.float64),
        formula=molecule["formula"] or "",
        mass=float(molecule["mass"]),
    )


def matched_intensity(spectrum: Spectrum, reference: Reference) -> float:
    """Return the share of the intensity in peaks that two spectra share, the lower of both.

    Parameters
    ----------
    spectrum : Spectrum
        Without its precursor peaks.
    reference : Reference
        Its precursor peaks are left out here, unless it has no others.
    """
    far = np.abs(reference.mz - reference.precursor_mz) > AT_PRECURSOR
    keep = far if far.any() else ~far
    mz, intensities = reference.mz[keep], reference.intensities[keep]
    shares = (
        _share_near(spectrum.mz, spectrum.intensities, mz),
        _share_near(mz, intensities, spectrum.mz),
    )
    return min(shares)


def _share_near(mz: Floats, intensities: Floats, others: Floats) -> float:
    """Share of the intensity of peaks that have a peak of `others` within the tolerance."""
    if not len(others) or not intensities.sum() > 0:
        return 0.0
    ordered = np.sort(others)
    insertion = np.searchsorted(ordered, mz)
    below = np.abs(mz - ordered[np.maximum(insertion - 1, 0)])
    above = np.abs(ordered[np.minimum(insertion, len(ordered) - 1)] - mz)
    is_near = np.minimum(below, above) <= TOLERANCE
    return float(intensities[is_near].sum() / intensities.sum())


def _best(references: list[_Keyed]) -> dict[str, Reference]:
    """Return one reference of each molecule, the molecules in the order of their similarity.

    A molecule is represented by the most similar of its spectra that pass the bounds of a library
    match, if there is one: a spectrum of two peaks is often more similar, and says less.
    """
    best: dict[str, Reference] = {}
    order = sorted(
        references,
        key=lambda entry: (not is_good_match(entry[1]), -entry[1].similarity, entry[1].record),
    )
    for key, reference in order:
        best.setdefault(key, reference)
    ranked = sorted(best.items(), key=lambda entry: (-entry[1].similarity, entry[1].record))
    return dict(ranked)


LIBRARY_SOURCE = "library"  # the source of a candidate that a reference spectrum brought in
LEAST_PEAKS_TO_JOIN = 3  # matching peaks of a reference spectrum whose molecule is reported
_NAME_LENGTH = 80


def joins_candidates(match: Reference) -> bool:
    """Return whether a reference spectrum matches well enough to make its molecule a candidate."""
    return is_good_match(match, LEAST_PEAKS_TO_JOIN)


def add_library_candidates(query: FeatureQuery, neighbours: Neighbours) -> FeatureQuery:
    """Add the molecules of matching reference spectra that the database did not return.

    Parameters
    ----------
    query : FeatureQuery
    neighbours : Neighbours
        Reference spectra of the same precursor m/z.

    Returns
    -------
    FeatureQuery
        The same object if there is nothing to add. Added molecules have the source ``library``.
    """
    known = {molecule.key for listed in query.molecules for molecule in listed}
    extra: dict[Hypothesis, list[Molecule]] = {}
    for key, match in neighbours.matches.items():
        if key in known or not joins_candidates(match):
            continue
        if query.formula and not is_formula(match.formula, query.formula):
            continue
        molecule = Molecule(
            match.smiles, key, match.formula, match.mass, match.name, (LIBRARY_SOURCE,)
        )
        hypothesis = next((tried for tried in query.tried if can_be(molecule, tried)), None)
        if hypothesis is not None:
            extra.setdefault(hypothesis, []).append(molecule)
    if not extra:
        return query
    by_hypothesis = dict(zip(query.hypotheses, query.molecules, strict=False))
    hypotheses = [tried for tried in query.tried if by_hypothesis.get(tried) or tried in extra]
    lists = [
        sorted(
            [*by_hypothesis.get(hypothesis, ()), *extra.get(hypothesis, ())], key=lambda m: m.key
        )
        for hypothesis in hypotheses
    ]
    added = [molecule for molecules in extra.values() for molecule in molecules]
    note = (
        f"{_short_name(added[0])} is a candidate because a reference spectrum of it matches; the "
        "database does not hold it"
        if len(added) == 1
        else f"{len(added)} candidates come from matching reference spectra; the database does "
        "not hold them"
    )
    return replace(
        query, hypotheses=tuple(hypotheses), molecules=tuple(lists), found=query.found + len(added),
        notes=(*query.notes, note),
    )  # fmt: skip


def unlisted_matches(query: FeatureQuery, neighbours: Neighbours) -> list[Reference]:
    """Return the matching reference spectra whose molecules are no candidates, the best first.

    Their molecules must be able to form an ion that was tried.
    """
    known = {molecule.key for listed in query.molecules for molecule in listed}
    return [
        match
        for key, match in neighbours.matches.items()
        if key not in known
        and joins_candidates(match)
        and any(
            can_be(Molecule(match.smiles, key, match.formula, match.mass), hypothesis)
            for hypothesis in query.tried
        )
    ]


def unlisted_match(query: FeatureQuery, neighbours: Neighbours) -> Reference | None:
    """Return the best unlisted match that is more similar than the spectra of all candidates."""
    known = {molecule.key for listed in query.molecules for molecule in listed}
    best_listed = max((neighbours.similar.get(key, 0.0) for key in known), default=0.0)
    matches = unlisted_matches(query, neighbours)
    return next((match for match in matches if match.similarity > best_listed), None)


def unlisted_note(match: Reference) -> str:
    """Say that a reference spectrum of a molecule outside the list matches."""
    name = _short_name(match)
    return (
        f"a reference spectrum of {name} matches at {match.similarity:.2f}; {name} is not in "
        "your list"
    )


def _short_name(molecule: Molecule | Reference) -> str:
    return (molecule.name or molecule.smiles)[:_NAME_LENGTH]
