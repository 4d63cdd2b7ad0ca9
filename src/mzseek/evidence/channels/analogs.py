"""Analogs: known molecules with similar spectra lend their likeness to candidates.

The reference spectra nearest to a spectrum (peaks and neutral losses in narrow bins, see
`mzseek.library.analogs`) are of molecules that may be like the one that was measured. A candidate
is credible as far as it is like them, the nearest above all. What "like" means depends on the
fingerprint: one sees the surroundings of atoms, another paths; several together say more than any.
A molecule lends nothing to itself: that would be a library match, another kind of evidence.
Beside the nearest, all known molecules speak, by the weights of a regression
(`mzseek.evidence.regression`). Nothing is trained: further reference spectra can be taken in later.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem import exact_mass
from mzseek.chem.fingerprinting.registry import FINGERPRINTS
from mzseek.errors import EvidenceError
from mzseek.evidence.channel import Channel, Extended, Features, Learned
from mzseek.evidence.known import Lessons, Measured
from mzseek.evidence.lists import Ints, Lists
from mzseek.evidence.molecules import Molecules
from mzseek.evidence.regression import Regression
from mzseek.fragments.match import in_threads
from mzseek.library import Library
from mzseek.library.lists import Ions, lists_of
from mzseek.library.lists import Lists as PeakLists
from mzseek.registry import check_name, option
from mzseek.similarity.likeness import Likeness, marks
from mzseek.similarity.packed import Flags, Words, pack_words
from mzseek.work.progress import Progress, silent

Floats = npt.NDArray[np.float64]
_LENT = ("nearest", "mean", "sharp", "nearest × best", "mean × best", "sharp × best")
_OF_ALL = ("regression", "sharp regression")
_NAMES = _LENT + _OF_ALL
_SAME = 0.9999  # Tanimoto similarity from which on two molecules are the same to a fingerprint
_MOST = 10_000  # known molecules, with those taken in: the regression takes their third power
_ONE_MASS = 0.5  # Da: isomers are nearer, homologues are not
_BIN = 0.01  # what the index is told; analogs are found by bins of their own


@dataclass(frozen=True)
class AnalogOptions:
    """Options of the analog channel."""

    top: int = option(30, "molecules that lend their likeness", least=1, most=1000)
    likeness: str = option("morgan2,rdkit4", "fingerprints that likeness is measured by")
    doubt: float = option(1.0, "of the regression: the larger, the plainer", above=0)


class Analogs(Channel):
    """Likeness to molecules whose spectra are similar."""

    name: ClassVar[str] = "analogs"
    options_type: ClassVar[type] = AnalogOptions

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.kinds = tuple(kind.strip() for kind in self.options.likeness.split(","))
        for kind in self.kinds:
            check_name(FINGERPRINTS, kind, "analogs.likeness", EvidenceError)
        self.reads_fingerprints = self.kinds
        self.feature_names = tuple(f"{kind}, {name}" for kind in self.kinds for name in _NAMES)

    def learn(self, lessons: Lessons, progress: Progress = silent) -> Learned:
        """Reference spectra and the fingerprints of their molecules."""
        peaks, ions = lists_of(lessons.spectra)
        molecules, molecule_of = np.unique(lessons.molecule, return_inverse=True)
        arrays: dict[str, npt.NDArray[Any]] = {
            "pointers": peaks.pointers,
            "mz": peaks.values,
            "heights": peaks.weights,
            "precursors": ions.precursors,
            "modes": ions.modes,
            "molecule_of": np.asarray(molecule_of, np.int64),
            "masses": _masses_of([lessons.molecules.smiles[int(each)] for each in molecules]),
        }
        for kind in self.kinds:
            rows = lessons.molecules.fingerprints(molecules, kind)
            arrays[f"bit_pointers.{kind}"] = np.asarray(rows.indptr, np.int64)
            arrays[f"bits.{kind}"] = np.asarray(rows.indices, np.int32)
        return Learned(arrays, {}, lessons.learned_from)

    def features(self, learned: Learned, lists: Lists) -> Features:
        """How like a candidate is to the molecules of the nearest spectra, weighted by nearness."""
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = lists_of(lists.spectra)
        near, all_of = self._nearest(learned, peaks, ions), self._regression(learned)
        by_list = _by_list(lists.list_of)
        work = [(place, spectra) for place in range(len(self.kinds)) for spectra in by_list]
        words = [lists.molecules.words(kind) for kind in self.kinds]
        known = [_likeness(learned, kind) for kind in self.kinds]
        smiles, masses = lists.molecules.smiles, _masses(learned, len(known[0]))
        everyone = np.ones(len(known[0]), np.bool_)
        weights = all_of.by_molecule(peaks, ions, len(known[0]))

        def one(number: int) -> None:
            place, spectra = work[number]
            each = int(lists.list_of[spectra[0]])
            own = lists.members[lists.pointers[each] : lists.pointers[each + 1]]
            if not len(own):
                return
            mine = words[place][own]
            itself = _among(mine, [smiles[at] for at in own.tolist()], known[place], masses)
            lends = ~itself if lists.known_are_matches else everyone
            near_to = np.unique(near.molecules[spectra])
            near_to = near_to[near_to >= 0]
            by_all, alike = known[place].to_rows(
                mine, weights[:, spectra], lends=lends, itself=itself, same=_SAME, wanted=near_to
            )
            lent_by = _lent_by_nearest(alike, near_to, near, spectra)
            rows = lists.ragged.starts[spectra][:, None] + np.arange(len(own))
            columns = slice(place * len(_NAMES), (place + 1) * len(_NAMES))
            found[rows, columns] = np.concatenate([lent_by, by_all.transpose(1, 0, 2)], 2)

        in_threads(one, len(work), None)
        return found

    def adopt(self, learned: Learned, library: Library) -> None:
        """The library's index of analogs is as good as one of its own."""
        learned.ready["library"] = library

    def extended(self, learned: Learned, more: Measured) -> Extended:
        """The same with more reference spectra, but for those that are there already.

        A molecule that is known is found by its fingerprints, all kinds of them; where no known
        one has these, it is left out, so that no molecule lends twice.
        """
        more = more.in_order()
        number = len(learned.arrays[f"bit_pointers.{self.kinds[0]}"]) - 1
        is_known = np.isin(more.blocks, learned.blocks)
        # Blocks are digests: the first of them are drawn by lot.
        new = np.flatnonzero(~is_known)[: max(_MOST - number, 0)]
        place = np.full(len(more.blocks), -1, np.int64)
        smiles = np.array(more.smiles, object)
        place[is_known] = self._places(learned, smiles[is_known].tolist())
        place[new] = number + np.arange(len(new))
        there = _contents_of(learned, place[is_known])
        spectra = zip(place[more.molecule].tolist(), more.contents(), strict=True)
        kept = [at for at, one in enumerate(spectra) if one[0] >= 0 and one not in there]
        left_out = int((place < 0).sum())
        if not kept:
            return Extended(learned, 0, 0, left_out)
        added = more.only(np.array(kept, np.int64))
        arrays = _joined(learned, added, place[added.molecule])
        masses = _masses(learned, number), _masses_of(smiles[new].tolist())
        arrays["masses"] = np.concatenate(masses).astype(np.float32)
        table = self._read(smiles[new].tolist())
        for kind in self.kinds:
            rows, name = table.fingerprints(np.arange(len(new)), kind), f"bit_pointers.{kind}"
            ends = learned.arrays[name][-1] + rows.indptr[1:]
            bits = learned.arrays[f"bits.{kind}"], rows.indices
            arrays[name] = np.append(learned.arrays[name], ends).astype(np.int64)
            arrays[f"bits.{kind}"] = np.concatenate(bits).astype(np.int32)
        blocks = np.union1d(learned.blocks, more.blocks[new])
        return Extended(Learned(arrays, learned.facts, blocks), len(kept), len(new), left_out)

    def _places(self, learned: Learned, smiles: list[str]) -> Ints:
        """Places of molecules among the known, by their fingerprints; −1 where none has these."""
        known = np.hstack([_likeness(learned, kind).known for kind in self.kinds])
        place_of = {row.tobytes(): at for at, row in reversed(list(enumerate(known)))}
        table = self._read(smiles)
        words = np.hstack([table.words(kind) for kind in self.kinds])
        return np.array([place_of.get(row.tobytes(), -1) for row in words], np.int64)

    def _read(self, smiles: list[str]) -> Molecules:
        """Molecules with their fingerprints."""
        table = Molecules(smiles, self.kinds[0], jobs=1)
        table.read(self.kinds)
        return table

    def _nearest(self, learned: Learned, peaks: PeakLists, ions: Ions) -> "_Near":
        """Molecules of the nearest reference spectra of each spectrum."""
        index, molecule_of = _ready(learned)
        top = min(self.options.top, len(molecule_of))
        allowed = np.ones(len(molecule_of), np.bool_)
        best = index.search(peaks, ions, top, molecule_of, allowed)
        return _Near(np.where(best.records >= 0, molecule_of[best.records], -1), best.scores)

    def _regression(self, learned: Learned) -> Regression:
        """The regression over the reference spectra, solved once."""
        if "regression" not in learned.ready:
            peaks, ions = _references(learned)
            learned.ready["regression"] = Regression.of(
                peaks, ions, learned.arrays["molecule_of"], self.options.doubt
            )
        made: Regression = learned.ready["regression"]
        return made


