"""summary.tsv, candidates.tsv, peaks.tsv and skipped.tsv."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from mzseek.annotation.annotation import Annotation, Candidate, FragmentSmiles
from mzseek.chem.identifiers import links
from mzseek.export.writer import RecordWriter, Spool, Writer
from mzseek.fragments import Explanation
from mzseek.io.text_tables import cell_texts, list_cell, text_cell

# Printable ASCII with single blanks, and first no character that a spreadsheet acts on.
_HARMLESS = re.compile(r"[A-Za-z0-9(\[/][!-~]*+(?: [!-~]++)*+")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
SKIPPED = "skipped.tsv"
_MAX_CELL = 32_000  # characters of a cell that spreadsheets read


def decimal(value: float | None, digits: int) -> str:
    """Format a number with ``digits`` decimals; empty for none.

    Examples
    --------
    >>> decimal(195.08771, 4), decimal(float("nan"), 2), decimal(None, 2), decimal(-0.00001, 2)
    ('195.0877', '', '', '0.00')
    """
    if value is None or not math.isfinite(value):
        return ""
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def fraction(value: float | None) -> str:
    """Format a probability or a share with six significant digits.

    Examples
    --------
    >>> fraction(0.25), fraction(1.0), fraction(1.23456789e-09), fraction(None)
    ('0.25', '1', '1.23457e-09', '')
    """
    return "" if value is None or not math.isfinite(value) else f"{value:.6g}"


def free_text(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula; plain numbers are unchanged.

    Examples
    --------
    >>> free_text("=1+1"), free_text("-5")
    ("'=1+1", '-5')
    """
    if _HARMLESS.fullmatch(text):  # as nearly all are
        return _shorten(text)
    plain = text.strip()
    return plain if _NUMBER.fullmatch(plain) else _shorten(text_cell(text))


def free_texts(texts: Iterable[str]) -> str:
    """Return one cell of several texts."""
    return _shorten(list_cell(texts))


def _shorten(cell: str) -> str:
    return cell if len(cell) <= _MAX_CELL else cell[: _MAX_CELL - 1] + "…"


def line(cells: Iterable[str]) -> str:
    """Return a line of a table; a cell that begins with a quotation mark is quoted."""
    return "\t".join('"' + c.replace('"', '""') + '"' if c[:1] == '"' else c for c in cells) + "\n"


class SkippedTable:
    """Write ``skipped.tsv``; call it with where and why a record was skipped.

    A run that is resumed reads its spectra from the beginning and skips the same records again, so
    the table is always begun anew.

    Attributes
    ----------
    count : int
    first : list of (str, str)
        Where and why, of the first five: a single output file has no table of them.
    """

    def __init__(self, folder: Path) -> None:
        (folder / SKIPPED).unlink(missing_ok=True)
        self.count, self.first = 0, list[tuple[str, str]]()
        self.spool = Spool(folder / SKIPPED)
        self.spool.write(line(["where", "reason"]))

    def __call__(self, where: str, reason: str) -> None:
        """Add a row."""
        cells = free_text(where), free_text(reason)
        self.count += 1
        if self.count <= 5:
            self.first.append(cells)
        self.spool.write(line(cells))


