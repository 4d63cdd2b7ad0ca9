"""Channel: structural similarity to molecules whose reference spectra are similar."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

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
from mzseek.evidence.model import Channel, ChannelState, ExtendedState, Features
from mzseek.evidence.queries import Flags, Ints, Molecules, Queries, ReferenceSpectra, TrainingSet
from mzseek.library import Library
from mzseek.library.library import WIDTH, analog_lists
from mzseek.library.similarity import PeakLists, PrecursorIons, normalised, peak_lists
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_threads
from mzseek.similarity.packed import ReferenceSimilarity, fingerprint_hashes, pack_words
from mzseek.spectra import Spectrum
from mzseek.spectra.spectrum import MAX_MZ

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]
Arrays = dict[str, npt.NDArray[Any]]
_BLOCK = 256  # rows of the factor that are mirrored at a time
_BINS = round(MAX_MZ / WIDTH)
_OF_NEAREST = ("nearest", "mean", "sharp", "nearest × best", "mean × best", "sharp × best")
_NAMES = (*_OF_NEAREST, "regression", "sharp regression")
_SAME = 0.9999  # Tanimoto similarity from which on a fingerprint does not tell molecules apart
_MAX_MOLECULES = 10_000  # with those added: the regression takes their third power
_SAME_MASS = 0.5  # Da: isomers are nearer, homologues are not
_BIN = 0.01  # required by the index, which bins analogs by its own width


class Regression:
    """Kernel ridge regression over known molecules, each with its spectra of an ion mode as one.

    Ion modes have no bins in common, so that each is a regression of its own; its kernel is
    factorised when a spectrum of the mode first comes.

    Parameters
    ----------
    points : int64 array, shape (points,), rising
        Twice the molecule's index, plus one in negative mode.
    rows : CSR, shape (points, bins)
        Its spectra as one vector of length 1.
    ridge : float
    """

    def __init__(self, points: Ints, rows: csr_array, ridge: float) -> None:
        self._points, self.rows, self._ridge = points, rows, ridge
        # Without the bins that no point has, a product takes no time for millions of empty ones.
        self._bins, bins = np.unique(rows.indices, return_inverse=True)
        shape = (rows.shape[0], len(self._bins))
        self._compact = csr_array((rows.data, bins, rows.indptr), shape=shape)
        self._factors: dict[bool, Values] = {}
        self._solved: dict[tuple[bool, bytes, bytes], Values] = {}

    @property
    def molecule(self) -> Ints:
        """The molecule of each point."""
        return self._points // 2

    @classmethod
    def of(
        cls, peaks: PeakLists, ions: PrecursorIons, molecule: Ints, ridge: float
    ) -> "Regression":
        """Average the spectra of each known molecule.

        Parameters
        ----------
        peaks, ions
            Of all spectra.
        molecule : int array, shape (spectra,)
        ridge : float
            Above 0; the larger, the more the weights become plain similarities.
        """
        point_of = 2 * np.asarray(molecule, np.int64) + (ions.modes < 0)
        points, index = np.unique(point_of, return_inverse=True)
        share = 1 / np.bincount(index)[index]
        shape = (len(points), len(point_of))
        mean = csr_array((share, (index, np.arange(len(point_of)))), shape=shape)
        sides = [_unit(mean @ side) for side in _sides(peaks, ions)]
        return cls(points, csr_array(hstack(sides, format="csr")), ridge)

    def weights(self, peaks: PeakLists, ions: PrecursorIons) -> Values:
        """Weights of the points for spectra: shape (points, spectra).

        A spectrum that has nothing in common with any point gives each the weight 0. The weights
        of the last spectra are cached: a batch asks for them once for the candidates, once for the
        background, and once for each adduct hypothesis.
        """
        spectra = csr_array(hstack(_sides(peaks, ions), format="csr"))
        negative = ions.modes < 0
        ends = zip(spectra.indptr[:-1].tolist(), spectra.indptr[1:].tolist(), strict=True)
        keys = [
            (bool(mode), spectra.indices[start:end].tobytes(), spectra.data[start:end].tobytes())
            for mode, (start, end) in zip(negative, ends, strict=True)
        ]
        index = {key: number for number, key in enumerate(keys)}
        new = [key for key in index if key not in self._solved]
        numbers = np.array([index[key] for key in new], np.int64)
        solved = dict(zip(new, self._solve(spectra[numbers], negative[numbers]), strict=True))
        self._solved = {key: self._solved[key] for key in index if key not in solved} | solved
        nothing = np.empty((len(self._points), 0), np.float32)
        return np.column_stack([nothing, *(self._solved[key] for key in keys)])

    def _solve(self, spectra: csr_array, is_negative: Flags) -> Values:
        """Weights of the points as rows: shape (spectra, points)."""
        weights = np.zeros((spectra.shape[0], len(self._points)), np.float32)
        spectra = self._in_bins(spectra)
        for negative in (False, True):
            points = np.flatnonzero((self._points % 2 == 1) == negative)
            queries = np.flatnonzero(is_negative == negative)
            if not len(points) or not len(queries):
                continue
            shared = (self._compact[points] @ spectra[queries].T).toarray()
            right = np.ascontiguousarray(shared.T, np.float64)
            solve = _solve_by_rows if is_plain() else _solve
            solve(self._factor(points, negative), right)
            weights[np.ix_(queries, points)] = right
        return weights

    def _in_bins(self, spectra: csr_array) -> csr_array:
        """Return spectra in the bins that points have."""
        column = np.searchsorted(self._bins, spectra.indices)
        column[column == len(self._bins)] = 0
        known = self._bins[column] == spectra.indices if len(self._bins) else column > 0
        pointers = np.concatenate([[0], np.cumsum(known)])[spectra.indptr]
        shape = (spectra.shape[0], len(self._bins))
        return csr_array((spectra.data[known], column[known], pointers), shape=shape)

    def by_molecule(self, peaks: PeakLists, ions: PrecursorIons, molecules: int) -> Values:
        """The same summed by molecule: shape (molecules, spectra)."""
        weights = self.weights(peaks, ions)
        summed = np.zeros((molecules, weights.shape[1]), np.float32)
        for negative in (False, True):  # a molecule has one point of each mode, at the most
            points = np.flatnonzero((self._points % 2 == 1) == negative)
            summed[self.molecule[points]] += weights[points]
        return summed

    def _factor(self, points: npt.NDArray[np.intp], negative: bool) -> Values:
        """Return the Cholesky factor L of an ion mode's kernel, with Lᵀ above it; cached."""
        if negative not in self._factors:
            rows = self.rows[points]
            kernel = (rows @ rows.T).toarray()
            kernel[np.diag_indices_from(kernel)] += self._ridge
            with threadpool_limits(1, "blas"):
                # The transpose is the same matrix, in the order that LAPACK works on in place.
                lower, _ = cho_factor(kernel.T, lower=True, overwrite_a=True, check_finite=False)
            self._factors[negative] = _mirrored(lower.T)
        return self._factors[negative]