def _among(candidates: Words, smiles: list[str], known: Likeness, masses: Floats) -> Flags:
    """Which known molecules are candidates, as far as fingerprint and mass tell.

    In lists that a ranker is fitted on, the truth is never a known molecule, and some decoys are:
    to be known would count against a candidate, so that none lends to itself. Where that is asked
    for, it lends nothing to the other candidates either: its spectra are matches, and would lift
    its isomers. Fingerprints do not tell a chain from a longer one, and masses do: that is an
    analog.
    """
    own = marks(candidates)
    found = np.isin(known.marks, own)
    for place in np.flatnonzero(found & ~np.isnan(masses)).tolist():
        alike = np.flatnonzero(own == known.marks[place]).tolist()
        away = [abs(_mass(smiles[each]) - masses[place]) for each in alike]
        found[place] = min(away) <= _ONE_MASS
    return found


@lru_cache(maxsize=10_000)
def _mass(smiles: str) -> float:
    return exact_mass(smiles)


def _masses_of(smiles: list[str]) -> npt.NDArray[np.float32]:
    return np.array([exact_mass(text) for text in smiles], np.float32)


def _masses(learned: Learned, number: int) -> Floats:
    """Of the known molecules; not a number where they were not kept, as they once were not."""
    masses = learned.arrays.get("masses")
    return np.full(number, np.nan) if masses is None else masses.astype(np.float64)


