"""Reference spectra behind an answer: those that match, and those that lend their likeness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mzseek.annotation.answers import Reference
from mzseek.annotation.asking.ask import Asked
from mzseek.annotation.asking.ions import with_ion
from mzseek.annotation.asking.tolerance import Tolerance
from mzseek.annotation.levels import LEAST_SIMILARITY, is_good_match
from mzseek.annotation.matching import library_without_precursors, without_precursor
from mzseek.chem import fingerprints
from mzseek.chem.describe import BLOCK_LENGTH
from mzseek.fragments.match import AT_PRECURSOR
from mzseek.library import Library
from mzseek.library.found import Matches
from mzseek.library.store import TOLERANCE
from mzseek.similarity.packed import Words, pack_words, packed_tanimoto
from mzseek.spectra import Spectrum

_MATCHES, _ANALOGS = 500, 10  # records
_KIND = "morgan2"
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
        return max((each.similarity for each in self.analogs.values()), default=0.0)


def neighbours(
    asked: Sequence[Asked],
    libraries: Sequence[tuple[str, Library]],
    tolerance: Tolerance,
    names: Mapping[str, str] | None = None,
) -> list[Neighbours]:
    """Reference spectra near to the spectra of features.

    Parameters
    ----------
    asked : sequence of Asked
    libraries : sequence of (label, Library)
    tolerance : Tolerance
        Of precursors, for what is to match.
    names : mapping of str to str, optional
        Names of molecules by their key (first InChIKey block); libraries do not keep any.
    """
    known_names = names or {}
    spectra = [
        with_ion(spectrum, each.readings[0].adducts[place])
        for each in asked
        for place, spectrum in enumerate(each.feature.spectra)
    ]
    bare = [without_precursor(spectrum) for spectrum in spectra]
    owner = np.repeat(np.arange(len(asked)), [len(each.feature.spectra) for each in asked])
    matches: list[list[_Keyed]] = [[] for _ in asked]
    analogs: list[list[_Keyed]] = [[] for _ in asked]
    similar: list[dict[str, float]] = [{} for _ in asked]
    for label, library in libraries:
        if not len(library) or not spectra:
            continue
        widths = np.array([tolerance.of(spectrum.precursor_mz) for spectrum in spectra])
        widest = max(w / s.precursor_mz * 1e6 for w, s in zip(widths, spectra, strict=True))
        same = bare_of(library).search(
            bare, "cosine", min(_MATCHES, len(library)), precursor_ppm=widest, threads=1
        )
        keys = [text[:BLOCK_LENGTH] for text in library.molecules["inchikey"].to_pylist()]
        for place, spectrum in enumerate(spectra):
            for molecule in _of_precursor(library, spectrum, widths[place]):
                similar[owner[place]].setdefault(keys[molecule], 0.0)
        # The search takes the widest tolerance of the batch; each spectrum has its own.
        is_near = np.abs(same.mass_differences) <= widths[same.queries]
        for query, molecule, score in zip(
            same.queries[is_near], same.molecules[is_near], same.scores[is_near], strict=True
        ):
            own, key = similar[owner[query]], keys[molecule]
            own[key] = max(own.get(key, 0.0), float(score))
        # However few peaks match: what counts for a candidate is shown.
        is_match = (same.scores >= LEAST_SIMILARITY) & is_near
        for place in np.flatnonzero(is_match).tolist():
            query = int(same.queries[place])
            key, match = _reference(same, place, library, label, known_names)
            shared = matched_intensity(bare[query], match)
            matches[owner[query]].append((key, replace(match, matched_intensity=shared)))
        near = library.search(spectra, "analog", _ANALOGS, threads=1)
        for place in range(len(near)):
            analogs[owner[near.queries[place]]].append(
                _reference(near, place, library, label, known_names)
            )
    return [
        Neighbours(_best(own), _best(near), known)
        for own, near, known in zip(matches, analogs, similar, strict=True)
    ]


def _of_precursor(library: Library, spectrum: Spectrum, width: float) -> npt.NDArray[np.int64]:
    """Molecules that a library has spectra of at a precursor m/z, in the spectrum's mode."""
    mode = 0 if not spectrum.charge else (1 if spectrum.charge > 0 else -1)
    near = np.abs(library.ions.precursors - spectrum.precursor_mz) <= width
    near &= (library.ions.modes == mode) | (library.ions.modes == 0) | (mode == 0)
    return np.unique(np.asarray(library.molecule_of)[near]).astype(np.int64)


