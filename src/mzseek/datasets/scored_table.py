"""A table of candidates, each with a probability or a score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mzseek.chem import fingerprints
from mzseek.core.errors import InputError, MoleculeError
from mzseek.core.text import shorten
from mzseek.database.formats.tables import KNOWN
from mzseek.decision import posterior
from mzseek.io import StrPath, open_source
from mzseek.io.text_tables import (
    TextTable,
    find_column,
    first_line,
    format_names,
    header_names,
    open_table,
    require_text,
)

_COLUMNS: dict[str, tuple[str, ...]] = {
    "fingerprint": ("fingerprint",),
    "smiles": KNOWN["smiles"],
    "probability": ("probability",),
    "score": ("score",),
    "name": KNOWN["name"],
    "id": KNOWN["id"],
}
_EXPECTED = "expected fingerprint or smiles, and probability or score"


@dataclass(frozen=True)
class ScoredTable:
    """Candidates of one spectrum.

    Attributes
    ----------
    names : list of str
    rows : uint8 array or CSR, shape (candidates, bits)
    probabilities : float64 array
        They sum to 1.
    read, unread : tuple of str
        Columns that were used, and others that could have been.
    """

    names: list[str]
    rows: npt.NDArray[np.uint8] | csr_array
    probabilities: npt.NDArray[np.float64]
    read: tuple[str, str]
    unread: tuple[str, ...]


def read_scored_table(
    path: StrPath, kind: str | None = None, temperature: float | None = None
) -> ScoredTable:
    r"""Read a table of candidates: tabs, semicolons or commas, plain or packed, with a header.

    Parameters
    ----------
    path : Path
        With a column ``fingerprint`` (0s and 1s), else ``smiles`` (or another name that
        `mzseek database build` knows it by), and ``probability``, else ``score``.
    kind : str, optional
        Fingerprint to compute of SMILES; ``morgan2`` by default.
    temperature : float, optional
        Scores become probabilities by softmax(score / temperature); 1 by default.

    Raises
    ------
    InputError, MoleculeError
        A row that cannot be used is refused, not left out: the probabilities would be others.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("Name;Canonical SMILES;Probability\nethanol;CCO;0.9\nether;COC;0.1\n")
    >>> table = read_scored_table(path)
    >>> table.names, table.rows.shape, table.probabilities.tolist()
    (['ethanol', 'ether'], (2, 4096), [0.9, 0.1])
    """
    path = Path(path)
    table, columns = _open(path)
    structure = next(name for name in ("fingerprint", "smiles") if name in columns)
    weight = next(name for name in ("probability", "score") if name in columns)
    if kind is not None and structure == "fingerprint":
        raise InputError(
            path, f"has a column fingerprint: --fingerprint {kind} would change nothing"
        )
    if temperature is not None and weight == "probability":
        raise InputError(
            path, f"has a column probability: --temperature {temperature:g} would change nothing"
        )
    if temperature is not None and not math.isfinite(temperature):
        raise InputError(path, f"temperature is {temperature:g}, expected above 0 and finite")
    locations, rows = _rows(path, table)
    texts = [row[columns[structure]].strip() for row in rows]
    numbers = _numbers(locations, weight, [row[columns[weight]].strip() for row in rows])
    bits = (
        _bits(locations, texts)
        if structure == "fingerprint"
        else _of_smiles(locations, texts, kind)
    )
    if weight == "score":
        with np.errstate(over="ignore"):  # the difference of two scores may be without bound
            numbers = posterior(
                numbers, [len(numbers)], 1.0 if temperature is None else temperature
            )
    total = float(numbers.sum())
    if not abs(total - 1) <= 0.01:
        raise InputError(
            path, f"probabilities sum to {total:g}, expected 1; name the column `score` if they "
            "are scores",
        )  # fmt: skip
    called = next(name for name in ("name", "id", "smiles", "fingerprint") if name in columns)
    return ScoredTable(
        [row[columns[called]].strip() for row in rows],
        bits,
        numbers / total,
        (structure, weight),
        tuple(n for n in ("smiles", "score") if n in columns and n not in (structure, weight)),
    )


def _open(path: Path) -> tuple[TextTable, dict[str, int]]:
    """Open a table and find its columns by meaning."""

    def find(names: Sequence[str]) -> dict[str, int]:
        columns = {name: find_column(path, names, usual) for name, usual in _COLUMNS.items()}
        return {name: column for name, column in columns.items() if column is not None}

    def fits(names: Sequence[str]) -> bool:
        has = find(names).keys()
        return bool(has & {"fingerprint", "smiles"}) and bool(has & {"probability", "score"})

    source = open_source(path)
    require_text(source, _EXPECTED)
    table = open_table(source, fits)
    if table is None:
        names = header_names(first_line(source) or "")
        raise InputError(path, f"has the columns {format_names(names)}; {_EXPECTED}")
    return table, find(table.names)


def _rows(path: Path, table: TextTable) -> tuple[list[str], list[list[str]]]:
    """Return positions and cells of rows; missing cells are empty."""

    def refuse(number: int, reason: str) -> None:
        raise InputError(f"{path}, line {number}", reason)

    width = len(table.names)
    locations, rows = [], []
    for number, cells in table.rows(refuse):
        if any(cells[width:]):
            refuse(number, f"has {len(cells)} columns, expected {width}")
        locations.append(f"{path}, line {number}")
        rows.append(cells + [""] * (width - len(cells)))
    if not rows:
        raise InputError(path, "has no candidates below its header")
    return locations, rows


def _numbers(locations: list[str], column: str, texts: list[str]) -> npt.NDArray[np.float64]:
    least = 0.0 if column == "probability" else -math.inf
    values = []
    for location, text in zip(locations, texts, strict=True):
        shown = repr(shorten(text, 40)) if text else "missing"
        try:
            value = float(text) if "_" not in text else float("no")  # Python reads "1_0" as 10
        except ValueError:
            raise InputError(location, f"{column} is {shown}, expected a number") from None
        if not math.isfinite(value) or value < least:
            kind = "a finite number" + (" that is not negative" if least == 0 else "")
            raise InputError(location, f"{column} is {shown}, expected {kind}")
        values.append(value)
    return np.array(values)


def _bits(locations: list[str], texts: list[str]) -> npt.NDArray[np.uint8]:
    width = len(texts[0])
    for location, text in zip(locations, texts, strict=True):
        if set(text) - {"0", "1"} or len(text) != width or not text:
            raise InputError(
                location, f"fingerprint is {text[:20]!r}, expected {width} characters, each 0 or 1"
            )
    return np.array([[int(bit) for bit in text] for text in texts], np.uint8)


def _of_smiles(locations: list[str], texts: list[str], kind: str | None) -> csr_array:
    skipped: list[tuple[str, str]] = []
    rows = fingerprints(texts, kind or "morgan2", rejects=skipped)
    if skipped:
        where, reason = skipped[0]
        location = locations[int(where.rpartition(" ")[2])]
        why = "left out, it would change the probabilities of the others"
        raise MoleculeError(f"{location}: {reason}; {why}")
    return rows