class _Near(NamedTuple):
    """Nearest molecules of each spectrum (−1: none), and how near their spectra are."""

    molecules: Ints
    near: npt.NDArray[np.float64]


def _by_list(list_of: Ints) -> list[Ints]:
    """Spectra that share a list, list by list."""
    order = np.argsort(list_of, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(list_of[order])) + 1) if len(order) else []


def _lent_by_nearest(
    alike: Floats, molecules: Ints, nearest: _Near, spectra: Ints
) -> npt.NDArray[np.float32]:
    """Features of candidates for each of the spectra: shape (spectra, candidates, features).

    `alike` is their likeness to some molecules, which rise.
    """
    found = np.zeros((len(spectra), len(alike), len(_LENT)), np.float32)
    for place, spectrum in enumerate(spectra):
        there = nearest.molecules[spectrum] >= 0
        columns = np.searchsorted(molecules, nearest.molecules[spectrum][there])
        found[place] = lent(alike[:, columns], nearest.near[spectrum][there])
    return found


def lent(alike: npt.NDArray[np.floating], near: npt.NDArray[np.floating]) -> Features:
    """Features of candidates, given their likeness to analogs and how near those spectra are.

    Parameters
    ----------
    alike : array, shape (candidates, analogs)
        Tanimoto similarities of molecules.
    near : array, shape (analogs,)
        Similarities of their spectra.

    Examples
    --------
    >>> lent(np.array([[1.0, 0.5]]), np.array([0.5, 0.5])).tolist()
    [[0.5, 0.75, 0.125, 0.25, 0.375, 0.0625]]
    """
    if not len(near):
        return np.zeros((len(alike), len(_LENT)), np.float32)
    nearest = (near * alike).max(1)
    mean = alike @ near**2 / (near**2).sum()
    sharp = (near**3 * alike**2).max(1)
    plain = np.stack([nearest, mean, sharp], 1)
    return np.hstack([plain, near.max() * plain]).astype(np.float32)


