"""Fragments: the pieces of a molecule, and the peaks that they explain."""

from mzseek.fragments.breaking import Pieces, pieces
from mzseek.fragments.explaining import Explanation, Explanations, explain
from mzseek.fragments.ions import IonForms, ion_forms
from mzseek.fragments.match import (
    KINDS,
    PeakTable,
    kind_lists,
    peak_table,
    plausible,
    score_lists,
)
from mzseek.fragments.pairs import ExplainedPairs, explained_pairs
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