_bare: "WeakKeyDictionary[Library, Library]" = WeakKeyDictionary()


def bare_of(library: Library) -> Library:
    """A library less the peaks of its precursors, made once."""
    if library not in _bare:
        _bare[library] = library_without_precursors(library)
    return _bare[library]


def credited(
    smiles: Sequence[str], keys: Sequence[str], near: Neighbours
) -> list[tuple[Reference | None, Reference | None]]:
    """For each candidate a match of its own, and the analog that speaks most for it.

    Parameters
    ----------
    smiles, keys : sequences of str
        Of candidates.
    near : Neighbours
    """
    lent = [(key, each) for key, each in near.analogs.items() if each.similarity > 0]
    alike = np.zeros((len(smiles), len(lent)), np.float32)
    if lent and smiles:
        others = np.stack([_words(each.smiles) for _, each in lent])
        alike = packed_tanimoto(np.stack([_words(text) for text in smiles]), others)
    similarities = np.array([each.similarity for _, each in lent])
    found = []
    for place, key in enumerate(keys):
        analog = None
        for column in np.argsort(-alike[place] * similarities, kind="stable"):
            if lent[column][0] != key and alike[place, column] > 0:
                analog = replace(lent[column][1], likeness=float(alike[place, column]))
                break
        found.append((near.matches.get(key), analog))
    return found


@lru_cache(maxsize=20_000)
def _words(smiles: str) -> Words:
    """Packed fingerprint: the same reference molecules are met again and again."""
    words: Words = pack_words(fingerprints([smiles], _KIND, threads=1))[0]
    return words


def _reference(
    found: Matches, place: int, library: Library, label: str, names: Mapping[str, str]
) -> _Keyed:
    record = int(found.records[place])
    facts = library.records.slice(record, 1).to_pylist()[0]
    molecule = library.molecules.slice(int(library.molecule_of[record]), 1).to_pylist()[0]
    own = slice(int(library.peaks.pointers[record]), int(library.peaks.pointers[record + 1]))
    key = molecule["inchikey"][:BLOCK_LENGTH]
    return key, Reference(
        record=facts["identifier"],
        smiles=molecule["smiles"],
        name=names.get(key, ""),
        similarity=float(found.scores[place]),
        peaks=int(found.matched_peaks[place]),
        likeness=1.0,
        contributor=facts["contributor"] or "",
        licence=facts["license"] or "",
        library=label,
        adduct=facts["adduct"] or "",
        precursor_mz=float(library.ions.precursors[record]),
        mz=np.array(library.peaks.values[own], np.float64),
        intensities=np.array(library.peaks.weights[own], np.float64),
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
    place = np.searchsorted(ordered, mz)
    below = np.abs(mz - ordered[np.maximum(place - 1, 0)])
    above = np.abs(ordered[np.minimum(place, len(ordered) - 1)] - mz)
    is_near = np.minimum(below, above) <= TOLERANCE
    return float(intensities[is_near].sum() / intensities.sum())


def _best(references: list[_Keyed]) -> dict[str, Reference]:
    """Return one reference of each molecule, the molecules in the order of their similarity.

    A molecule is represented by the most similar of its spectra that pass the bounds of a library
    match, if there is one: a spectrum of two peaks is often more similar, and says less.
    """
    kept: dict[str, Reference] = {}
    order = sorted(
        references,
        key=lambda one: (not is_good_match(one[1]), -one[1].similarity, one[1].record),
    )
    for key, each in order:
        kept.setdefault(key, each)
    ranked = sorted(kept.items(), key=lambda one: (-one[1].similarity, one[1].record))
    return dict(ranked)
