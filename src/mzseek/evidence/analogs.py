"""Channel: similarity to molecules whose reference spectra are similar."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor
from scipy.sparse import csr_array, diags_array, hstack
from threadpoolctl import threadpool_limits

from mzseek.chem import exact_mass
from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.core.compiled import compiled, is_plain
from mzseek.core.errors import EvidenceError
from mzseek.core.registry import check_name, option
from mzseek.evidence.channel import Channel, ChannelState, ExtendedState, Features
from mzseek.evidence.queries import Lists, Measured, Molecules, TrainingSet
from mzseek.fragments.matching import in_threads
from mzseek.library import Library
from mzseek.library.library import WIDTH, analog_lists
from mzseek.library.similarity import PeakLists, PrecursorIons, normalised, peak_lists
from mzseek.parallel.engine import Progress, silent
from mzseek.similarity.packed import Flags, ReferenceSimilarity, marks, pack_words
from mzseek.spectra.parsing import MAX_MZ

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_BLOCK = 256  # rows of the factor that are mirrored at a time
_BINS = round(MAX_MZ / WIDTH)


class Regression:
    """Known molecules, each with its spectra of an ion mode as one.

    Ion modes have no bins in common, so that each is a regression of its own; it is solved when a
    spectrum of its mode is first asked about.

    Parameters
    ----------
    points : int64 array, shape (points,)
        Twice the molecule's number, and one more in negative mode; rising.
    rows : CSR, shape (points, bins)
        Its spectra as one vector of length 1.
    doubt : float
    """

    def __init__(self, points: Ints, rows: csr_array, doubt: float) -> None:
        self._points, self.rows, self._doubt = points, rows, doubt
        self._factors: dict[bool, Values] = {}
        self._solved: dict[tuple[bool, bytes, bytes], Values] = {}

    @property
    def molecule(self) -> Ints:
        """The molecule of each point."""
        return self._points // 2

    @classmethod
    def of(
        cls, peaks: PeakLists, ions: PrecursorIons, molecule: Ints, doubt: float
    ) -> "Regression":
        """Spectra of known molecules.

        Parameters
        ----------
        peaks, ions : of all spectra
        molecule : int array, shape (spectra,)
        doubt : float
            Above 0: how much less than the most is believed of known spectra. The larger, the more
            the weights become plain similarities.
        """
        each = 2 * np.asarray(molecule, np.int64) + (ions.modes < 0)
        points, place = np.unique(each, return_inverse=True)
        share = 1 / np.bincount(place)[place]
        shape = (len(points), len(each))
        mean = csr_array((share, (place, np.arange(len(each)))), shape=shape)
        sides = [_unit(mean @ side) for side in _sides(peaks, ions)]
        return cls(points, csr_array(hstack(sides, format="csr")), doubt)

    def weights(self, peaks: PeakLists, ions: PrecursorIons) -> Values:
        """Weights of the known for spectra: shape (points, spectra).

        A spectrum that has nothing in common with any of them gives each the weight 0. The weights
        of the last spectra are kept: those of a batch are asked about once for the candidates and
        once for the background, and once for each adduct hypothesis.
        """
        asked = csr_array(hstack(_sides(peaks, ions), format="csr"))
        negative = ions.modes < 0
        ends = zip(asked.indptr[:-1].tolist(), asked.indptr[1:].tolist(), strict=True)
        keys = [
            (bool(mode), asked.indices[start:end].tobytes(), asked.data[start:end].tobytes())
            for mode, (start, end) in zip(negative, ends, strict=True)
        ]
        place_of = {key: place for place, key in enumerate(keys)}
        new = [key for key in place_of if key not in self._solved]
        places = np.array([place_of[key] for key in new], np.int64)
        solved = dict(zip(new, self._weights_of(asked[places], negative[places]), strict=True))
        self._solved = {key: self._solved[key] for key in place_of if key not in solved} | solved
        nothing = np.empty((len(self._points), 0), np.float32)
        return np.column_stack([nothing, *(self._solved[key] for key in keys)])

    def _weights_of(self, asked: csr_array, is_negative: npt.NDArray[np.bool_]) -> Values:
        """Return the weights of the known for spectra as rows: shape (spectra, points)."""
        found = np.zeros((asked.shape[0], len(self._points)), np.float32)
        for negative in (False, True):
            own = np.flatnonzero((self._points % 2 == 1) == negative)
            spectra = np.flatnonzero(is_negative == negative)
            if not len(own) or not len(spectra):
                continue
            shared = (self.rows[own] @ asked[spectra].T).toarray()
            near = np.ascontiguousarray(shared.T, np.float64)
            solve = _solve_by_rows if is_plain() else _solve
            solve(self._factor(own, negative), near)
            found[np.ix_(spectra, own)] = near
        return found

    def by_molecule(self, peaks: PeakLists, ions: PrecursorIons, number: int) -> Values:
        """The same by molecule, of so many: shape (molecules, spectra)."""
        weights = self.weights(peaks, ions)
        found = np.zeros((number, weights.shape[1]), np.float32)
        for negative in (False, True):  # a molecule has one point of each mode, at the most
            own = np.flatnonzero((self._points % 2 == 1) == negative)
            found[self.molecule[own]] += weights[own]
        return found

    def _factor(self, own: npt.NDArray[np.intp], negative: bool) -> Values:
        """Return the Cholesky factor L of an ion mode's kernel, with Lᵀ above it; made once."""
        if negative not in self._factors:
            rows = self.rows[own]
            kernel = (rows @ rows.T).toarray()
            kernel[np.diag_indices_from(kernel)] += self._doubt
            with threadpool_limits(1, "blas"):
                # The transpose is the same matrix, in the order that LAPACK works on in place.
                lower, _ = cho_factor(kernel.T, lower=True, overwrite_a=True, check_finite=False)
            self._factors[negative] = _mirrored(lower.T)
        return self._factors[negative]