def _ready(learned: Learned) -> tuple[Any, Ints]:
    """The index of the reference spectra, made once."""
    if "index" not in learned.ready:
        from mzseek.library.search import Index  # compiled code, which takes time to load

        library: Library | None = learned.ready.get("library")
        if library is not None and _same_spectra(learned, library):
            learned.ready["index"] = library.index("analog")
        else:
            learned.ready["index"] = Index("analog", *_references(learned), _BIN)
    return learned.ready["index"], learned.arrays["molecule_of"]


def _same_spectra(learned: Learned, library: Library) -> bool:
    """Whether a library has the spectra that were learned from, in the same order."""
    peaks, ions = _references(learned)
    mine: list[npt.NDArray[Any]] = [*peaks, *ions]
    theirs: list[npt.NDArray[Any]] = [*library.peaks, *library.ions]
    return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def _references(learned: Learned) -> tuple[PeakLists, Ions]:
    arrays = learned.arrays
    peaks = PeakLists(arrays["pointers"], arrays["mz"], arrays["heights"])
    return peaks, Ions(arrays["precursors"], arrays["modes"])


def _contents_of(learned: Learned, molecules: Ints) -> set[tuple[int, bytes]]:
    """Spectra that are there of some molecules, by the molecule's place."""
    molecule_of = learned.arrays["molecule_of"]
    whole = Measured(*_references(learned), molecule_of, (), np.empty(0, "S14"))
    own = whole.only(np.flatnonzero(np.isin(molecule_of, molecules)))
    return set(zip(own.molecule.tolist(), own.contents(), strict=True))


def _joined(learned: Learned, added: Measured, places: Ints) -> dict[str, npt.NDArray[Any]]:
    """Arrays of all spectra, those that were there first; new ones of molecules at these places."""
    old, more = learned.arrays, added.peaks
    return {
        "pointers": np.append(old["pointers"], old["pointers"][-1] + more.pointers[1:]),
        "mz": np.concatenate([old["mz"], more.values]),
        "heights": np.concatenate([old["heights"], more.weights]),
        "precursors": np.concatenate([old["precursors"], added.ions.precursors]),
        "modes": np.concatenate([old["modes"], added.ions.modes]).astype(np.int8),
        "molecule_of": np.concatenate([old["molecule_of"], places]).astype(np.int64),
    }


def _likeness(learned: Learned, kind: str) -> Likeness:
    """Fingerprints of the known molecules, prepared once."""
    if kind not in learned.ready:
        pointers, bits = learned.arrays[f"bit_pointers.{kind}"], learned.arrays[f"bits.{kind}"]
        shape = (len(pointers) - 1, FINGERPRINTS[kind].bits)
        ones = np.ones(len(bits), np.int32)
        words = pack_words(csr_array((ones, bits, pointers), shape=shape))
        learned.ready[kind] = Likeness(words)
    made: Likeness = learned.ready[kind]
    return made
