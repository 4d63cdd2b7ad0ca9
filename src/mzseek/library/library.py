"""A library of reference spectra: open, check, search for matches and analogs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mzseek.core.errors import LibraryError
from mzseek.core.registry import check_name
from mzseek.core.text import Table, Tabular, shorten
from mzseek.io import StrPath
from mzseek.io.arrays import check_pointers, check_range, load_array
from mzseek.io.manifest import Manifest
from mzseek.library.options import TOLERANCE
from mzseek.library.similarity import (
    ANALOG,
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
from mzseek.parallel import Progress, in_threads, silent
from mzseek.spectra import Spectrum, as_spectra, bin_peaks
from mzseek.spectra.spectrum import MAX_MZ

KIND = "spectral library"
AGAIN = "build it again"
_FIELDS = {
    "sources": [{"name": str, "sha256": str}],
    "counts": {"spectra": int, "molecules": int, "peaks": int, "rejects": int},
}
MANIFEST = Manifest(KIND, LibraryError, AGAIN, _FIELDS, versions=(1,))
POINTERS, MZ, INTENSITIES = "pointers.npy", "mz.npy", "intensities.npy"
PRECURSORS, MODES, MOLECULE_OF = "precursors.npy", "modes.npy", "molecule_of.npy"
RECORDS, MOLECULES = "records.parquet", "molecules.parquet"
RECORD_COLUMNS = (
    "identifier", "adduct", "collision_energy", "instrument_type", "contributor", "license",
    "source",
)  # fmt: skip
RECORD_SCHEMA = pa.schema([(name, pa.string()) for name in RECORD_COLUMNS])
MOLECULE_SCHEMA = pa.schema(
    [("smiles", pa.string()), ("inchikey", pa.string()), ("formula", pa.string()),
     ("mass", pa.float64())]
)  # fmt: skip


# Descriptions of similarities, in the order of the kernels' numbers.
KINDS = {
    "cosine": "cosine of matched peaks, paired greedily",
    "modified": "the same, peaks also matching at the distance of the precursors",
    "entropy": "spectral entropy similarity",
    "analog": "mean cosine of peaks and neutral losses in narrow bins; one spectrum a molecule",
}
_MAX_TOP = 100_000


@dataclass(frozen=True)
class Matches(Tabular):
    """Library spectra found for queries; one entry a match, the best of each query first.

    Attributes
    ----------
    queries : int64 array
        Index of the query among those searched for.
    records : int64 array
        Index of the spectrum in the library.
    scores : float64 array
        From 0 to 1.
    matched_peaks : int64 array
        Pairs of peaks that matched; of analogs, bins of peaks that both have.
    mass_differences : float64 array
        m/z of the query's precursor − that of the library spectrum: of a library match near 0.
    names : sequence of str
        Identifiers of the queries.
    library : Library
    """

    queries: npt.NDArray[np.int64]
    records: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    matched_peaks: npt.NDArray[np.int64]
    mass_differences: npt.NDArray[np.float64]
    names: Sequence[str]
    library: "Library"

    def __len__(self) -> int:
        return len(self.records)

    @property
    def molecules(self) -> npt.NDArray[np.int64]:
        """Index of each match's molecule in the library's table of molecules."""
        return np.asarray(self.library.molecule_of[self.records], np.int64)

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """1 for the best match of a query, 2 for the next, and so on."""
        return np.arange(len(self)) - np.searchsorted(self.queries, self.queries) + 1

    def to_table(self) -> Table:
        """Return all that is known of each match."""
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
                **{name: records[name].to_pylist() for name in RECORD_COLUMNS},
            }
        )


WIDTH = 0.01
MIN_LOSS = 0.5
_WITHIN_A_BIN = 0.25  # bins are whole numbers: nothing but the same bin is so near
_CHUNK = 16  # queries a thread takes: they differ in what they cost


def analog_lists(lists: PeakLists, ions: PrecursorIons) -> tuple[PeakLists, PeakLists]:
    """Bin peaks and losses, the squares of the weights in each list summing to a half."""
    return _binned(lists, 0.0), _binned(neutral_losses(lists, ions.precursors), MIN_LOSS)


def _binned(lists: PeakLists, low: float) -> PeakLists:
    rows = bin_peaks(
        lists.values, lists.weights, np.diff(lists.pointers),
        width=WIDTH, low=low, high=MAX_MZ, normalise=False,
    )  # fmt: skip
    bins, weights = rows.indices.astype(np.float64), np.sqrt(rows.data, dtype=np.float64)
    return normalised(PeakLists(rows.indptr.astype(np.int64), bins, weights), square=0.5)


class Index:
    """Library spectra prepared for one kind of similarity.

    Parameters
    ----------
    kind : str
        A name of `KINDS`.
    lists, ions : PeakLists, PrecursorIons
        Of the library.
    tolerance : float
        Within which peaks match; analogs have bins instead.
    """

    def __init__(self, kind: str, lists: PeakLists, ions: PrecursorIons, tolerance: float) -> None:
        self._kind, self._tolerance = kind, tolerance
        self._library = self._prepare(lists, ions)
        self._by_peak: InvertedIndex = inverted_index(self._library.peaks)
        self._by_loss: InvertedIndex = inverted_index(self._library.losses)

    def _prepare(self, lists: PeakLists, ions: PrecursorIons) -> SearchSide:
        none = empty_lists(len(ions.modes))
        if self._kind == "analog":
            return SearchSide(*analog_lists(lists, ions), none, ions)
        if self._kind == "entropy":
            weighted = entropy_lists(lists, self._tolerance)
            return SearchSide(weighted, none, weighted, ions)
        peaks = normalised(lists)
        losses = neutral_losses(peaks, ions.precursors) if self._kind == "modified" else none
        return SearchSide(peaks, losses, lists, ions)

    def search(
        self,
        lists: PeakLists,
        ions: PrecursorIons,
        top: int,
        groups: npt.NDArray[np.int64],
        allowed: npt.NDArray[np.bool_],
        ppm: npt.ArrayLike | None = None,
        threads: int | None = None,
        least: tuple[float, int] = (0.0, 0),
    ) -> BestMatches:
        """Find the best library spectra of each query, at most one of each group.

        `least` is what a match has at least: a score, and matching peaks (not of analogs, whose
        peaks are counted when all are found).
        """
        count, number = len(ions.modes), list(KINDS).index(self._kind)
        queries = self._prepare(lists, ions)
        tolerance = _WITHIN_A_BIN if number == ANALOG else self._tolerance
        reach = np.full(count, np.inf) if ppm is None else np.asarray(ppm) * 1e-6 * ions.precursors
        rules = SearchRules(number, tolerance, reach, allowed, groups, *least)
        shape = (count, top)
        best = BestMatches(np.full(shape, -1, np.int64), np.zeros(shape), np.zeros(shape, np.int64))

        def work(chunk: int) -> None:
            start, end = chunk * _CHUNK, min((chunk + 1) * _CHUNK, count)
            sides = queries, self._library, self._by_peak, self._by_loss
            search_range(start, end, *sides, rules, best)

        in_threads(work, -(-count // _CHUNK), threads)
        return best


class Library(Tabular):
    """Reference spectra with their molecules: a folder that `Library.build` has made.

    Arrays are memory-mapped and tables are read when it is opened: it can be used after another
    library has replaced it.

    Attributes
    ----------
    folder : Path
    manifest : dict
    peaks : PeakLists
        Peaks of all spectra, in rising order.
    ions : PrecursorIons
        Precursors and modes.
    molecule_of : int32 array
        Index of each spectrum's molecule in ``molecules``.
    records, molecules : pyarrow.Table
        What is known of each spectrum, and of each molecule.
    """

    _index: tuple[tuple[str, float], Index] | None = None

    def __init__(
        self, folder: Path, manifest: dict[str, Any], peaks: PeakLists, ions: PrecursorIons,
        molecule_of: npt.NDArray[np.integer], records: pa.Table, molecules: pa.Table,
    ) -> None:  # fmt: skip
        self.folder, self.manifest, self.peaks, self.ions = folder, manifest, peaks, ions
        self.molecule_of = np.asarray(molecule_of, np.int32)
        self.records, self.molecules = records, molecules
        spectra = len(peaks.pointers) - 1
        molecule_count = manifest["counts"]["molecules"]
        for name, table, schema, length in (
            (RECORDS, records, RECORD_SCHEMA, spectra),
            (MOLECULES, molecules, MOLECULE_SCHEMA, molecule_count),
        ):
            if not table.schema.equals(schema) or len(table) != length:
                reason = "has other columns or rows than expected"
                raise LibraryError(f"{folder / name}: {reason}; {AGAIN}")
        lengths = {len(ions.precursors), len(ions.modes), len(molecule_of)}
        if lengths != {spectra} or len(peaks.weights) != len(peaks.values):
            raise LibraryError(f"{folder}: has arrays of other lengths than expected; {AGAIN}")
        length = len(peaks.values)
        check_pointers(peaks.pointers, length, folder / POINTERS, LibraryError, AGAIN)
        check_range(molecule_of, 0, len(molecules), folder / MOLECULE_OF, LibraryError, AGAIN)

    @classmethod
    def from_arrays(
        cls, folder: Path, peaks: PeakLists, ions: PrecursorIons,
        molecule_of: npt.NDArray[np.integer], records: pa.Table, molecules: pa.Table,
    ) -> "Library":  # fmt: skip
        """Make a library of arrays and tables in memory; `folder` is what messages call it.

        Raises `LibraryError` where they do not fit together.
        """
        counts = {"spectra": len(peaks.pointers) - 1, "molecules": len(molecules),
                  "peaks": len(peaks.values), "rejects": 0}  # fmt: skip
        manifest = {"kind": KIND, "sources": [], "counts": counts, "files": {}}
        return cls(folder, manifest, peaks, ions, molecule_of, records, molecules)

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
        return cls.load(folder, manifest)

    @classmethod
    def load(cls, folder: Path, manifest: dict[str, Any]) -> "Library":
        """Load the files of a folder, which must have the forms that its manifest states."""
        counts = manifest["counts"]
        spectra, peaks = counts["spectra"], counts["peaks"]

        def array(name: str, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
            return load_array(folder / name, dtype, [length], LibraryError, AGAIN)

        def table(name: str) -> pa.Table:
            try:
                return pq.read_table(folder / name)
            except (OSError, pa.ArrowException) as error:
                reason = f"cannot be read ({shorten(str(error), 100)})"
                raise LibraryError(f"{folder / name}: {reason}; {AGAIN}") from error

        return cls(
            folder,
            manifest,
            PeakLists(
                array(POINTERS, np.int64, spectra + 1),
                array(MZ, np.float64, peaks),
                array(INTENSITIES, np.float64, peaks),
            ),
            PrecursorIons(array(PRECURSORS, np.float64, spectra), array(MODES, np.int8, spectra)),
            array(MOLECULE_OF, np.int32, spectra),
            table(RECORDS),
            table(MOLECULES),
        )

    def add(self, paths: StrPath | Sequence[StrPath], *, progress: Progress = silent) -> "Library":
        """Add spectra: see `mzseek.library.build.add_spectra`."""
        from mzseek.library.build import add_spectra

        return add_spectra(self, paths, progress=progress)

    def check(self) -> None:
        """Read every file once more and compare its checksum; raises `LibraryError`."""
        MANIFEST.check_files(self.folder, self.manifest, checksums=True, anew=True)

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
        """Find the most similar library spectra of each spectrum.

        The search is exact: it finds the same as comparing with every spectrum.
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
        queries = list(as_spectra(spectra))
        _check_numbers(top, tolerance, precursor_ppm, threads, len(queries))
        allowed = np.ones(len(self), np.bool_) if among is None else np.array(among)
        if allowed.dtype != np.bool_ or allowed.shape != (len(self),):
            raise LibraryError(
                f"among has {allowed.dtype} of shape {allowed.shape}, "
                f"expected bool of ({len(self)},)"
            )
        lists, ions = peak_lists(queries)
        by_molecule = kind == "analog" if by_molecule is None else by_molecule
        groups = np.asarray(self.molecule_of if by_molecule else np.arange(len(self)), np.int64)
        best = self.index(kind, tolerance).search(
            lists, ions, min(top, len(self)), groups, allowed, precursor_ppm, threads
        )
        query, rank = np.nonzero(best.records >= 0)
        records = best.records[query, rank]
        return Matches(
            query, records, best.scores[query, rank], best.matches[query, rank],
            ions.precursors[query] - self.ions.precursors[records],
            [spectrum.identifier for spectrum in queries], self,
        )  # fmt: skip

    def index(self, kind: str, tolerance: float = TOLERANCE) -> Index:
        """Return the index that spectra are searched by; the last one is kept."""
        key = (kind, tolerance)
        if self._index is None or self._index[0] != key:
            # Plain arrays: compiled code would be compiled once more for memory-mapped ones.
            peaks = PeakLists._make(np.array(array) for array in self.peaks)
            ions = PrecursorIons._make(np.array(array) for array in self.ions)
            self._index = key, Index(kind, peaks, ions, tolerance)
        return self._index[1]

    def __len__(self) -> int:
        return int(self.manifest["counts"]["spectra"])

    def to_table(self) -> Table:
        """Return the counts of the library."""
        counts = self.manifest["counts"]
        modes = np.asarray(self.ions.modes)
        rows = {
            "spectra": len(self),
            "molecules": counts["molecules"],
            "peaks": counts["peaks"],
            "positive mode": int((modes > 0).sum()),
            "negative mode": int((modes < 0).sum()),
            "mode unknown": int((modes == 0).sum()),
            "skipped": counts["rejects"],
        }
        return Table({"what": list(rows), "count": list(rows.values())}, str(self.folder))


def _check_numbers(
    top: int,
    tolerance: float,
    precursor_ppm: npt.ArrayLike | None,
    threads: int | None,
    spectra: int,
) -> None:
    if not 1 <= top <= _MAX_TOP:
        raise LibraryError(f"top is {top}, expected 1 to {_MAX_TOP:,}")
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