def _mirrored(upper: npt.NDArray[np.floating]) -> Values:
    """Return a symmetric matrix with the upper triangle of another one."""
    found = np.ascontiguousarray(upper, np.float32)
    for start in range(0, len(found), _BLOCK):
        end = start + _BLOCK
        block = np.triu(found[start:end, start:end])
        found[start:end, start:end] = block + np.triu(block, 1).T
        found[end:, start:end] = found[start:end, end:].T
    return found


@compiled
def _solve(factor: Values, rows: Floats) -> None:
    """Solve L Lᵀ x = b in place for each b among the rows; `factor` has L below and Lᵀ above.

    The operations on each value, and their order, are those of `_solve_by_rows`. Four columns of
    the factor are applied at a time, so that a row is read and written a quarter as often.
    """
    size = len(factor)
    for first in range(0, size, 4):
        last = min(first + 4, size)
        for row in range(len(rows)):
            for column in range(first, last):
                rows[row, column] /= factor[column, column]
                for place in range(column + 1, last):
                    rows[row, place] -= rows[row, column] * factor[column, place]
            if last < size:
                a, b, c, d = (
                    rows[row, first], rows[row, first + 1], rows[row, first + 2],
                    rows[row, first + 3],
                )  # fmt: skip
                for place in range(last, size):
                    value = rows[row, place] - a * factor[first, place]
                    value -= b * factor[first + 1, place]
                    value -= c * factor[first + 2, place]
                    rows[row, place] = value - d * factor[first + 3, place]
    last = size
    while last > 0:
        first = max(last - 4, 0)
        for row in range(len(rows)):
            for column in range(last - 1, first - 1, -1):
                rows[row, column] /= factor[column, column]
                for place in range(first, column):
                    rows[row, place] -= rows[row, column] * factor[column, place]
            if first > 0:
                a, b, c, d = (
                    rows[row, last - 1], rows[row, last - 2], rows[row, last - 3],
                    rows[row, last - 4],
                )  # fmt: skip
                for place in range(first):
                    value = rows[row, place] - a * factor[last - 1, place]
                    value -= b * factor[last - 2, place]
                    value -= c * factor[last - 3, place]
                    rows[row, place] = value - d * factor[last - 4, place]
        last = first


def _solve_by_rows(factor: Values, rows: Floats) -> None:
    """Solve as `_solve` does, to the same bits, by numpy."""
    for column in range(len(factor)):
        rows[:, column] /= factor[column, column]
        rows[:, column + 1 :] -= rows[:, column, None] * factor[column, column + 1 :]
    for column in range(len(factor) - 1, -1, -1):
        rows[:, column] /= factor[column, column]
        rows[:, :column] -= rows[:, column, None] * factor[column, :column]


def _sides(peaks: PeakLists, ions: PrecursorIons) -> list[csr_array]:
    """Peaks and losses of spectra as sparse rows, in float32.

    Bins of negative mode are other bins: its peaks mean other things.
    """
    return [_rows(side, ions.modes < 0) for side in analog_lists(peaks, ions)]


