"""Formulas that are known of features: a table that the user gives."""

from collections.abc import Sequence
from pathlib import Path

from mzseek.annotation.candidates.source import formula_text
from mzseek.errors import AnnotationError, InputError
from mzseek.files import StrPath, open_source
from mzseek.files.streams.table import open_table, require_text, shown_names, sole_column

_FEATURE = ("feature", "featureid", "mappingfeatureid", "rowid", "scans", "id")
_FORMULA = ("formula", "molecularformula", "precursorformula")
_EXPECTED = "expected a table with columns feature and formula"


def read_formulas(path: StrPath) -> dict[str, str]:
    """Formula of each feature that a table names.

    Parameters
    ----------
    path : Path
        A table (tabs, commas or semicolons) with a column ``feature`` (or ``feature_id``,
        ``row ID``, ``scans``) and a column ``formula`` (or ``molecularFormula``).

    Raises
    ------
    InputError
        It is no such table, a formula cannot be read, or a feature has two.
    """
    path = Path(path)
    source = open_source(path)
    require_text(source, _EXPECTED)
    table = open_table(source, lambda names: _columns(path, names) is not None)
    columns = _columns(path, table.names) if table else None
    if table is None or columns is None:
        names = shown_names(table.names) if table else "no such header"
        raise InputError(path, f"{_EXPECTED}; it has {names}")
    feature, formula = columns
    found: dict[str, str] = {}
    for number, cells in table.rows(_refused(path)):
        if max(columns) >= len(cells):
            raise InputError(f"{path}: line {number}", f"has {len(cells)} columns")
        name, text = cells[feature].strip(), cells[formula].strip()
        if not name or not text:
            continue
        try:
            read = formula_text(text)
        except AnnotationError as error:
            raise InputError(f"{path}: line {number}", str(error)) from error
        if found.setdefault(name, read) != read:
            raise InputError(
                f"{path}: line {number}", f"feature {name[:40]!r} has two formulas: "
                f"{found[name]} and {read}",
            )  # fmt: skip
    if not found:
        raise InputError(path, "names no formula")
    return found


def _columns(path: Path, names: Sequence[str]) -> tuple[int, int] | None:
    feature = sole_column(path, names, _FEATURE)
    formula = sole_column(path, names, _FORMULA)
    return None if feature is None or formula is None else (feature, formula)


def _refused(path: Path):  # type: ignore[no-untyped-def]
    def refuse(number: int, reason: str) -> None:
        raise InputError(f"{path}: line {number}", reason)

    return refuse
