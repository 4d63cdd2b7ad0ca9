"""Fragments: the pieces of a molecule, and the peaks that they explain."""

from mzseek.fragments.annotation import Explanation, Explanations, explain
from mzseek.fragments.fragmentation import Pieces, pieces
from mzseek.fragments.matching import (
    KINDS,
    ExplainedPairs,
    IonForms,
    PeakTable,
    explained_pairs,
    ion_forms,
    kind_lists,
    peak_table,
    plausible,
    score_lists,
)
from mzseek.fragments.table import PieceTable, join_tables, piece_table, table_of

__all__ = [
    "KINDS",
    "ExplainedPairs",
    "Explanation",
    "Explanations",
    "IonForms",
    "PeakTable",
    "PieceTable",
    "Pieces",
    "explain",
    "explained_pairs",
    "ion_forms",
    "join_tables",
    "kind_lists",
    "peak_table",
    "piece_table",
    "pieces",
    "plausible",
    "score_lists",
    "table_of",
]
