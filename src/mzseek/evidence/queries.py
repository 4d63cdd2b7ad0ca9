"""Labelled queries, candidate lists and molecule tables that channels read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem.adducts import parse_adduct
from mzseek.chem.fingerprinting import fingerprint_kind
from mzseek.chem.molecules import DESCRIPTORS, descriptors, parse_molecule
from mzseek.core.errors import EvidenceError
from mzseek.core.ragged import Ragged, gather, gather_indices, pointers, ranges
from mzseek.datasets.layout import IDENTITY_BITS
from mzseek.datasets.prepared import Prepared
from mzseek.fragments import FragmentTable, fragment_table, join_tables, table_of
from mzseek.library.similarity import PeakLists, PrecursorIons
from mzseek.parallel.engine import Progress, silent
from mzseek.parallel.processes import in_batches
from mzseek.similarity.packed import Words, pack_words, unpack_words
from mzseek.spectra import Spectrum

Ints = npt.NDArray[np.int64]
_BATCH = 500  # molecules that a process reads at a time


class Index(Protocol):
    """What was read of a list of molecules before, and kept."""

    kinds: tuple[str, ...]

    def fragments(self, places: Ints) -> FragmentTable:
        """Fragments of the molecules at these places."""

    def words(self, kind: str, places: Ints) -> Words:
        """Packed fingerprints of the molecules at these places."""


@dataclass(frozen=True, eq=False)
class Indexed:
    """Where molecules stand in a list that was read before.

    Attributes
    ----------
    index : Index
    places : int64 array, shape (indexed,)
        Of the first molecules of a table; those after them are not in the index.
    """

    index: Index
    places: Ints


class Molecules:
    """A table of molecules.

    Fragments and fingerprints that are not stored are computed from the SMILES. `read` computes
    several of them at once, so that each SMILES is parsed once; what is asked for later is
    computed then. All is kept.

    Parameters
    ----------
    smiles : sequence of str
    fingerprint : str
        Kind of their fingerprints.
    rows : callable of an int array, optional
        Fingerprints of molecules, by place; computed from the SMILES by default.
    jobs : int, optional
        Processes that read molecules; all cores by default.
    indexed : Indexed, optional
        Where what was read of them before is kept; what it lacks is computed.

    Examples
    --------
    >>> table = Molecules(["CCO", "CO"], jobs=1)
    >>> table.read(["rdkit"], fragments=True)
    >>> table.fingerprints(np.array([1]), "rdkit").shape, len(table.fragments.of(1))
    ((1, 4096), 3)
    """

    def __init__(
        self,
        smiles: Sequence[str],
        fingerprint: str = "morgan2",
        rows: Callable[[Ints], csr_array] | None = None,
        jobs: int | None = None,
        indexed: Indexed | None = None,
    ) -> None:
        self.smiles, self.fingerprint = smiles, fingerprint
        self._stored, self._jobs, self._indexed = rows, jobs, indexed
        self._fragments: FragmentTable | None = None
        self._words: dict[str, Words] = {}
        self._rows: csr_array | None = None
        self._numbers: dict[int, npt.NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self.smiles)

    def read(
        self, kinds: Iterable[str] = (), *, fragments: bool = False, progress: Progress = silent
    ) -> None:
        """Compute what is wanted and not there yet, all of it in one pass over the molecules.

        Parameters
        ----------
        kinds : iterable of str
            Fingerprints.
        fragments : bool
        progress : callable of (stage, done, total)
        """
        if self._indexed is not None:
            self._look_up(kinds, fragments)
        missing = [kind for kind in dict.fromkeys(kinds) if not self._has(kind)]
        without = fragments and self._fragments is None
        if not missing and not without:
            return
        if without:
            fragment_table(["C"], jobs=1)  # compiled here and kept on disk, and not by each process
        tables: list[FragmentTable] = []
        words: dict[str, list[Words]] = {kind: [] for kind in missing}
        work = partial(read_batch, kinds=missing, with_fragments=without)
        done = 0
        for batch, (table, bits) in in_batches(work, list(self.smiles), _BATCH, self._jobs):
            tables.append(table)
            for kind in missing:
                words[kind].append(bits[kind])
            done += len(batch)
            progress("molecules", done, len(self))
        if without:
            self._fragments = join_tables(tables)
        for kind, parts in words.items():
            nothing = pack_words(csr_array((0, fingerprint_kind(kind).bits)))
            self._words[kind] = np.concatenate([nothing, *parts])

    def fingerprints(self, wanted: npt.NDArray[np.integer], kind: str | None = None) -> csr_array:
        """0/1 rows of molecules, of the table's kind or of another."""
        asked, kind = np.asarray(wanted, np.int64), kind or self.fingerprint
        if kind == self.fingerprint:
            return self._own_rows()[asked]
        return unpack_words(self.words(kind)[asked], fingerprint_kind(kind).bits)

    def words(self, kind: str) -> Words:
        """Fingerprints of all molecules, packed: shape (molecules, ⌈bits / 64⌉)."""
        if kind not in self._words:
            if self._stored and kind == self.fingerprint:
                self._words[kind] = pack_words(self._own_rows())
            else:
                self.read([kind])
        return self._words[kind]

    def descriptors(self, wanted: npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        """Plain numbers of molecules, see `mzseek.chem.molecules`: shape (wanted, numbers).

        What learns again and again without some of them asks for the same ones.
        """
        asked = np.asarray(wanted, np.int64).tolist()
        missing = [each for each in dict.fromkeys(asked) if each not in self._numbers]
        found = descriptors([self.smiles[each] for each in missing])
        self._numbers |= zip(missing, found, strict=True)
        nothing = np.empty((0, len(DESCRIPTORS)), np.float32)
        return np.stack([self._numbers[each] for each in asked]) if asked else nothing

    @property
    def fragments(self) -> FragmentTable:
        """Fragments of all molecules of the table."""
        self.read(fragments=True)
        assert self._fragments is not None
        return self._fragments

    def _look_up(self, kinds: Iterable[str], fragments: bool) -> None:
        """What is wanted, not there yet, and in the index."""
        assert self._indexed is not None
        index, places = self._indexed.index, self._indexed.places
        wanted = [kind for kind in kinds if kind in index.kinds and not self._has(kind)]
        with_fragments = fragments and self._fragments is None
        if not wanted and not with_fragments:
            return
        table, words = read_batch(self.smiles[len(places) :], wanted, with_fragments)
        for kind in wanted:
            self._words[kind] = np.concatenate([index.words(kind, places), words[kind]])
        if with_fragments:
            self._fragments = join_tables([index.fragments(places), table])

    def _has(self, kind: str) -> bool:
        return kind in self._words or (self._stored is not None and kind == self.fingerprint)

    def _own_rows(self) -> csr_array:
        """Fingerprints of the table's kind, as rows: looked up once."""
        if self._rows is None:
            if self._stored:
                self._rows = self._stored(np.arange(len(self)))
            else:
                kind = self.fingerprint
                self._rows = unpack_words(self.words(kind), fingerprint_kind(kind).bits)
        return self._rows


def read_batch(
    smiles: Sequence[str], kinds: Sequence[str], with_fragments: bool
) -> tuple[FragmentTable, dict[str, Words]]:
    """Fragments, if wanted, and packed fingerprints of some molecules, each parsed once."""
    molecules = [parse_molecule(text) for text in smiles]
    words = {kind: fingerprint_kind(kind).words(molecules) for kind in kinds}
    return table_of(molecules if with_fragments else []), words


MODES = {"positive": 1, "negative": -1}
_ROWS = 200_000


class NotAnalogs(NamedTuple):
    """Molecules that are compared with a spectrum by their own reference spectra.

    If these served as analogs, too, a known candidate would raise the scores of its isomers.

    Attributes
    ----------
    molecules : Molecules
    rows : int64 array
        Places in `molecules`.
    """

    molecules: Molecules
    rows: Ints


@dataclass(frozen=True, eq=False)
class Lists:
    """Spectra, each with a list of candidates; spectra of one molecule may share theirs.

    What is asked of a channel has a row for each candidate of each spectrum, the candidates of
    the first spectrum first.

    Attributes
    ----------
    spectra : sequence of Spectrum
    list_of : int64 array, shape (spectra,)
        The list of each.
    pointers : int64 array, shape (lists + 1,)
    members : int64 array
        Candidates of all lists, as places in `molecules`; list i is
        ``members[pointers[i]:pointers[i + 1]]``.
    molecules : Molecules
    not_analogs : sequence of NotAnalogs, optional
        For each list, molecules whose reference spectra must not serve as analogs; by default
        every known molecule may.
    """

    spectra: Sequence[Spectrum]
    list_of: Ints
    pointers: Ints
    members: Ints
    molecules: Molecules
    not_analogs: Sequence[NotAnalogs] | None = None

    def __post_init__(self) -> None:
        if len(self.list_of) != len(self.spectra):
            raise EvidenceError(f"{len(self.list_of)} lists for {len(self.spectra)} spectra")
        if len(self.members) and not 0 <= self.members.min() <= self.members.max() < len(
            self.molecules
        ):
            raise EvidenceError(f"candidates are places in a table of {len(self.molecules)}")

    @classmethod
    def of(
        cls, spectra: Sequence[Spectrum], candidates: Sequence[Sequence[str]], **table: object
    ) -> "Lists":
        """Spectra with the SMILES of the candidates of each.

        Parameters
        ----------
        spectra : sequence of Spectrum
        candidates : sequence of sequences of str
        **table
            Of `Molecules`: the kind of fingerprint, processes.

        Examples
        --------
        >>> one = Spectrum(np.array([29.04]), np.array([1.0]), 47.05, "[M+H]+", 1, "a")
        >>> lists = Lists.of([one, one], [["CCO", "COC"], ["CCO"]])
        >>> lists.counts.tolist(), lists.candidates.tolist(), len(lists.molecules)
        ([2, 1], [0, 1, 0], 2)
        """
        distinct = list(dict.fromkeys(smiles for each in candidates for smiles in each))
        place = {smiles: number for number, smiles in enumerate(distinct)}
        members = np.array([place[smiles] for each in candidates for smiles in each], np.int64)
        sizes = [len(each) for each in candidates]
        molecules = Molecules(distinct, **table)  # type: ignore[arg-type]
        return cls(spectra, np.arange(len(sizes)), pointers(sizes), members, molecules)

    @cached_property
    def counts(self) -> Ints:
        """Candidates of each spectrum."""
        return np.asarray(np.diff(self.pointers)[self.list_of])

    @cached_property
    def place(self) -> Ints:
        """The place of each row's candidate in `members`."""
        return gather_indices(self.pointers, self.list_of)[1]

    @cached_property
    def candidates(self) -> Ints:
        """The candidate of each row."""
        return self.members[self.place]

    @cached_property
    def ragged(self) -> Ragged:
        """The lengths of the lists, spectrum by spectrum."""
        return Ragged(self.counts)

    @cached_property
    def modes(self) -> npt.NDArray[np.int8]:
        """1 for positive, −1 for negative, 0 where it is not known."""
        return np.array([mode_of(spectrum) for spectrum in self.spectra], np.int8)

    def only(self, wanted: npt.NDArray[np.integer]) -> "Lists":
        """Some of the spectra, with their lists."""
        chosen = [self.spectra[int(each)] for each in wanted]
        return replace(self, spectra=chosen, list_of=self.list_of[wanted])

    def in_parts(self, rows: int = _ROWS) -> Iterator[tuple[slice, "Lists"]]:
        """The same a few spectra at a time, each part with the rows that it has in the whole."""
        ends = pointers(self.counts)
        first = 0
        while first < len(self.spectra):
            last = max(int(np.searchsorted(ends, ends[first] + rows, side="right")) - 1, first + 1)
            yield slice(ends[first], ends[last]), self.only(np.arange(first, last))
            first = last


def mode_of(spectrum: Spectrum) -> int:
    """1 for positive, −1 for negative, 0 where neither charge, adduct nor record tells."""
    charge = spectrum.charge
    if charge is None and spectrum.adduct is not None:
        charge = parse_adduct(spectrum.adduct).charge
    if charge:
        return 1 if charge > 0 else -1
    return MODES.get(spectrum.metadata.get("ionmode", ""), 0)


Blocks = npt.NDArray[np.bytes_]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LabelledQueries:
    """Lists whose answers are known.

    Attributes
    ----------
    lists : Lists
    labels : bool array, a value for each row of the lists
        Candidates that are the truth; each spectrum has one at least.
    blocks : bytes array, shape (spectra,)
        First InChIKey block of each spectrum's molecule.
    """

    lists: Lists
    labels: Flags
    blocks: Blocks

    def __len__(self) -> int:
        return len(self.blocks)

    def only(self, wanted: npt.NDArray[np.integer]) -> "LabelledQueries":
        """Some of the spectra."""
        return LabelledQueries(
            self.lists.only(wanted), self.labels[self.rows(wanted)], self.blocks[wanted]
        )

    def rows(self, wanted: npt.NDArray[np.integer]) -> Ints:
        """Rows of some of the spectra."""
        starts = self.lists.ragged.starts[wanted]
        return ranges(starts, starts + self.lists.counts[wanted])[1]

    def weights(self) -> npt.NDArray[np.float64]:
        """What each spectrum counts if every molecule counts once."""
        _, molecule, counts = np.unique(self.blocks, return_inverse=True, return_counts=True)
        return 1.0 / counts[molecule]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What a channel learns from.

    Attributes
    ----------
    spectra : sequence of Spectrum
    molecule : int64 array, shape (spectra,)
        Of each, its place in `molecules`.
    molecules : Molecules
        The known ones.
    blocks : bytes array, shape (molecules,)
        Their first InChIKey blocks.
    questions : LabelledQueries
        Some of the spectra, with lists.
    """

    spectra: Sequence[Spectrum]
    molecule: Ints
    molecules: Molecules
    blocks: Blocks
    questions: LabelledQueries

    def without(self, blocks: Blocks) -> "TrainingSet":
        """All but what is about these molecules."""
        kept = np.flatnonzero(~np.isin(self.blocks[self.molecule], blocks))
        asked = np.flatnonzero(~np.isin(self.questions.blocks, blocks))
        return TrainingSet(
            [self.spectra[int(each)] for each in kept],
            self.molecule[kept],
            self.molecules,
            self.blocks,
            self.questions.only(asked),
        )

    @property
    def learned_from(self) -> Blocks:
        """Molecules that they are about, each once."""
        return np.union1d(self.blocks[self.molecule], self.questions.blocks)


@dataclass(frozen=True, eq=False)
class Measured:
    """Reference spectra that come after the lessons, without questions.

    Attributes
    ----------
    peaks, ions : PeakLists, PrecursorIons
        Of all spectra, cleaned as those of the lessons were.
    molecule : int64 array, shape (spectra,)
        Of each, its place in `smiles`.
    smiles : sequence of str
    blocks : bytes array, shape (molecules,)
        Their first InChIKey blocks.
    """

    peaks: PeakLists
    ions: PrecursorIons
    molecule: Ints
    smiles: Sequence[str]
    blocks: Blocks

    def __len__(self) -> int:
        return len(self.molecule)

    def only(self, wanted: npt.NDArray[np.integer]) -> "Measured":
        """Some of the spectra, in the order that is asked for."""
        starts, ends = self.peaks.pointers[wanted], self.peaks.pointers[wanted + 1]
        new, peaks = ranges(starts, ends)
        return Measured(
            PeakLists(new, self.peaks.values[peaks], self.peaks.weights[peaks]),
            PrecursorIons(self.ions.precursors[wanted], self.ions.modes[wanted]),
            self.molecule[wanted],
            self.smiles,
            self.blocks,
        )

    def in_order(self) -> "Measured":
        """Molecules of one block as one, by block; each spectrum once, in an order of its own.

        So that no order of files or records shows, and none counts twice.
        """
        blocks, place = np.unique(self.blocks, return_inverse=True)
        smiles: dict[int, str] = {}
        drawn = zip(place.tolist(), self.smiles, strict=True)
        for own, text in sorted(drawn, key=lambda one: (len(one[1]), one[1])):
            smiles.setdefault(own, text)
        used, molecule = np.unique(place[self.molecule], return_inverse=True)
        first: dict[tuple[int, bytes], int] = {}
        for at, key in enumerate(zip(molecule.tolist(), self.contents(), strict=True)):
            first.setdefault(key, at)
        merged = Measured(
            self.peaks,
            self.ions,
            np.asarray(molecule, np.int64),
            [smiles[own] for own in used.tolist()],
            blocks[used],
        )
        return merged.only(np.array([first[key] for key in sorted(first)], np.int64))

    def contents(self) -> list[bytes]:
        """Of each spectrum all that was measured: equal for equal ones, and for no others."""
        ends = self.peaks.pointers.tolist()
        return [
            precursor.tobytes() + mode.tobytes() + self.peaks.values[low:high].tobytes()
            + self.peaks.weights[low:high].tobytes()
            for precursor, mode, low, high in zip(
                self.ions.precursors, self.ions.modes, ends[:-1], ends[1:], strict=True
            )
        ]  # fmt: skip


def spectra_from(prepared: Prepared, queries: npt.NDArray[np.integer]) -> list[Spectrum]:
    """Spectra of a prepared folder, as a reader would give them."""
    return [_spectrum(prepared, int(query)) for query in queries]


def _spectrum(prepared: Prepared, query: int) -> Spectrum:
    mz, intensities = prepared.peaks(query)
    adduct = prepared.adduct(query)
    energy = float(prepared.collision_energy[query])
    return Spectrum(
        np.asarray(mz, np.float64),
        np.asarray(intensities, np.float64),
        float(prepared.precursor_mz[query]),
        adduct,
        parse_adduct(adduct).charge if adduct else None,
        prepared.identifiers[query],
        {} if np.isnan(energy) else {"collision_energy": f"{energy:g}"},
    )


def molecules_from(
    prepared: Prepared, table: npt.NDArray[np.integer], jobs: int | None = None
) -> Molecules:
    """Molecules of a prepared folder, which has their fingerprints."""
    return Molecules(
        [prepared.smiles[int(each)] for each in table],
        str(prepared.manifest["options"]["fingerprint"]),
        lambda wanted: prepared.fingerprint_rows(table[wanted]),
        jobs,
    )


def lists_from(
    prepared: Prepared,
    queries: npt.NDArray[np.integer],
    setting: str,
    *,
    most: int | None = None,
    jobs: int | None = None,
) -> tuple[Lists, npt.NDArray[np.uint8]]:
    """Spectra with their candidates, and in what sense each candidate is the truth.

    Parameters
    ----------
    prepared : Prepared
    queries : int array
        Spectra, which must all have a list.
    setting : str
        Name of the candidate lists.
    most : int, optional
        Candidates of a list at the most: whatever is the truth, and others drawn by chance, the
        same ones whatever their order.
    jobs : int, optional
        Processes that find fragments.

    Returns
    -------
    lists : Lists
    identity : uint8 array
        A value for each row, as in `mzseek.datasets.prepared.CandidateLists`.
    """
    stored = prepared.candidates(setting)
    asked, list_of = np.unique(prepared.molecule[queries], return_inverse=True)
    numbers = np.asarray(stored.list_of)[asked]
    ends, (members, identity) = gather(stored.indptr, (stored.molecules, stored.identity), numbers)
    counts = np.diff(ends).astype(np.int64)
    if most is not None:
        kept = _drawn(prepared, asked, members, identity, counts, most)
        members, identity = members[kept], identity[kept]
        counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[kept], minlength=len(counts))
    table, places = np.unique(members, return_inverse=True)
    molecules = molecules_from(prepared, table, jobs)
    lists = Lists(
        spectra_from(prepared, queries),
        np.asarray(list_of, np.int64),
        pointers(counts),
        places.astype(np.int64),
        molecules,
    )
    return lists, np.asarray(identity)[lists.place]


def _drawn(
    prepared: Prepared,
    asked: npt.NDArray[np.integer],
    members: npt.NDArray[np.integer],
    identity: npt.NDArray[np.uint8],
    counts: Ints,
    most: int,
) -> npt.NDArray[np.bool_]:
    """Which candidates of each list are kept: the truth, and others by a number of their own."""
    kept = np.asarray(identity) > 0
    ends = pointers(counts)
    for each in np.flatnonzero(counts > most):
        here = slice(int(ends[each]), int(ends[each + 1]))
        truth = bytes(prepared.inchikey14[asked[each]])
        lots = np.array(
            [chance(truth, prepared.smiles[int(one)].encode()) for one in members[here]], np.int64
        )
        order = np.lexsort((lots, ~kept[here]))
        kept[here][order[:most]] = True
    kept[np.repeat(counts <= most, counts)] = True
    return kept


def chance(*what: bytes) -> int:
    """A number that depends on what is named and on nothing else: drawing without an order.

    Examples
    --------
    >>> chance(b"a", b"b") == chance(b"a", b"b"), chance(b"a", b"b") == chance(b"a", b"c")
    (True, False)
    """
    return int.from_bytes(blake2b(b"\0".join(what), digest_size=7).digest(), "big")


def with_lists(
    prepared: Prepared, queries: npt.NDArray[np.int64], setting: str, identity: str
) -> npt.NDArray[np.int64]:
    """Those of the spectra in whose list the truth is labelled in a sense."""
    lists = prepared.candidates(setting)
    hits = pointers((np.asarray(lists.identity) & IDENTITY_BITS[identity]) > 0)
    labelled = hits[lists.indptr[1:]] > hits[lists.indptr[:-1]]
    number = np.asarray(lists.list_of)[prepared.molecule[queries]]
    usable = number >= 0
    usable[usable] = labelled[number[usable]]
    return queries[usable]


def few_of_each(
    prepared: Prepared, queries: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.int64]:
    """At most so many spectra of each molecule, drawn by chance, the same whatever their order."""
    lots = np.array([chance(prepared.identifiers[int(each)].encode()) for each in queries])
    order = np.lexsort((lots, prepared.molecule[queries]))
    molecule = prepared.molecule[queries][order]
    rank = np.arange(len(order)) - np.searchsorted(molecule, molecule)
    return np.sort(queries[order[rank < most]])


def some_molecules(
    prepared: Prepared, queries: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.int64]:
    """All spectra of at most so many of the molecules, drawn by chance, whatever their order."""
    molecules = np.unique(prepared.molecule[queries])
    lots = [chance(bytes(prepared.inchikey14[each])) for each in molecules]
    drawn = molecules[np.argsort(lots, kind="stable")[:most]]
    return queries[np.isin(prepared.molecule[queries], drawn)]


def questions_from(
    prepared: Prepared,
    queries: npt.NDArray[np.int64],
    setting: str,
    *,
    identity: str = "fingerprint",
    most: int | None = None,
    jobs: int | None = None,
) -> LabelledQueries:
    """Spectra with lists and answers; those whose list lacks the answer are left out."""
    usable = with_lists(prepared, queries, setting, identity)
    lists, same = lists_from(prepared, usable, setting, most=most, jobs=jobs)
    labels = (same & IDENTITY_BITS[identity]) > 0
    return LabelledQueries(lists, labels, prepared.inchikey14[prepared.molecule[usable]])


def lessons_from(
    prepared: Prepared, queries: npt.NDArray[np.int64], questions: LabelledQueries
) -> TrainingSet:
    """Spectra with their molecules, and the questions that are asked of some of them."""
    table, molecule = np.unique(prepared.molecule[queries], return_inverse=True)
    return TrainingSet(
        spectra_from(prepared, queries),
        np.asarray(molecule, np.int64),
        molecules_from(prepared, table),
        prepared.inchikey14[table],
        questions,
    )


def in_order(asked: LabelledQueries) -> LabelledQueries:
    """The same questions: spectra by molecule and content, candidates by their SMILES.

    Every spectrum gets a list of its own, so that what belongs together stands together.
    """
    lots = np.array([_content(spectrum) for spectrum in asked.lists.spectra], np.int64)
    asked = asked.only(np.lexsort((lots, asked.blocks)))
    lists = asked.lists
    rank = np.empty(len(lists.molecules), np.int64)
    rank[np.argsort(np.array(lists.molecules.smiles, object), kind="stable")] = np.arange(len(rank))
    owner = Ragged(lists.counts).list_index
    order = np.lexsort((rank[lists.candidates], owner))
    sorted_lists: Lists = replace(
        lists,
        list_of=np.arange(len(lists.spectra)),
        pointers=pointers(lists.counts),
        members=lists.candidates[order],
    )
    return LabelledQueries(sorted_lists, asked.labels[order], asked.blocks)


def _content(spectrum: Spectrum) -> int:
    order = np.lexsort((spectrum.intensities, spectrum.mz))
    numbers = np.concatenate(
        [spectrum.mz[order], spectrum.intensities[order], [spectrum.precursor_mz]]
    )
    return chance(numbers.astype(np.float64).tobytes(), spectrum.identifier.encode())
