"""What a search has found."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mzseek.library.folder import LibraryFolder
from mzseek.tables import Table, Tabular

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