def _rows(side: PeakLists, negative: npt.NDArray[np.bool_]) -> csr_array:
    # Fourth roots of heights: small peaks tell more of a molecule than a search gives them.
    side = normalised(side._replace(weights=np.sqrt(side.weights)), square=0.5)
    shift = np.repeat(np.where(negative, _BINS, 0), np.diff(side.pointers))
    columns = side.values.astype(np.int64) + shift
    shape = (len(negative), 2 * _BINS)
    return csr_array((side.weights.astype(np.float32), columns, side.pointers), shape=shape)


def _unit(rows: csr_array) -> csr_array:
    """Rows with squares that sum to a half, as those of single spectra do."""
    square = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    scale = np.sqrt(np.divide(0.5, square, out=np.zeros(len(square)), where=square > 0))
    return csr_array(diags_array(scale) @ rows).astype(np.float32)


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

    def learn(self, lessons: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Reference spectra and the fingerprints of their molecules."""
        peaks, ions = peak_lists(lessons.spectra)
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
        return ChannelState(arrays, {}, lessons.learned_from)

    def features(self, learned: ChannelState, lists: Lists) -> Features:
        """How like a candidate is to the molecules of the nearest spectra, weighted by nearness."""
        found = np.zeros((lists.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = peak_lists(lists.spectra)
        near, all_of = self._nearest(learned, peaks, ions), self._regression(learned)
        by_list = _by_list(lists.list_of)
        work = [(place, spectra) for place in range(len(self.kinds)) for spectra in by_list]
        words = [lists.molecules.words(kind) for kind in self.kinds]
        known = [_likeness(learned, kind) for kind in self.kinds]
        masses = _masses(learned).astype(np.float64)
        weights = all_of.by_molecule(peaks, ions, len(known[0]))

        def one(number: int) -> None:
            place, spectra = work[number]
            each = int(lists.list_of[spectra[0]])
            own = lists.members[lists.pointers[each] : lists.pointers[each + 1]]
            if not len(own):
                return
            mine = words[place][own]
            itself = _among(lists.molecules, own, self.kinds[place], known[place], masses)
            lends = np.ones(len(masses), np.bool_)
            if lists.not_analogs is not None:
                others, rows_of = lists.not_analogs[each]
                lends = ~_among(others, rows_of, self.kinds[place], known[place], masses)
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

    def adopt(self, learned: ChannelState, library: Library) -> None:
        """The library's index of analogs is as good as one of its own."""
        learned.ready["library"] = library

    def extended(self, learned: ChannelState, more: Measured) -> ExtendedState:
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
            return ExtendedState(learned, 0, 0, left_out)
        added = more.only(np.array(kept, np.int64))
        arrays = _joined(learned, added, place[added.molecule])
        masses = _masses(learned), _masses_of(smiles[new].tolist())
        arrays["masses"] = np.concatenate(masses)
        table = self._read(smiles[new].tolist())
        for kind in self.kinds:
            rows, name = table.fingerprints(np.arange(len(new)), kind), f"bit_pointers.{kind}"
            ends = learned.arrays[name][-1] + rows.indptr[1:]
            bits = learned.arrays[f"bits.{kind}"], rows.indices
            arrays[name] = np.append(learned.arrays[name], ends).astype(np.int64)
            arrays[f"bits.{kind}"] = np.concatenate(bits).astype(np.int32)
        blocks = np.union1d(learned.blocks, more.blocks[new])
        return ExtendedState(
            ChannelState(arrays, learned.facts, blocks), len(kept), len(new), left_out
        )

    def _places(self, learned: ChannelState, smiles: list[str]) -> Ints:
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

    def _nearest(self, learned: ChannelState, peaks: PeakLists, ions: PrecursorIons) -> "_Near":
        """Molecules of the nearest reference spectra of each spectrum."""
        index, molecule_of = _ready(learned)
        top = min(self.options.top, len(molecule_of))
        allowed = np.ones(len(molecule_of), np.bool_)
        best = index.search(peaks, ions, top, molecule_of, allowed)
        return _Near(np.where(best.records >= 0, molecule_of[best.records], -1), best.scores)

    def _regression(self, learned: ChannelState) -> Regression:
        """The regression over the reference spectra, solved once."""
        if "regression" not in learned.ready:
            peaks, ions = _references(learned)
            learned.ready["regression"] = Regression.of(
                peaks, ions, learned.arrays["molecule_of"], self.options.doubt
            )
        made: Regression = learned.ready["regression"]
        return made


def _among(
    molecules: Molecules, rows: Ints, kind: str, known: ReferenceSimilarity, masses: Floats
) -> Flags:
    """Return which known molecules are among the rows of a table, by fingerprint and mass.

    In lists that a ranker is fitted on, the truth is never a known molecule, and some decoys are:
    to be known would count against a candidate, so that none is its own analog. Where
    `Lists.not_analogs` says so, it is no analog of other candidates either: its spectra are
    matches, and would raise the scores of its isomers. Fingerprints do not tell a chain from a
    longer one, and masses do: that is an analog.
    """
    own = marks(molecules.words(kind)[rows])
    found = np.isin(known.marks, own)
    for place in np.flatnonzero(found).tolist():
        alike = rows[own == known.marks[place]].tolist()
        away = [abs(_mass(molecules.smiles[each]) - masses[place]) for each in alike]
        found[place] = min(away) <= _ONE_MASS
    return found


@lru_cache(maxsize=10_000)
def _mass(smiles: str) -> float:
    return exact_mass(smiles)


def _masses_of(smiles: list[str]) -> npt.NDArray[np.float32]:
    return np.array([exact_mass(text) for text in smiles], np.float32)


def _masses(learned: ChannelState) -> npt.NDArray[np.float32]:
    if "masses" not in learned.arrays:
        raise EvidenceError("analogs were fitted by another version of mzseek; fit them again")
    return learned.arrays["masses"]


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
    # Not `@`: the order in which a matrix product adds depends on the number of threads.
    mean = np.einsum("ij,j->i", alike, near**2) / (near**2).sum()
    sharp = (near**3 * alike**2).max(1)
    plain = np.stack([nearest, mean, sharp], 1)
    return np.hstack([plain, near.max() * plain]).astype(np.float32)


def _ready(learned: ChannelState) -> tuple[Any, Ints]:
    """The index of the reference spectra, made once."""
    if "index" not in learned.ready:
        from mzseek.library.library import Index  # compiled code, which takes time to load

        library: Library | None = learned.ready.get("library")
        if library is not None and _same_spectra(learned, library):
            learned.ready["index"] = library.index("analog")
        else:
            learned.ready["index"] = Index("analog", *_references(learned), _BIN)
    return learned.ready["index"], learned.arrays["molecule_of"]


def _same_spectra(learned: ChannelState, library: Library) -> bool:
    """Whether a library has the spectra that were learned from, in the same order."""
    peaks, ions = _references(learned)
    mine: list[npt.NDArray[Any]] = [*peaks, *ions]
    theirs: list[npt.NDArray[Any]] = [*library.peaks, *library.ions]
    return all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def _references(learned: ChannelState) -> tuple[PeakLists, PrecursorIons]:
    arrays = learned.arrays
    peaks = PeakLists(arrays["pointers"], arrays["mz"], arrays["heights"])
    return peaks, PrecursorIons(arrays["precursors"], arrays["modes"])


def _contents_of(learned: ChannelState, molecules: Ints) -> set[tuple[int, bytes]]:
    """Spectra that are there of some molecules, by the molecule's place."""
    molecule_of = learned.arrays["molecule_of"]
    whole = Measured(*_references(learned), molecule_of, (), np.empty(0, "S14"))
    own = whole.only(np.flatnonzero(np.isin(molecule_of, molecules)))
    return set(zip(own.molecule.tolist(), own.contents(), strict=True))


def _joined(learned: ChannelState, added: Measured, places: Ints) -> dict[str, npt.NDArray[Any]]:
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


def _likeness(learned: ChannelState, kind: str) -> ReferenceSimilarity:
    """Fingerprints of the known molecules, prepared once."""
    if kind not in learned.ready:
        pointers, bits = learned.arrays[f"bit_pointers.{kind}"], learned.arrays[f"bits.{kind}"]
        shape = (len(pointers) - 1, FINGERPRINTS[kind].bits)
        ones = np.ones(len(bits), np.int32)
        words = pack_words(csr_array((ones, bits, pointers), shape=shape))
        learned.ready[kind] = ReferenceSimilarity(words)
    made: ReferenceSimilarity = learned.ready[kind]
    return made
