"""A library of reference spectra: open, check, search for matches and analogs."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.core.errors import LibraryError
from mzseek.core.registry import check_name
from mzseek.core.tables import Table, Tabular
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, check_range, load_array
from mzseek.io.manifest import Manifest
from mzseek.library.similarity import (
    ANALOG,
    COSINE,
    ENTROPY,
    MODIFIED,
    BestMatches,
    InvertedIndex,
    PeakLists,
    PrecursorIons,
    SearchRules,
    SearchSide,
    empty_lists,
    entropy_lists,
    inverted_index,
    neutral_losses,
    normalised,
    peak_lists,
    search_range,
)
from mzseek.parallel import Progress, silent
from mzseek.spectra import Spectrum, as_spectra, bin_peaks
from mzseek.spectra.parsing import MAX_MZ

KIND = "spectral library"
AGAIN = "build it again"
_FIELDS = {
    "sources": [{"name": str, "sha256": str}],
    "counts": {"spectra": int, "molecules": int, "peaks": int, "rejects": int},
}
MANIFEST = Manifest(KIND, LibraryError, AGAIN, _FIELDS, versions=(1,))
POINTERS, MZ, INTENSITIES = "pointers.npy", "mz.npy", "intensities.npy"
PRECURSORS, MODES, MOLECULE_OF = "precursors.npy", "modes.npy", "molecule_of.npy"
RECORDS, MOLECULES, REJECTS = "records.parquet", "molecules.parquet", "rejects.tsv"
RECORD_COLUMNS = (
    "identifier", "adduct", "collision_energy", "instrument_type", "contributor", "license",
    "source",
)  # fmt: skip
RECORD_SCHEMA = pa.schema([(name, pa.string()) for name in RECORD_COLUMNS])
MOLECULE_SCHEMA = pa.schema(
    [("smiles", pa.string()), ("inchikey", pa.string()), ("formula", pa.string()),
     ("mass", pa.float64())]
)  # fmt: skip


class LibraryFolder:
    """The arrays and tables of a library's folder, checked for the forms its manifest says.

    Arrays are memory-mapped and tables are read when it is opened: when another library takes the
    place of this one, this one goes on.

    Parameters
    ----------
    folder : Path
    manifest : dict
        As `MANIFEST` has read it.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        counts = manifest["counts"]
        spectra, peaks = counts["spectra"], counts["peaks"]
        self.peaks = PeakLists(
            self._array(POINTERS, np.int64, spectra + 1),
            self._array(MZ, np.float64, peaks),
            self._array(INTENSITIES, np.float64, peaks),
        )
        check_pointers(self.peaks.pointers, peaks, folder / POINTERS, LibraryError, AGAIN)
        self.ions = PrecursorIons(
            self._array(PRECURSORS, np.float64, spectra), self._array(MODES, np.int8, spectra)
        )
        self.molecule_of = self._array(MOLECULE_OF, np.int32, spectra)
        where = folder / MOLECULE_OF
        check_range(self.molecule_of, 0, counts["molecules"], where, LibraryError, AGAIN)
        self.records = self._table(RECORDS, RECORD_SCHEMA, spectra)
        self.molecules = self._table(MOLECULES, MOLECULE_SCHEMA, counts["molecules"])

    @classmethod
    def from_arrays(
        cls, folder: Path, peaks: PeakLists, ions: PrecursorIons,
        molecule_of: npt.NDArray[np.integer], records: pa.Table, molecules: pa.Table,
    ) -> Self:  # fmt: skip
        """A library whose arrays and tables are at hand already, in whatever folder they lay.

        Parameters
        ----------
        folder : Path
            What messages call it.
        peaks : PeakLists
            Peaks of each spectrum, in rising order.
        ions : PrecursorIons
        molecule_of : int array, shape (spectra,)
            Place of each spectrum's molecule.
        records, molecules : pyarrow.Table
            Of the forms `RECORD_SCHEMA` and `MOLECULE_SCHEMA`.

        Raises
        ------
        LibraryError
            They do not fit together.
        """
        spectra = len(peaks.pointers) - 1
        for table, schema, length in (
            (records, RECORD_SCHEMA, spectra),
            (molecules, MOLECULE_SCHEMA, len(molecules)),
        ):
            if not table.schema.equals(schema) or len(table) != length:
                raise LibraryError(f"{folder}: has other columns or rows than expected; {AGAIN}")
        check_pointers(peaks.pointers, len(peaks.values), folder, LibraryError, AGAIN)
        check_range(molecule_of, 0, len(molecules), folder, LibraryError, AGAIN)
        lengths = {len(ions.precursors), len(ions.modes), len(molecule_of)}
        if lengths != {spectra} or len(peaks.weights) != len(peaks.values):
            raise LibraryError(f"{folder}: has arrays of other lengths than expected; {AGAIN}")
        made = cls.__new__(cls)
        made.folder, made.peaks, made.ions = folder, peaks, ions
        made.molecule_of = np.asarray(molecule_of, np.int32)
        made.records, made.molecules = records, molecules
        counts = {
            "spectra": spectra, "molecules": len(molecules), "peaks": len(peaks.values),
            "rejects": 0,
        }  # fmt: skip
        made.manifest = {"kind": KIND, "sources": [], "counts": counts, "files": {}}
        return made

    def _array(self, name: str, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
        return load_array(self.folder / name, dtype, [length], LibraryError, AGAIN)

    def _table(self, name: str, schema: pa.Schema, length: int) -> pa.Table:
        where = self.folder / name
        try:
            table = pq.read_table(where)
        except (OSError, pa.ArrowException) as error:
            reason = " ".join(str(error).split())[:100]
            raise LibraryError(f"{where}: cannot be read ({reason}); {AGAIN}") from error
        if not table.schema.equals(schema) or len(table) != length:
            raise LibraryError(f"{where}: has other columns or rows than expected; {AGAIN}")
        return table


_OF_RECORD = (
    "identifier", "adduct", "collision_energy", "instrument_type", "contributor", "license",
    "source",
)  # fmt: skip


@dataclass(frozen=True)
class Matches(Tabular):
    """Library spectra found for queries; one entry a match, the best of each query first.

    Attributes
    ----------
    queries : int64 array
        Place of the query among those searched for.
    records : int64 array
        Place of the spectrum in the library.
    scores : float64 array
        From 0 to 1.
    matched_peaks : int64 array
        Pairs of peaks that matched; of analogs, bins of peaks that both have.
    mass_differences : float64 array
        m/z of the query's precursor − that of the library spectrum: of a library match near 0.
    names : sequence of str
        Identifiers of the queries.
    library : LibraryFolder
    """

    queries: npt.NDArray[np.int64]
    records: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    matched_peaks: npt.NDArray[np.int64]
    mass_differences: npt.NDArray[np.float64]
    names: Sequence[str]
    library: LibraryFolder

    def __len__(self) -> int:
        return len(self.records)

    @property
    def molecules(self) -> npt.NDArray[np.int64]:
        """Place of each match's molecule in the library's table of molecules."""
        return np.asarray(self.library.molecule_of[self.records], np.int64)

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """1 for the best match of a query, 2 for the next, and so on."""
        return np.arange(len(self)) - np.searchsorted(self.queries, self.queries) + 1

    def to_table(self) -> Table:
        """All that is known of each match."""
        records = self.library.records.take(pa.array(self.records))
        molecules = self.library.molecules.take(pa.array(self.molecules))
        return Table(
            {
                "query": [self.names[query] for query in self.queries],
                "rank": self.ranks.tolist(),
                "score": self.scores.tolist(),
                "matched_peaks": self.matched_peaks.tolist(),
                "mass_difference": self.mass_differences.tolist(),
                "smiles": molecules["smiles"].to_pylist(),
                "inchikey": molecules["inchikey"].to_pylist(),
                "formula": molecules["formula"].to_pylist(),
                "precursor_mz": self.library.ions.precursors[self.records].tolist(),
                **{name: records[name].to_pylist() for name in _OF_RECORD},
            }
        )


WIDTH = 0.01
LEAST_LOSS = 0.5
WITHIN_A_BIN = 0.25  # bins are whole numbers: nothing but the same bin is so near


def analog_lists(lists: PeakLists, ions: PrecursorIons) -> tuple[PeakLists, PeakLists]:
    """Bins of peaks and bins of losses, the squares of the weights in each summing to a half."""
    return _binned(lists, 0.0), _binned(neutral_losses(lists, ions.precursors), LEAST_LOSS)


def _binned(lists: PeakLists, low: float) -> PeakLists:
    rows = bin_peaks(
        lists.values, lists.weights, np.diff(lists.pointers),
        width=WIDTH, low=low, high=MAX_MZ, normalise=False,
    )  # fmt: skip
    bins = PeakLists(
        rows.indptr.astype(np.int64),
        rows.indices.astype(np.float64),
        np.sqrt(rows.data, dtype=np.float64),
    )
    return normalised(bins, square=0.5)


_AT_A_TIME = 16  # queries a thread takes: they differ in what they cost


def _cosine(lists: PeakLists, ions: PrecursorIons, tolerance: float) -> SearchSide:
    return SearchSide(normalised(lists), empty_lists(len(ions.modes)), lists, ions)


def _modified(lists: PeakLists, ions: PrecursorIons, tolerance: float) -> SearchSide:
    peaks = normalised(lists)
    return SearchSide(peaks, neutral_losses(peaks, ions.precursors), lists, ions)


def _entropy(lists: PeakLists, ions: PrecursorIons, tolerance: float) -> SearchSide:
    ready = entropy_lists(lists, tolerance)
    return SearchSide(ready, empty_lists(len(ions.modes)), ready, ions)


def _analog(lists: PeakLists, ions: PrecursorIons, tolerance: float) -> SearchSide:
    peaks, losses = analog_lists(lists, ions)
    return SearchSide(peaks, losses, empty_lists(len(ions.modes)), ions)


@dataclass(frozen=True)
class Kind:
    """A kind of similarity: its number in the kernels, and how spectra are made ready for it."""

    number: int
    ready: Callable[[PeakLists, PrecursorIons, float], SearchSide]


CODES = {
    "cosine": Kind(COSINE, _cosine),
    "modified": Kind(MODIFIED, _modified),
    "entropy": Kind(ENTROPY, _entropy),
    "analog": Kind(ANALOG, _analog),
}


class Index:
    """Library spectra made ready for one kind of similarity.

    Parameters
    ----------
    kind : str
        A name of `CODES`.
    lists, ions : PeakLists, PrecursorIons
        Of the library.
    tolerance : float
        Within which peaks match; analogs have bins instead.
    """

    def __init__(self, kind: str, lists: PeakLists, ions: PrecursorIons, tolerance: float) -> None:
        self._kind, self._tolerance = CODES[kind], tolerance
        self._side = self._kind.ready(lists, ions, tolerance)
        self._by_peak: InvertedIndex = inverted_index(self._side.peaks)
        self._by_loss: InvertedIndex = inverted_index(self._side.losses)

    def search(
        self,
        lists: PeakLists,
        ions: PrecursorIons,
        top: int,
        groups: npt.NDArray[np.int64],
        allowed: npt.NDArray[np.bool_],
        ppm: npt.ArrayLike | None = None,
        threads: int | None = None,
    ) -> BestMatches:
        """The best library spectra of each query, at most one of each group."""
        count = len(ions.modes)
        queries = self._kind.ready(lists, ions, self._tolerance)
        tolerance = WITHIN_A_BIN if self._kind.number == ANALOG else self._tolerance
        reach = np.full(count, np.inf) if ppm is None else np.asarray(ppm) * 1e-6 * ions.precursors
        rules = SearchRules(self._kind.number, tolerance, reach, allowed, groups)
        best = BestMatches(
            np.full((count, top), -1, np.int64), np.zeros((count, top)),
            np.zeros((count, top), np.int64),
        )  # fmt: skip

        def work(start: int) -> None:
            end = min(start + _AT_A_TIME, count)
            search_range(start, end, queries, self._side, self._by_peak, self._by_loss, rules, best)

        with ThreadPoolExecutor(threads or _cores()) as pool:
            for _ in pool.map(work, range(0, count, _AT_A_TIME)):
                pass
        return best


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# What each kind is, for people; `mzseek.library.library` has their code, which takes time to load.
KINDS = {
    "cosine": "cosine of matched peaks, paired greedily",
    "modified": "the same, peaks also matching at the distance of the precursors",
    "entropy": "spectral entropy similarity",
    "analog": "mean cosine of peaks and neutral losses in narrow bins; one spectrum a molecule",
}
TOLERANCE = 0.02
_MOST = 100_000


class Library(LibraryFolder, Tabular):
    """Reference spectra with their molecules: a folder that `Library.build` has made.

    Attributes
    ----------
    peaks : PeakLists
        Peaks of all spectra, memory-mapped.
    ions : PrecursorIons
        Precursors and modes.
    molecule_of : int32 array
        Place of each spectrum's molecule in ``molecules``.
    records, molecules : pyarrow.Table
        What is known of each spectrum, and of each molecule.
    """

    @classmethod
    def build(
        cls, paths: StrPath | Sequence[StrPath], out: StrPath, *, progress: Progress = silent
    ) -> "Library":
        """Make a library of annotated spectra: see `mzseek.library.build.build_library`."""
        from mzseek.library.build import build_library

        return build_library(paths, out, progress=progress)

    @classmethod
    def open(cls, path: StrPath) -> "Library":
        """Open a library, its peaks memory-mapped.

        Checksums of all files are compared, once as long as the files stay as they are.

        Raises
        ------
        LibraryError
            It is none, damaged, or a file of it has changed.
        """
        folder = Path(path)
        manifest = MANIFEST.read(folder)
        MANIFEST.check_files(folder, manifest, checksums=True)
        return cls(folder, manifest)

    def add(self, paths: StrPath | Sequence[StrPath], *, progress: Progress = silent) -> "Library":
        """Add spectra: see `mzseek.library.build.add_spectra`."""
        from mzseek.library.build import add_spectra

        return add_spectra(self, paths, progress=progress)

    def check(self) -> None:
        """Read every file once more and compare its checksum; raises `LibraryError`."""
        MANIFEST.check_files(self.folder, self.manifest, checksums=True, anew=True)

    def rejects_text(self) -> str:
        """What was set aside, as it stands in the file: where, a tab, why."""
        return (self.folder / REJECTS).read_text(encoding="utf-8")

    def search(
        self,
        spectra: Spectrum | Iterable[Any],
        kind: str = "cosine",
        top: int = 10,
        *,
        tolerance: float = TOLERANCE,
        precursor_ppm: npt.ArrayLike | None = None,
        by_molecule: bool | None = None,
        among: npt.ArrayLike | None = None,
        threads: int | None = None,
    ) -> Matches:
        """The most similar library spectra of each spectrum.

        Nothing is left out for speed: what is found is what comparing with every spectrum finds.
        Spectra of the other ion mode are never matches; those of unknown mode may be.

        Parameters
        ----------
        spectra : Spectrum, matchms spectrum, or iterable of them
        kind : str
            A name of `KINDS`.
        top : int
            At most so many matches a query; spectra that share nothing are none.
        tolerance : float
            Within which peaks match, in m/z; analogs have bins of 0.01 instead.
        precursor_ppm : float, or array with one of each spectrum, optional
            Only spectra whose precursor is as near as this: library matching. Any by default.
        by_molecule : bool, optional
            At most one spectrum a molecule, its best; by default only of analogs.
        among : array of bool, shape (spectra of the library,), optional
            Which of them may be found; all by default.
        threads : int, optional
            All cores by default.

        Raises
        ------
        LibraryError, SpectrumError
            An argument or a spectrum that will not do.
        """
        check_name(KINDS, kind, "kind of search", LibraryError)
        given = list(as_spectra(spectra))
        _check_numbers(top, tolerance, precursor_ppm, threads, len(given))
        lists, ions = peak_lists(given)
        one_each = kind == "analog" if by_molecule is None else by_molecule
        groups = self.molecule_of if one_each else np.arange(len(self))
        best = self.index(kind, tolerance).search(
            lists, ions, min(top, len(self)), np.asarray(groups, np.int64), self._allowed(among),
            precursor_ppm, threads,
        )  # fmt: skip
        queries, places = np.nonzero(best.records >= 0)
        records = best.records[queries, places]
        return Matches(
            queries, records, best.scores[queries, places], best.matches[queries, places],
            ions.precursors[queries] - self.ions.precursors[records],
            [spectrum.identifier for spectrum in given], self,
        )  # fmt: skip

    def index(self, kind: str, tolerance: float = TOLERANCE) -> "Index":
        """The index that spectra are searched by; the last one is kept."""
        wanted = (kind, tolerance)
        if self._kept is None or self._kept[0] != wanted:
            # Plain arrays: compiled code would be compiled once more for memory-mapped ones.
            peaks = PeakLists._make(np.array(array) for array in self.peaks)
            ions = PrecursorIons._make(np.array(array) for array in self.ions)
            self._kept = wanted, Index(kind, peaks, ions, tolerance)
        return self._kept[1]

    _kept: "tuple[tuple[str, float], Index] | None" = None

    def _allowed(self, among: npt.ArrayLike | None) -> npt.NDArray[np.bool_]:
        if among is None:
            return np.ones(len(self), np.bool_)
        allowed = np.array(among)
        if allowed.dtype != np.bool_ or allowed.shape != (len(self),):
            raise LibraryError(
                f"among has {allowed.dtype} of shape {allowed.shape}, "
                f"expected bool of ({len(self)},)"
            )
        return allowed

    def __len__(self) -> int:
        return int(self.manifest["counts"]["spectra"])

    def to_table(self) -> Table:
        """What the library holds, in numbers."""
        counts = self.manifest["counts"]
        modes = np.asarray(self.ions.modes)
        facts = {
            "spectra": len(self),
            "molecules": counts["molecules"],
            "peaks": counts["peaks"],
            "positive mode": int((modes > 0).sum()),
            "negative mode": int((modes < 0).sum()),
            "mode unknown": int((modes == 0).sum()),
            "set aside": counts["rejects"],
        }
        return Table({"what": list(facts), "count": list(facts.values())}, str(self.folder))


def _check_numbers(
    top: int,
    tolerance: float,
    precursor_ppm: npt.ArrayLike | None,
    threads: int | None,
    spectra: int,
) -> None:
    if not 1 <= top <= _MOST:
        raise LibraryError(f"top is {top}, expected 1 to {_MOST:,}")
    if not 0 < tolerance <= 1:
        raise LibraryError(f"tolerance is {tolerance}, expected more than 0 and at most 1")
    if precursor_ppm is not None:
        ppm = np.asarray(precursor_ppm, np.float64)
        if ppm.shape not in ((), (spectra,)) or not ((ppm >= 0) & (ppm < 1e6)).all():
            raise LibraryError(
                f"precursor_ppm is {precursor_ppm}, expected 0 or more, one or one of each "
                "spectrum, or None"
            )
    if threads is not None and threads < 1:
        raise LibraryError(f"threads is {threads}, expected 1 or more")