def _mirrored(upper: npt.NDArray[np.floating]) -> Values:
    """Return a symmetric matrix with the upper triangle of another one."""
    symmetric = np.ascontiguousarray(upper, np.float32)
    for start in range(0, len(symmetric), _BLOCK):
        end = start + _BLOCK
        block = np.triu(symmetric[start:end, start:end])
        symmetric[start:end, start:end] = block + np.triu(block, 1).T
        symmetric[end:, start:end] = symmetric[start:end, end:].T
    return symmetric


# Not `scipy.linalg.cho_solve`: BLAS adds in an order that depends on the number of right sides.
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
                for other in range(column + 1, last):
                    rows[row, other] -= rows[row, column] * factor[column, other]
            if last < size:
                a, b, c, d = (
                    rows[row, first], rows[row, first + 1], rows[row, first + 2],
                    rows[row, first + 3],
                )  # fmt: skip
                for other in range(last, size):
                    value = rows[row, other] - a * factor[first, other]
                    value -= b * factor[first + 1, other]
                    value -= c * factor[first + 2, other]
                    rows[row, other] = value - d * factor[first + 3, other]
    last = size
    while last > 0:
        first = max(last - 4, 0)
        for row in range(len(rows)):
            for column in range(last - 1, first - 1, -1):
                rows[row, column] /= factor[column, column]
                for other in range(first, column):
                    rows[row, other] -= rows[row, column] * factor[column, other]
            if first > 0:
                a, b, c, d = (
                    rows[row, last - 1], rows[row, last - 2], rows[row, last - 3],
                    rows[row, last - 4],
                )  # fmt: skip
                for other in range(first):
                    value = rows[row, other] - a * factor[last - 1, other]
                    value -= b * factor[last - 2, other]
                    value -= c * factor[last - 3, other]
                    rows[row, other] = value - d * factor[last - 4, other]
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

    Negative mode has bins of its own: its peaks mean other things. Weights are fourth roots of
    heights: small peaks tell more of a molecule than a library search gives them.
    """
    negative = ions.modes < 0
    sides = []
    for side in analog_lists(peaks, ions):
        side = normalised(side._replace(weights=np.sqrt(side.weights)), square=0.5)
        shift = np.repeat(np.where(negative, _BINS, 0), np.diff(side.pointers))
        columns = side.values.astype(np.int64) + shift
        weights = side.weights.astype(np.float32)
        shape = (len(negative), 2 * _BINS)
        sides.append(csr_array((weights, columns, side.pointers), shape=shape))
    return sides


def _unit(rows: csr_array) -> csr_array:
    """Rows with squares that sum to a half, as those of single spectra do."""
    square = np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1)
    scale = np.sqrt(np.divide(0.5, square, out=np.zeros(len(square)), where=square > 0))
    return csr_array(diags_array(scale) @ rows).astype(np.float32)


@dataclass(frozen=True)
class AnalogOptions:
    """Options of the analog channel."""

    top: int = option(30, "molecules of the nearest reference spectra", at_least=1, at_most=1000)
    likeness: str = option("morgan2,rdkit4", "fingerprints of the structural similarity")
    doubt: float = option(1.0, "ridge penalty of the regression", above=0)


class Analogs(Channel):
    """Structural similarity to molecules whose reference spectra are similar.

    The state holds the reference spectra and the masses and fingerprints of their molecules.
    """

    name: ClassVar[str] = "analogs"
    kind: ClassVar[str] = "analogy"
    options_type: ClassVar[type] = AnalogOptions

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.kinds = tuple(kind.strip() for kind in self.options.likeness.split(","))
        for kind in self.kinds:
            check_name(FINGERPRINTS, kind, "analogs.likeness", EvidenceError)
        self.needs_fingerprints = self.kinds
        self.feature_names = tuple(f"{kind}, {name}" for kind in self.kinds for name in _NAMES)

    def fit(self, training_set: TrainingSet, progress: Progress = silent) -> ChannelState:
        """Store the reference spectra and the fingerprints of their molecules."""
        molecules, molecule_of = np.unique(training_set.molecule, return_inverse=True)
        references = peak_lists(training_set.spectra)
        arrays = self._arrays(*references, molecule_of, training_set.molecules, molecules)
        return ChannelState(arrays, {}, training_set.molecules_used)

    def _arrays(
        self,
        peaks: PeakLists,
        ions: PrecursorIons,
        molecule_of: Ints,
        table: Molecules,
        molecules: npt.NDArray[np.integer],
    ) -> Arrays:
        """State of reference spectra, and of some of the molecules of a table."""
        arrays: Arrays = {
            "pointers": peaks.pointers,
            "mz": peaks.values,
            "heights": peaks.weights,
            "precursors": ions.precursors,
            "modes": ions.modes,
            "molecule_of": np.asarray(molecule_of, np.int64),
            "masses": np.array([exact_mass(table.smiles[int(n)]) for n in molecules], np.float32),
        }
        for kind in self.kinds:
            rows = table.fingerprints(molecules, kind)
            arrays[f"bit_pointers.{kind}"] = np.asarray(rows.indptr, np.int64)
            arrays[f"bits.{kind}"] = np.asarray(rows.indices, np.int32)
        return arrays

    def features(self, state: ChannelState, queries: Queries) -> Features:
        """Similarity of candidates to the molecules of similar spectra, weighted by theirs."""
        values = np.zeros((queries.ragged.total, len(self.feature_names)), np.float32)
        peaks, ions = peak_lists(queries.spectra)
        nearest, spectral = self._nearest(state, peaks, ions)
        references = [_reference_similarity(state, kind) for kind in self.kinds]
        words = [queries.molecules.words(kind) for kind in self.kinds]
        masses = _state_masses(state).astype(np.float64)
        weights = self._regression(state).by_molecule(peaks, ions, len(masses))
        order = np.argsort(queries.list_of, kind="stable")
        ends = np.flatnonzero(np.diff(queries.list_of[order])) + 1
        by_list = np.split(order, ends) if len(order) else []
        work = [(number, spectra) for number in range(len(self.kinds)) for spectra in by_list]

        def score(task: int) -> None:
            number, spectra = work[task]
            reference = references[number]
            own_list = int(queries.list_of[spectra[0]])
            members = queries.members[slice(*queries.pointers[own_list : own_list + 2])]
            if not len(members):
                return

            def among(molecules: Molecules, rows: Ints) -> Flags:
                return _among(molecules, rows, self.kinds[number], reference, masses)

            itself = among(queries.molecules, members)
            usable = np.ones(len(masses), np.bool_)
            if queries.excluded_analogs is not None:
                usable = ~among(*queries.excluded_analogs[own_list])
            analogs = np.unique(nearest[spectra])
            analogs = analogs[analogs >= 0]
            regressed, similarities = reference.to_rows(
                words[number][members], weights[:, spectra],
                included=usable, maybe_same=itself, same=_SAME, selected=analogs,
            )  # fmt: skip
            by_nearest = np.zeros((len(spectra), len(members), len(_OF_NEAREST)), np.float32)
            for position, spectrum in enumerate(spectra):
                there = nearest[spectrum] >= 0
                columns = np.searchsorted(analogs, nearest[spectrum][there])
                by_nearest[position] = nearest_features(
                    similarities[:, columns], spectral[spectrum][there]
                )
            rows = queries.ragged.starts[spectra][:, None] + np.arange(len(members))
            columns = slice(number * len(_NAMES), (number + 1) * len(_NAMES))
            values[rows, columns] = np.concatenate([by_nearest, regressed.transpose(1, 0, 2)], 2)

        in_threads(score, len(work))
        return values

    def molecule_weights(self, state: ChannelState, spectra: Sequence[Spectrum]) -> Values:
        """Return the weights of the known molecules in the regression: (molecules, spectra)."""
        molecules = len(_state_masses(state))
        return self._regression(state).by_molecule(*peak_lists(spectra), molecules)

    def molecule_bits(self, state: ChannelState, kind: str) -> csr_array:
        """Return the fingerprints of the known molecules, of one of the channel's kinds."""
        return _bits(state, kind)

    def use_library(self, state: ChannelState, library: Library) -> None:
        """Search the library's analog index if its spectra are those of the state."""
        state.cache["library"] = library

    def extend(self, state: ChannelState, references: ReferenceSpectra) -> ExtendedState:
        """Add reference spectra, but for those that are there already.

        A molecule that is known is found by its fingerprints, all kinds of them; where no known
        one has these, it is left out, so that no molecule counts twice.
        """
        references = references.in_canonical_order()
        known = len(state.arrays[f"bit_pointers.{self.kinds[0]}"]) - 1
        is_known = np.isin(references.inchikey14, state.inchikey14)
        # InChIKey blocks are digests: the first of them are a random sample.
        new = np.flatnonzero(~is_known)[: max(_MAX_MOLECULES - known, 0)]
        smiles = np.array(references.smiles, object)
        row = np.full(len(smiles), -1, np.int64)
        row[is_known] = self._known_rows(state, smiles[is_known].tolist())
        row[new] = known + np.arange(len(new))
        present = _spectra_of(state, row[is_known])
        spectra = zip(row[references.molecule].tolist(), references.contents(), strict=True)
        added = [at for at, key in enumerate(spectra) if key[0] >= 0 and key not in present]
        left_out = int((row < 0).sum())
        if not added:
            return ExtendedState(state, 0, 0, left_out)
        more = references.only(np.array(added, np.int64))
        _state_masses(state)  # refuses a state without
        arrays, table = dict(state.arrays), self._table(smiles[new].tolist())
        molecule_of, rows = row[more.molecule], np.arange(len(new))
        for name, array in self._arrays(more.peaks, more.ions, molecule_of, table, rows).items():
            end = array[1:] + arrays[name][-1] if "pointers" in name else array
            arrays[name] = np.concatenate([arrays[name], end]).astype(array.dtype)
        keys = np.union1d(state.inchikey14, references.inchikey14[new])
        extended = ChannelState(arrays, state.metadata, keys)
        return ExtendedState(extended, len(added), len(new), left_out)

    def _known_rows(self, state: ChannelState, smiles: list[str]) -> Ints:
        """Rows of molecules among the known, by their fingerprints; −1 where none has these."""
        known = np.hstack([_reference_similarity(state, kind).references for kind in self.kinds])
        row_of = {words.tobytes(): row for row, words in reversed(list(enumerate(known)))}
        table = self._table(smiles)
        words = np.hstack([table.words(kind) for kind in self.kinds])
        return np.array([row_of.get(row.tobytes(), -1) for row in words], np.int64)

    def _table(self, smiles: list[str]) -> Molecules:
        table = Molecules(smiles, self.kinds[0], jobs=1)
        table.compute(self.kinds)
        return table

    def _nearest(
        self, state: ChannelState, peaks: PeakLists, ions: PrecursorIons
    ) -> tuple[Ints, Floats]:
        """Molecules of the nearest reference spectra (−1: none), and the spectral similarities."""
        molecule_of = state.arrays["molecule_of"]
        if "index" not in state.cache:
            from mzseek.library.library import Index  # compiled code, which takes time to load

            library: Library | None = state.cache.get("library")
            if library is not None and all(
                np.array_equal(array, other)
                for pair in zip(_references(state), (library.peaks, library.ions), strict=True)
                for array, other in zip(*pair, strict=True)
            ):
                state.cache["index"] = library.index("analog")
            else:
                state.cache["index"] = Index("analog", *_references(state), _BIN)
        allowed = np.ones(len(molecule_of), np.bool_)
        top = min(self.options.top, len(molecule_of))
        best = state.cache["index"].search(peaks, ions, top, molecule_of, allowed)
        return np.where(best.records >= 0, molecule_of[best.records], -1), best.scores

    def _regression(self, state: ChannelState) -> Regression:
        if "regression" not in state.cache:
            state.cache["regression"] = Regression.of(
                *_references(state), state.arrays["molecule_of"], self.options.doubt
            )
        regression: Regression = state.cache["regression"]
        return regression


