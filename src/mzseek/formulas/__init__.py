"""Molecular formulas of features, without a database: enumerate, compare with peaks, rank."""

from mzseek.formulas.enumeration import (
    DEFAULT_ELEMENTS,
    ELEMENTS,
    RULES,
    broken_rule,
    enumerate_formulas,
    formula_text,
    parse_elements,
)
from mzseek.formulas.model import FormulaModel, shipped_model
from mzseek.formulas.ranking import PeakFormula, RankedFormula, rank_formulas, ranked
from mzseek.formulas.scoring import score_formulas

__all__ = [
    "DEFAULT_ELEMENTS",
    "ELEMENTS",
    "RULES",
    "FormulaModel",
    "PeakFormula",
    "RankedFormula",
    "broken_rule",
    "enumerate_formulas",
    "formula_text",
    "parse_elements",
    "rank_formulas",
    "ranked",
    "score_formulas",
    "shipped_model",
]
