"""A feature's row in the table of the page, which is there without any script."""

import re
from typing import Any

from mzseek.annotation.answers import Answer
from mzseek.report.annotations.words import badges

_LOWER = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def row_data(answer: Answer, place: int) -> dict[str, Any]:
    """What the template of a row is filled with.

    Parameters
    ----------
    answer : Answer
    place : int
        Of the feature on the page, from 0.
    """
    best = answer.best
    name = "" if best is None else best.name or best.smiles
    return {
        "place": place,
        "name": answer.feature.name,
        "mz": answer.feature.precursor_mz,
        "rt": answer.feature.retention_time,
        "best": name,
        "smiles": "" if best is None else best.smiles,
        "key": "" if best is None else best.key,
        "formula": "" if best is None else lowered(best.formula),
        "adduct": "" if best is None else best.adduct,
        "confidence": answer.confidence,
        "width": round(100 * min(max(answer.confidence, 0.0), 1.0), 1),
        "set_size": answer.set_size,
        "level": answer.level.number,
        "badges": [(each, each.replace(" ", "-")) for each in badges(answer)],
    }


def lowered(formula: str) -> str:
    """A formula with its numbers below the line.

    Examples
    --------
    >>> lowered("C8H10N4O2")
    'C₈H₁₀N₄O₂'
    """
    return re.sub(r"(?<=[A-Za-z)\]])\d+", lambda found: found[0].translate(_LOWER), formula)