def read_skipped(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield where and why, row by row, of the table that `SkippedTable` has written."""
    with (folder / SKIPPED).open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, "excel-tab")
        next(rows)
        yield from ((where, reason) for where, reason in rows)


_FRACTIONS = frozenset(
    ("confidence", "probability", "inDatabaseProbability", "coverage", "classProbability",
     "rankedFormulaProbability", "rankedFormulaInCandidates", "includedProbability")
)  # fmt: skip
_DIGITS = {"ionMass": 5, "retentionTimeInSeconds": 2, "mass": 5, "errorPpm": 2}  # 4 for others


def cell(column: str, value: Any) -> str:
    """Return the text of a value of a column; empty for None.

    Examples
    --------
    >>> cell("mass", 194.08), cell("inSet", True), cell("notes", ("a", "b")), cell("level", None)
    ('194.08000', 'yes', 'a; b', '')
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else "yes" if value else "no"
    if isinstance(value, str):
        return free_text(value)
    if isinstance(value, tuple):
        return free_texts(value)
    if isinstance(value, int):
        return str(value)
    return fraction(value) if column in _FRACTIONS else decimal(value, _DIGITS.get(column, 4))


def _log_odds(kind: str) -> Callable[[Annotation, Candidate], float | None]:
    """Return what channels of a kind add to a score; None where no channel is of that kind."""
    return lambda annotation, candidate: (
        annotation.nats(candidate, kind) if kind in annotation.kinds.values() else None
    )


# Values of a candidate by column. Columns of channels stand between the two parts.
FIRST: dict[str, Callable[[Annotation, Candidate], Any]] = {
    "feature": lambda a, _: a.feature.name,
    "rank": lambda *_: 1,  # of the best candidate; `candidate_values` counts on
    "smiles": lambda _, c: c.smiles,
    "InChIkey2D": lambda _, c: c.key,
    "molecularFormula": lambda _, c: c.formula,
    "adduct": lambda _, c: c.adduct,
    "probability": lambda _, c: c.probability,
    "confidence": lambda a, c: a.confidence_of(c),
    "inSet": lambda _, c: c.in_set,
    "name": lambda _, c: c.name,
    "mass": lambda _, c: c.mass,
    "errorPpm": lambda _, c: c.error_ppm,
    "score": lambda _, c: c.score,
}
LAST: dict[str, Callable[[Annotation, Candidate], Any]] = {
    "evidence": _log_odds("evidence"),
    "analogy": _log_odds("analogy"),
    "match": _log_odds("match"),
    "external": _log_odds("external"),
    "prior": _log_odds("prior"),
    "explainedIntensity": lambda _, c: c.explained,
    "explainedPeaks": lambda _, c: c.peaks_explained,
    "libraryMatch": lambda _, c: c.match and c.match.record,
    "librarySimilarity": lambda _, c: c.match and c.match.similarity,
    "analogRecord": lambda _, c: c.analog and c.analog.record,
    "analogSimilarity": lambda _, c: c.analog and c.analog.similarity,
    "analogLikeness": lambda _, c: c.analog and c.analog.tanimoto,
    "level": lambda a, c: a.level.number if c is a.best else None,
    "sources": lambda _, c: tuple(c.sources),
    "links": lambda _, c: tuple(links(c.identifiers)),
}
# Values of a feature by column, beside those of its best candidate.
_FEATURE: dict[str, Callable[[Annotation], Any]] = {
    "feature": lambda a: a.feature.name,
    "named_by": lambda a: a.feature.named_by,
    "ionMass": lambda a: a.feature.precursor_mz,
    "retentionTimeInSeconds": lambda a: a.feature.retention_time,
    "confidence": lambda a: a.confidence,
    "inDatabaseProbability": lambda a: a.present,
    "setSize": lambda a: a.set_size,
    "coverage": lambda a: a.coverage,
    "candidates": lambda a: a.found,
    "scored": lambda a: a.scored,
    "unlistedMatch": lambda a: a.unlisted and (a.unlisted.name or a.unlisted.record),
    "unlistedMatchSmiles": lambda a: a.unlisted and a.unlisted.smiles,
    "unlistedMatchSimilarity": lambda a: a.unlisted and a.unlisted.similarity,
    "nearestSimilarity": lambda a: a.nearest,
    "level": lambda a: a.level.number,
    "levelReason": lambda a: a.level.reason,
    "spectra": lambda a: len(a.feature.spectra),
    "file": lambda a: a.feature.where,
    "notes": lambda a: tuple(a.notes),
    "ionSupport": lambda a: tuple(
        f"{own.adduct} ({own.spectra}): {fraction(own.probability)}" for own in a.ion_support
    ),
    "class": lambda a: a.compound_class and a.compound_class.name,
    "classLevel": lambda a: a.compound_class and a.compound_class.level,
    "classProbability": lambda a: a.compound_class and a.compound_class.probability,
    # Of the most probable formula without a database.
    "rankedFormula": lambda a: a.formulas[0].formula if a.formulas else None,
    "rankedFormulaAdduct": lambda a: a.formulas[0].adduct if a.formulas else None,
    "rankedFormulaProbability": lambda a: a.formulas[0].probability if a.formulas else None,
    "rankedFormulaInCandidates": lambda a: (
        a.among_candidates(a.formulas[0]) if a.formulas else None
    ),
}
SUMMARY_COLUMNS = (
    "feature", "named_by", "rank", "name", "molecularFormula", "adduct", "InChIkey2D", "smiles",
    "ionMass", "retentionTimeInSeconds", "links", "confidence", "probability",
    "inDatabaseProbability", "setSize", "coverage", "candidates", "scored", "evidence", "analogy",
    "match", "prior", "explainedIntensity", "libraryMatch", "librarySimilarity", "unlistedMatch",
    "unlistedMatchSmiles", "unlistedMatchSimilarity", "nearestSimilarity", "level", "levelReason",
    "spectra", "file", "notes", "ionSupport",
    "class", "classLevel", "classProbability",
    "rankedFormula", "rankedFormulaAdduct", "rankedFormulaProbability",
    "rankedFormulaInCandidates",
)  # fmt: skip
PEAK_COLUMNS = (
    "feature", "spectrum", "rank", "smiles", "mz", "intensity", "relative", "formula", "errorPpm",
    "charge", "bonds", "hydrogens", "piece", "atoms", "note",
    "removed",
)  # fmt: skip
CHANNEL = "channel_"  # before a channel's name, which might be that of another column
SAME_PEAK_SECONDS = 30.0  # a compound elutes once: later than this is another compound


def summary_values(
    annotation: Annotation, columns: Iterable[str] = SUMMARY_COLUMNS
) -> dict[str, Any]:
    """Return values of a feature under the names of ``summary.tsv``; None where there is none."""
    best, of_candidate = annotation.best, FIRST | LAST
    values: dict[str, Any] = dict.fromkeys(columns)
    for name in values:
        if name in _FEATURE:
            values[name] = _FEATURE[name](annotation)
        elif best is not None:
            values[name] = of_candidate[name](annotation, best)
    return values


def candidate_values(annotation: Annotation, candidate: Candidate, rank: int) -> dict[str, Any]:
    """Return values of a candidate under the names of ``candidates.tsv``; None for none."""
    channels = zip(annotation.channels, candidate.parts, strict=True)
    return {
        **{name: value(annotation, candidate) for name, value in FIRST.items()},
        "rank": rank,
        **{f"{CHANNEL}{free_text(name)}": part for name, part in channels},
        **{name: value(annotation, candidate) for name, value in LAST.items()},
    }


def cells(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of values by column."""
    return {name: cell(name, value) for name, value in values.items()}


class Summary(RecordWriter):
    """Write ``summary.tsv``: one row a feature."""

    def record(self, annotation: Annotation) -> dict[str, str]:
        """Return the row of an annotation."""
        return cells(summary_values(annotation))

    def assemble(self, file: TextIO) -> list[str]:
        """Write the table; mark compounds that are a library match at several times."""
        repeated = repeated_matches(self.records())
        file.write(line(SUMMARY_COLUMNS))
        for index, row in enumerate(self.records()):
            if index in repeated:
                row["notes"] = free_texts([*cell_texts(row["notes"]), repeated[index]])
            file.write(line(row.values()))
        if not repeated:
            return []
        return [
            f"{len(repeated):,} features at level 2a have the compound of another feature of "
            f"the run at another retention time (first: {next(iter(repeated.values()))}); at most "
            "one of them can be right: see notes in summary.tsv"
        ]


def repeated_matches(rows: Iterable[Mapping[str, str]]) -> dict[int, str]:
    """Find level-2a annotations of one compound and ion at different times of one file.

    Returns for each row of ``summary.tsv`` concerned, by index, a note that names the others.
    """
    groups: dict[tuple[str, ...], list[tuple[int, float, str, str]]] = {}
    for index, row in enumerate(rows):
        if row["level"] == "2a" and row["retentionTimeInSeconds"]:
            key = (row["file"], row["InChIkey2D"], row["adduct"])
            name, seconds = row["name"] or row["smiles"], float(row["retentionTimeInSeconds"])
            groups.setdefault(key, []).append((index, seconds, row["feature"], name))
    notes = {}
    for members in groups.values():
        for index, seconds, _, name in members:
            others = [
                feature
                for _, other, feature, _ in members
                if abs(other - seconds) > SAME_PEAK_SECONDS
            ]
            if others:
                shown = ", ".join([*others[:3], *("…" for _ in others[3:4])])
                notes[index] = (
                    f"{name} is also the library match of feature {shown}, at another time"
                )
    return notes


class Candidates(Writer):
    """Write ``candidates.tsv``, and any single file that ends in ``.tsv``: one row a candidate."""

    signature = re.compile(
        rb"\A%s(?:\t%s[^\t\n]+)*\t%s\n"
        % ("\t".join(FIRST).encode(), CHANNEL.encode(), "\t".join(LAST).encode())
    )
    _header = ""

    def write(self, annotation: Annotation) -> None:
        """Add a row for each candidate."""
        self._begin(annotation.channels)
        self.spool.write(
            "".join(
                line(cells(candidate_values(annotation, candidate, rank)).values())
                for rank, candidate in enumerate(annotation.ranked, 1)
            )
        )

    def finish(self) -> list[str]:
        """Complete the file: without annotations it is a header without channels."""
        if self.spool.is_empty:
            self._begin(())
        return super().finish()

    def _begin(self, channels: tuple[str, ...]) -> None:
        header = line([*FIRST, *(f"{CHANNEL}{free_text(name)}" for name in channels), *LAST])
        if self.spool.is_empty:
            self.spool.write(header)
        self._header = self._header or next(self.spool.lines())
        if header != self._header:
            raise ValueError("annotations of one run have different channels")


class Peaks(Writer):
    """Write ``peaks.tsv``: all peaks of all spectra, with what the best candidate explains.

    A feature without candidates has its peaks all the same, unexplained.
    """

    def write(self, annotation: Annotation) -> None:
        """Add a row for each peak."""
        self._begin()
        best = annotation.best
        fragments, explained = FragmentSmiles(best), annotation.peaks_of(best)
        for spectrum, peaks in zip(annotation.feature.spectra, explained, strict=True):
            first = [
                free_text(annotation.feature.name),
                free_text(spectrum.identifier),
                "1" if best else "",
                free_text(best.smiles) if best else "",
            ]
            highest = float(spectrum.intensities.max(initial=0.0)) or 1.0
            for peak in peaks:
                measured = [decimal(peak.mz, 5), f"{peak.intensity:.6g}"]
                measured.append(decimal(peak.intensity / highest, 4))
                cells = [*first, *measured, *_fragment_cells(peak, fragments), peak.removed]
                self.spool.write(line(cells))

    def finish(self) -> list[str]:
        """Complete the file: without annotations it is a header."""
        self._begin()
        return super().finish()

    def _begin(self) -> None:
        if self.spool.is_empty:
            self.spool.write(line(PEAK_COLUMNS))


def _fragment_cells(peak: Explanation, fragments: FragmentSmiles) -> list[str]:
    if peak.formula is None:
        return [""] * 8
    return [
        free_text(peak.formula),
        decimal(peak.error_ppm, 2),
        f"{peak.charge:+d}" if peak.charge is not None else "",
        str(peak.bonds),
        f"{peak.hydrogens:+d}" if peak.hydrogens else "0",
        free_text(fragments.smiles(peak.atoms)),
        " ".join(map(str, peak.atoms)),
        peak.note,
    ]
