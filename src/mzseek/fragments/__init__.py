"""Fragments of a molecule, and the peaks that they explain."""

from mzseek.fragments.annotation import Explanation, Explanations, explain
from mzseek.fragments.fragmentation import Fragments, pieces
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
from mzseek.fragments.table import FragmentTable, fragment_table, join_tables, table_of

__all__ = [
    "KINDS",
    "ExplainedPairs",
    "Explanation",
    "Explanations",
    "FragmentTable",
    "Fragments",
    "IonForms",
    "PeakTable",
    "explain",
    "explained_pairs",
    "fragment_table",
    "ion_forms",
    "join_tables",
    "kind_lists",
    "peak_table",
    "pieces",
    "plausible",
    "score_lists",
    "table_of",
]
