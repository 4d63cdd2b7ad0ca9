"""`Library`: reference spectra, opened, searched, added to."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mzseek.errors import LibraryError
from mzseek.files import StrPath
from mzseek.library.folder import MANIFEST, REJECTS, LibraryFolder
from mzseek.library.found import Matches
from mzseek.library.lists import Ions, Lists, lists_of
from mzseek.registry import check_name
from mzseek.spectra import Spectrum, as_spectra
from mzseek.tables import Table, Tabular
from mzseek.work import Progress, silent

if TYPE_CHECKING:
    from mzseek.library.search import Index

# What each kind is, for people; `mzseek.library.search` has their code, which takes time to load.
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
    peaks : Lists
        Peaks of all spectra, memory-mapped.
    ions : Ions
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

        Raises
        ------
        LibraryError
            It is none, or damaged.
        """
        folder = Path(path)
        manifest = MANIFEST.read(folder)
        MANIFEST.check_files(folder, manifest)
        return cls(folder, manifest)

    def add(self, paths: StrPath | Sequence[StrPath], *, progress: Progress = silent) -> "Library":
        """Add spectra: see `mzseek.library.build.add_spectra`."""
        from mzseek.library.build import add_spectra

        return add_spectra(self, paths, progress=progress)

    def check(self) -> None:
        """Read every file and compare its checksum; raises `LibraryError`."""
        MANIFEST.check_files(self.folder, self.manifest, checksums=True)

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
        precursor_ppm: float | None = None,
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
        precursor_ppm : float, optional
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
        _check_numbers(top, tolerance, precursor_ppm, threads)
        given = list(as_spectra(spectra))
        lists, ions = lists_of(given)
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
        from mzseek.library.search import Index  # compiled code, which takes time to load

        wanted = (kind, tolerance)
        if self._kept is None or self._kept[0] != wanted:
            # Plain arrays: compiled code would be compiled once more for memory-mapped ones.
            peaks = Lists._make(np.array(array) for array in self.peaks)
            ions = Ions._make(np.array(array) for array in self.ions)
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
    top: int, tolerance: float, precursor_ppm: float | None, threads: int | None
) -> None:
    if not 1 <= top <= _MOST:
        raise LibraryError(f"top is {top}, expected 1 to {_MOST:,}")
    if not 0 < tolerance <= 1:
        raise LibraryError(f"tolerance is {tolerance}, expected more than 0 and at most 1")
    if precursor_ppm is not None and not 0 <= precursor_ppm < 1e6:
        raise LibraryError(f"precursor_ppm is {precursor_ppm}, expected 0 or more, or None")
    if threads is not None and threads < 1:
        raise LibraryError(f"threads is {threads}, expected 1 or more")