def _among(
    molecules: Molecules, rows: Ints, kind: str, reference: ReferenceSimilarity, masses: Floats
) -> Flags:
    """Return which known molecules are among the rows of a table, by fingerprint and mass.

    In lists that a ranker is fitted on, the truth is never a known molecule, and some decoys are:
    to be known would count against a candidate, so that none is its own analog. Where
    `Queries.excluded_analogs` says so, it is no analog of other candidates either: its spectra are
    matches, and would raise the scores of its isomers. Fingerprints do not distinguish a chain
    from a longer one, and masses do: that is an analog.
    """
    listed = fingerprint_hashes(molecules.words(kind)[rows])
    present = np.isin(reference.hashes, listed)
    for known in np.flatnonzero(present).tolist():
        same = rows[listed == reference.hashes[known]].tolist()
        present[known] = (
            min(abs(_mass(molecules.smiles[row]) - masses[known]) for row in same) <= _SAME_MASS
        )
    return present


@lru_cache(maxsize=10_000)
def _mass(smiles: str) -> float:
    return exact_mass(smiles)


def _state_masses(state: ChannelState) -> Values:
    if "masses" not in state.arrays:
        raise EvidenceError("analogs were fitted by another version of mzseek; fit them again")
    return state.arrays["masses"]


def nearest_features(
    tanimoto: npt.NDArray[np.floating], spectral: npt.NDArray[np.floating]
) -> Features:
    """Features of candidates by the nearest reference spectra.

    Parameters
    ----------
    tanimoto : array, shape (candidates, analogs)
        Structural similarity of candidates to the molecules of these spectra.
    spectral : array, shape (analogs,)
        Similarity of the spectra to the query.

    Examples
    --------
    >>> nearest_features(np.array([[1.0, 0.5]]), np.array([0.5, 0.5])).tolist()
    [[0.5, 0.75, 0.125, 0.25, 0.375, 0.0625]]
    """
    if not len(spectral):
        return np.zeros((len(tanimoto), len(_OF_NEAREST)), np.float32)
    nearest = (spectral * tanimoto).max(1)
    # Not `@`: the order in which a matrix product adds depends on the number of threads.
    mean = np.einsum("ij,j->i", tanimoto, spectral**2) / (spectral**2).sum()
    sharp = (spectral**3 * tanimoto**2).max(1)
    plain = np.stack([nearest, mean, sharp], 1)
    return np.hstack([plain, spectral.max() * plain]).astype(np.float32)


