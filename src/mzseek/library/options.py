"""Options of molecular networks; commands read them without loading compiled code."""

from dataclasses import dataclass

from mzseek.core.errors import LibraryError
from mzseek.core.registry import check_ranges, option

TOLERANCE = 0.02  # within which peaks match, in m/z
SIMILARITIES = ("modified", "cosine", "entropy")


@dataclass(frozen=True)
class NetworkOptions:
    """Which spectra are connected.

    Raises
    ------
    LibraryError
        A value is unknown or out of range.
    """

    similarity: str = option(
        "modified", "modified (modified cosine), cosine or entropy.", among=SIMILARITIES
    )
    min_similarity: float = option(0.7, "Similarity of an edge, at least.", above=0, at_most=1)
    min_peaks: int = option(6, "Matching peaks of an edge, at least.", at_least=1)
    neighbours: int = option(
        10, "Most similar features that each is connected to, at most.", at_least=1
    )
    mutual: bool = option(
        True, "Both features of an edge must be among the most similar of the other."
    )
    max_component: int = option(
        100,
        "Connected features, at most: of edges that connect more, the weaker are left out; 0 for "
        "no limit.",
        at_least=0,
    )
    tolerance: float = option(TOLERANCE, "Within which peaks match, in m/z.", above=0, below=1)

    def __post_init__(self) -> None:
        """Refuse values that cannot be used."""
        check_ranges(self, LibraryError)
