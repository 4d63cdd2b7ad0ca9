"""Queries (spectra with candidate lists), molecule tables and training sets that channels read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import DESCRIPTORS, descriptors, parse_molecule
from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged, gather_indices, pointers, ranges
from mzseek.fragments import FragmentTable, fragment_table, join_tables, table_of
from mzseek.io import stable_hash
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches
from mzseek.similarity.packed import Words, pack_words, unpack_words
from mzseek.spectra import Spectrum

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.bytes_]  # first InChIKey blocks
MODES = {"positive": 1, "negative": -1}
_BATCH = 500  # molecules that a process reads at a time
_ROWS = 200_000


class Index(Protocol):
    """Stored fragments and fingerprints of a list of molecules."""

    kinds: tuple[str, ...]

    def fragments(self, rows: Ints) -> FragmentTable:
        """Fragments of the molecules at these rows."""

    def words(self, kind: str, rows: Ints) -> Words:
        """Packed fingerprints of the molecules at these rows."""


class Molecules:
    """A table of molecules, whose fragments and fingerprints are computed once and kept.

    Parameters
    ----------
    smiles : sequence of str
    fingerprint : str
        Kind of their fingerprints.
    stored : callable of an int array, optional
        Returns stored fingerprints of molecules, by row; by default they are computed.
    jobs : int, optional
        Processes; all cores by default.
    index, index_rows : Index and int64 array, optional
        Where the first ``len(index_rows)`` molecules are in an index; what it lacks is computed.

    Examples
    --------
    >>> table = Molecules(["CCO", "CO"], jobs=1)
    >>> table.compute(["rdkit"], fragments=True)
    >>> table.fingerprints(np.array([1]), "rdkit").shape, len(table.fragments.of(1))
    ((1, 4096), 3)
    """

    def __init__(
        self,
        smiles: Sequence[str],
        fingerprint: str = "morgan2",
        stored: Callable[[Ints], csr_array] | None = None,
        jobs: int | None = None,
        index: Index | None = None,
        index_rows: Ints | None = None,
    ) -> None:
        self.smiles, self.fingerprint = smiles, fingerprint
        self._stored, self.jobs, self._index = stored, jobs, index
        self._index_rows = np.empty(0, np.int64) if index_rows is None else index_rows
        self._fragments: FragmentTable | None = None
        self._words: dict[str, Words] = {}
        self._descriptors: dict[int, npt.NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self.smiles)

    def compute(
        self, kinds: Iterable[str] = (), *, fragments: bool = False, progress: Progress = silent
    ) -> None:
        """Compute fingerprints of these kinds, and fragments, in one pass over the molecules."""
        missing = [kind for kind in dict.fromkeys(kinds) if not self._has(kind)]
        fragments = fragments and self._fragments is None
        if self._index is not None:
            indexed = [kind for kind in missing if kind in self._index.kinds]
            missing = [kind for kind in missing if kind not in indexed]
            if indexed or fragments:
                rows = self._index_rows
                table, words = compute_batch(self.smiles[len(rows) :], indexed, fragments)
                for kind in indexed:
                    self._words[kind] = np.concatenate([self._index.words(kind, rows), words[kind]])
                if fragments:
                    self._fragments = join_tables([self._index.fragments(rows), table])
                    fragments = False
        if not missing and not fragments:
            return
        if fragments:
            fragment_table(["C"], jobs=1)  # compile here and cache on disk, not in each process
        tables: list[FragmentTable] = []
        parts: list[dict[str, Words]] = []
        work = partial(compute_batch, kinds=missing, with_fragments=fragments)
        done = 0
        for batch, (table, words) in in_batches(work, list(self.smiles), _BATCH, self.jobs):
            tables.append(table)
            parts.append(words)
            done += len(batch)
            progress("molecules", done, len(self))
        if fragments:
            self._fragments = join_tables(tables)
        for kind in missing:
            nothing = pack_words(csr_array((0, fingerprint_kind(kind).bits)))
            self._words[kind] = np.concatenate([nothing, *(words[kind] for words in parts)])

    def fingerprints(self, rows: npt.NDArray[np.integer], kind: str | None = None) -> csr_array:
        """0/1 rows of molecules, of the table's kind or of another."""
        rows, kind = np.asarray(rows, np.int64), kind or self.fingerprint
        if kind == self.fingerprint:
            return self._own_fingerprints[rows]
        return unpack_words(self.words(kind)[rows], fingerprint_kind(kind).bits)

    def words(self, kind: str) -> Words:
        """Fingerprints of all molecules, packed: shape (molecules, ⌈bits / 64⌉)."""
        if kind not in self._words:
            if self._stored and kind == self.fingerprint:
                self._words[kind] = pack_words(self._own_fingerprints)
            else:
                self.compute([kind])
        return self._words[kind]

    def descriptors(self, rows: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Descriptors of molecules (`mzseek.chem.molecules`), shape (rows, descriptors); cached."""
        indices = np.asarray(rows, np.int64).tolist()
        missing = [row for row in dict.fromkeys(indices) if row not in self._descriptors]
        values = descriptors([self.smiles[row] for row in missing])
        self._descriptors |= zip(missing, values, strict=True)
        nothing = np.empty((0, len(DESCRIPTORS)), np.float32)
        return np.stack([self._descriptors[row] for row in indices]) if indices else nothing

    @property
    def fragments(self) -> FragmentTable:
        """Fragments of all molecules of the table."""
        self.compute(fragments=True)
        assert self._fragments is not None
        return self._fragments

    def _has(self, kind: str) -> bool:
        return kind in self._words or (self._stored is not None and kind == self.fingerprint)

    @cached_property
    def _own_fingerprints(self) -> csr_array:
        if self._stored:
            return self._stored(np.arange(len(self)))
        return unpack_words(self.words(self.fingerprint), fingerprint_kind(self.fingerprint).bits)


def compute_batch(
    smiles: Sequence[str], kinds: Sequence[str], with_fragments: bool
) -> tuple[FragmentTable, dict[str, Words]]:
    """Fragments, if wanted, and packed fingerprints of some molecules, each parsed once."""
    molecules = [parse_molecule(text) for text in smiles]
    words = {kind: fingerprint_kind(kind).words(molecules) for kind in kinds}
    return table_of(molecules if with_fragments else []), words


class ExcludedAnalogs(NamedTuple):
    """Molecules that are compared with a spectrum by their own reference spectra.

    If they served as analogs, too, a known candidate would raise the scores of its isomers.
    ``rows`` (int64 array) are rows of the table ``molecules``.
    """

    molecules: Molecules
    rows: Ints


@dataclass(frozen=True, eq=False)
class Queries:
    """Spectra, each with a list of candidates; spectra of one molecule may share a list.

    Arrays over candidates have a row for each candidate of each spectrum, those of the first
    spectrum first.

    Attributes
    ----------
    spectra : sequence of Spectrum
    list_of : int64 array, shape (spectra,)
        The list of each.
    pointers : int64 array, shape (lists + 1,)
    members : int64 array
        Candidates of all lists, as rows of `molecules`; list i is
        ``members[pointers[i]:pointers[i + 1]]``.
    molecules : Molecules
    excluded_analogs : sequence of ExcludedAnalogs, optional
        For each list, molecules whose reference spectra must not serve as analogs; by default
        every known molecule may.
    labels : bool array, shape (rows,); empty where truths are not known
        Candidates that are the truth; each spectrum has one at least.
    inchikey14 : bytes array, shape (spectra,); empty where truths are not known
        First InChIKey block of each spectrum's molecule.
    """

    spectra: Sequence[Spectrum]
    list_of: Ints
    pointers: Ints
    members: Ints
    molecules: Molecules
    excluded_analogs: Sequence[ExcludedAnalogs] | None = None
    labels: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    inchikey14: Keys = field(default_factory=lambda: np.empty(0, "S14"))

    def __post_init__(self) -> None:
        if len(self.list_of) != len(self.spectra):
            raise EvidenceError(f"{len(self.list_of)} lists for {len(self.spectra)} spectra")
        if len(self.members) and not 0 <= self.members.min() <= self.members.max() < len(
            self.molecules
        ):
            raise EvidenceError(f"candidates are rows of a table of {len(self.molecules)}")

    @classmethod
    def of(
        cls, spectra: Sequence[Spectrum], candidates: Sequence[Sequence[str]], **table: object
    ) -> "Queries":
        """Spectra with the SMILES of the candidates of each; ``table`` goes to `Molecules`.

        Examples
        --------
        >>> spectrum = Spectrum(np.array([29.04]), np.array([1.0]), 47.05, "[M+H]+", 1, "a")
        >>> queries = Queries.of([spectrum, spectrum], [["CCO", "COC"], ["CCO"]])
        >>> queries.counts.tolist(), queries.candidates.tolist(), len(queries.molecules)
        ([2, 1], [0, 1, 0], 2)
        """
        row = {
            smiles: number
            for number, smiles in enumerate(dict.fromkeys(s for names in candidates for s in names))
        }
        members = np.array([row[smiles] for names in candidates for smiles in names], np.int64)
        sizes = [len(names) for names in candidates]
        molecules = Molecules(list(row), **table)  # type: ignore[arg-type]
        return cls(spectra, np.arange(len(sizes)), pointers(sizes), members, molecules)

    def __len__(self) -> int:
        return len(self.spectra)

    @cached_property
    def counts(self) -> Ints:
        """Candidates of each spectrum."""
        return np.asarray(np.diff(self.pointers)[self.list_of])

    @cached_property
    def member_of(self) -> Ints:
        """Index in `members` of each row's candidate."""
        return gather_indices(self.pointers, self.list_of)[1]

    @cached_property
    def candidates(self) -> Ints:
        """Row in `molecules` of each row's candidate."""
        return self.members[self.member_of]

    @cached_property
    def ragged(self) -> Ragged:
        """The lengths of the lists, spectrum by spectrum."""
        return Ragged(self.counts)

    @cached_property
    def modes(self) -> npt.NDArray[np.int8]:
        """1 for positive, −1 for negative, 0 where neither charge, adduct nor record states it."""
        return np.array([spectrum.polarity for spectrum in self.spectra], np.int8)

    def rows(self, spectra: npt.NDArray[np.integer]) -> Ints:
        """Rows of the candidates of some spectra."""
        starts = self.ragged.starts[spectra]
        return ranges(starts, starts + self.counts[spectra])[1]

    def find_rows(self, spectra: Ints, counts: Ints, candidates: Ints) -> Ints:
        """Rows of some of the candidates (so many of each spectrum, as rows of `molecules`).

        Candidates must be rising in each list.
        """
        lists = Ragged(np.diff(self.pointers)).list_index
        own_list = np.repeat(self.list_of[spectra], counts)
        keys = lists * len(self.molecules) + self.members
        member = np.searchsorted(keys, own_list * len(self.molecules) + candidates)
        first_row = np.repeat(self.ragged.starts[spectra], counts)
        return np.asarray(member - self.pointers[own_list] + first_row)

    def only(self, spectra: npt.NDArray[np.integer]) -> "Queries":
        """Some of the spectra, with their lists and labels."""
        return replace(
            self,
            spectra=[self.spectra[int(number)] for number in spectra],
            list_of=self.list_of[spectra],
            labels=self.labels[self.rows(spectra)] if len(self.labels) else self.labels,
            inchikey14=self.inchikey14[spectra] if len(self.inchikey14) else self.inchikey14,
        )

    def keep(self, rows: Flags) -> "Queries":
        """The same spectra with these candidates alone, each spectrum with a list of its own.

        A list may lose its truth, or all of its candidates.
        """
        counts = np.bincount(self.ragged.list_index[rows], minlength=len(self))
        return replace(
            self,
            list_of=np.arange(len(self)),
            pointers=pointers(counts),
            members=self.candidates[rows],
            excluded_analogs=None,
            labels=self.labels[rows] if len(self.labels) else self.labels,
        )

    def in_parts(self, rows: int = _ROWS) -> Iterator[tuple[slice, "Queries"]]:
        """A few spectra at a time, each part with its rows in the whole."""
        ends = pointers(self.counts)
        first = 0
        while first < len(self):
            last = max(int(np.searchsorted(ends, ends[first] + rows, side="right")) - 1, first + 1)
            yield slice(ends[first], ends[last]), self.only(np.arange(first, last))
            first = last

    def molecule_weights(self) -> npt.NDArray[np.float64]:
        """Weights of spectra under which every molecule counts once."""
        _, molecule, counts = np.unique(self.inchikey14, return_inverse=True, return_counts=True)
        return 1.0 / counts[molecule]

    def in_canonical_order(self) -> "Queries":
        """The same labelled queries, spectra by molecule and content, candidates by SMILES.

        Every spectrum gets a list of its own.
        """
        hashes = np.array([content_hash(spectrum) for spectrum in self.spectra], np.int64)
        queries = self.only(np.lexsort((hashes, self.inchikey14)))
        rank = np.empty(len(queries.molecules), np.int64)
        by_smiles = np.argsort(np.array(queries.molecules.smiles, object), kind="stable")
        rank[by_smiles] = np.arange(len(rank))
        order = np.lexsort((rank[queries.candidates], queries.ragged.list_index))
        return replace(
            queries,
            list_of=np.arange(len(queries)),
            pointers=pointers(queries.counts),
            members=queries.candidates[order],
            labels=queries.labels[order],
        )


def content_hash(spectrum: Spectrum) -> int:
    """Stable hash of a spectrum, whatever the order of its peaks."""
    order = np.lexsort((spectrum.intensities, spectrum.mz))
    numbers = np.concatenate(
        [spectrum.mz[order], spectrum.intensities[order], [spectrum.precursor_mz]]
    )
    return stable_hash(numbers.astype(np.float64).tobytes(), spectrum.identifier.encode())


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What a channel is fitted on."""

    spectra: Sequence[Spectrum]
    molecule: Ints  # row of each spectrum's molecule in `molecules`
    molecules: Molecules  # the known ones
    inchikey14: Keys  # of each molecule
    queries: Queries  # some of the spectra, with candidates and labels

    def without(self, inchikey14: Keys) -> "TrainingSet":
        """All but the spectra and queries of these molecules."""
        left = np.flatnonzero(~np.isin(self.inchikey14[self.molecule], inchikey14))
        queries = np.flatnonzero(~np.isin(self.queries.inchikey14, inchikey14))
        return replace(
            self,
            spectra=[self.spectra[int(number)] for number in left],
            molecule=self.molecule[left],
            queries=self.queries.only(queries),
        )

    @property
    def molecules_used(self) -> Keys:
        """First InChIKey blocks of the molecules of spectra and queries, each once."""
        return np.union1d(self.inchikey14[self.molecule], self.queries.inchikey14)


@dataclass(frozen=True, eq=False)
class ReferenceSpectra:
    """Reference spectra that are added after fitting."""

    peaks: PeakLists  # cleaned as those of the training set were
    ions: PrecursorIons
    molecule: Ints  # index of each spectrum's molecule in `smiles`
    smiles: Sequence[str]
    inchikey14: Keys  # of each molecule

    def __len__(self) -> int:
        return len(self.molecule)

    def only(self, spectra: npt.NDArray[np.integer]) -> "ReferenceSpectra":
        """Some of the spectra, in this order."""
        starts, ends = self.peaks.pointers[spectra], self.peaks.pointers[spectra + 1]
        new, peaks = ranges(starts, ends)
        return replace(
            self,
            peaks=PeakLists(new, self.peaks.values[peaks], self.peaks.weights[peaks]),
            ions=PrecursorIons(self.ions.precursors[spectra], self.ions.modes[spectra]),
            molecule=self.molecule[spectra],
        )

    def in_canonical_order(self) -> "ReferenceSpectra":
        """Merge molecules by InChIKey block and drop equal spectra; both sorted by content."""
        keys, molecule_of = np.unique(self.inchikey14, return_inverse=True)
        smiles: dict[int, str] = {}
        pairs = zip(molecule_of.tolist(), self.smiles, strict=True)
        for number, text in sorted(pairs, key=lambda pair: (len(pair[1]), pair[1])):
            smiles.setdefault(number, text)
        used, molecule = np.unique(molecule_of[self.molecule], return_inverse=True)
        first: dict[tuple[int, bytes], int] = {}
        for number, key in enumerate(zip(molecule.tolist(), self.contents(), strict=True)):
            first.setdefault(key, number)
        merged = replace(
            self,
            molecule=np.asarray(molecule, np.int64),
            smiles=[smiles[number] for number in used.tolist()],
            inchikey14=keys[used],
        )
        return merged.only(np.array([first[key] for key in sorted(first)], np.int64))

    def contents(self) -> list[bytes]:
        """Bytes of each spectrum: equal for equal spectra, and for no others."""
        ends = self.peaks.pointers.tolist()
        return [
            precursor.tobytes() + mode.tobytes() + self.peaks.values[low:high].tobytes()
            + self.peaks.weights[low:high].tobytes()
            for precursor, mode, low, high in zip(
                self.ions.precursors, self.ions.modes, ends[:-1], ends[1:], strict=True
            )
        ]  # fmt: skip