def _references(state: ChannelState) -> tuple[PeakLists, PrecursorIons]:
    arrays = state.arrays
    peaks = PeakLists(arrays["pointers"], arrays["mz"], arrays["heights"])
    return peaks, PrecursorIons(arrays["precursors"], arrays["modes"])


def _spectra_of(state: ChannelState, molecules: Ints) -> set[tuple[int, bytes]]:
    """Reference spectra of some known molecules: (row of the molecule, content)."""
    molecule_of = state.arrays["molecule_of"]
    references = ReferenceSpectra(*_references(state), molecule_of, (), np.empty(0, "S14"))
    selected = references.only(np.flatnonzero(np.isin(molecule_of, molecules)))
    return set(zip(selected.molecule.tolist(), selected.contents(), strict=True))


def _reference_similarity(state: ChannelState, kind: str) -> ReferenceSimilarity:
    """Fingerprints of the known molecules, packed once."""
    if kind not in state.cache:
        state.cache[kind] = ReferenceSimilarity(pack_words(_bits(state, kind)))
    reference: ReferenceSimilarity = state.cache[kind]
    return reference


def _bits(state: ChannelState, kind: str) -> csr_array:
    pointers, bits = state.arrays[f"bit_pointers.{kind}"], state.arrays[f"bits.{kind}"]
    shape = (len(pointers) - 1, FINGERPRINTS[kind].bits)
    return csr_array((np.ones(len(bits), np.int32), bits, pointers), shape=shape)
