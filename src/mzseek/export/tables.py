"""summary.tsv, candidates.tsv, peaks.tsv and the table of skipped features."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mzseek.annotation.annotation import Annotation, Candidate, FragmentSmiles
from mzseek.chem.identifiers import links
from mzseek.export.writer import Rows, Settings, Spool, Writer
from mzseek.fragments import Explanation
from mzseek.io.text_tables import cell_texts, list_cell, text_cell

# Plain characters with single blanks between, and first none that a spreadsheet or a reader of
# tables minds.
_HARMLESS = re.compile(r"[A-Za-z0-9(\[/][!-~]*+(?: [!-~]++)*+")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_LONGEST = 32_000  # characters of a cell that spreadsheets read


def decimal(value: float | None, digits: int) -> str:
    """A number with so many digits behind the point; empty for none.

    Examples
    --------
    >>> decimal(195.08771, 4), decimal(float("nan"), 2), decimal(None, 2), decimal(-0.00001, 2)
    ('195.0877', '', '', '0.00')
    """
    if value is None or not math.isfinite(value):
        return ""
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def share(value: float | None) -> str:
    """A probability or a share: six digits that count, whatever its size.

    Examples
    --------
    >>> share(0.25), share(1.0), share(1.23456789e-09), share(None)
    ('0.25', '1', '1.23457e-09', '')
    """
    return "" if value is None or not math.isfinite(value) else f"{value:.6g}"


def words(text: str) -> str:
    """A cell of text that somebody else has written; plain numbers stay as they are.

    Examples
    --------
    >>> words("=1+1"), words("-5")
    ("'=1+1", '-5')
    """
    if _HARMLESS.fullmatch(text):  # as nearly all are
        return _short(text)
    plain = text.strip()
    return plain if _NUMBER.fullmatch(plain) else _short(text_cell(text))


def several(texts: Iterable[str]) -> str:
    """Several texts in one cell."""
    return _short(list_cell(texts))


def quoted(cell: str) -> str:
    """A cell that begins with a quotation mark, in quotation marks."""
    return '"' + cell.replace('"', '""') + '"' if cell.startswith('"') else cell


def unquoted(cell: str) -> str:
    """What `quoted` made a cell of.

    Examples
    --------
    >>> unquoted(quoted('"a" b')), unquoted("a")
    ('"a" b', 'a')
    """
    return cell[1:-1].replace('""', '"') if cell.startswith('"') else cell


def row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return "\t".join(map(quoted, cells)) + "\n"


def _short(cell: str) -> str:
    return cell if len(cell) <= _LONGEST else cell[: _LONGEST - 1] + "…"


SKIPPED_COLUMNS = ("where", "reason")
_FEW = 5


class SkippedTable:
    """Writes ``set-aside.tsv``; give it as ``rejects``.

    A run that goes on reads its spectra from the beginning and sets the same aside again, so the
    table is always begun anew.

    Attributes
    ----------
    count : int
    first : list of (str, str)
        Where and why, of the first few: a single file of annotations has no table of them.
    """

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.count, self.first = 0, list[tuple[str, str]]()
        self._spool = Spool(path)
        self._spool.write(row(SKIPPED_COLUMNS))

    def __call__(self, where: str, reason: str) -> None:
        """Add a row."""
        self.count += 1
        if len(self.first) < _FEW:
            self.first.append((words(where), words(reason)))
        self._spool.write(row([words(where), words(reason)]))

    def flush(self) -> None:
        """Have all rows so far in the file."""
        self._spool.place()

    def close(self) -> None:
        """Close the file."""
        self._spool.close()


def read_set_aside(path: Path) -> Iterator[tuple[str, str]]:
    """Where and why, row by row, of a table as `SkippedTable` writes it."""
    with path.open(encoding="utf-8", newline="\n") as file:
        next(file)
        for line in file:
            where, reason = (unquoted(cell) for cell in line.rstrip("\n").split("\t"))
            yield where, reason


SAME_PEAK_SECONDS = 30.0  # a compound elutes once: later than this is another compound
_OTHERS_SHOWN = 3
_SHARES = frozenset({"confidence", "probability", "inDatabaseProbability", "coverage"})
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
        return words(value)
    if isinstance(value, tuple):
        return several(value)
    if isinstance(value, int):
        return str(value)
    return share(value) if column in _SHARES else decimal(value, _DIGITS.get(column, 4))


def _of_best(value: Callable[[Candidate], Any]) -> Callable[[Annotation], Any]:
    return lambda annotation: None if annotation.best is None else value(annotation.best)


def _of_kind(kind: str) -> Callable[[Annotation, Candidate], float | None]:
    """Log-odds that channels of a kind add; None where no channel is of that kind."""
    return lambda annotation, candidate: (
        annotation.nats(candidate, kind) if kind in annotation.kinds.values() else None
    )


def _of_kind_best(kind: str) -> Callable[[Annotation], float | None]:
    value = _of_kind(kind)
    return lambda annotation: (
        None if annotation.best is None else value(annotation, annotation.best)
    )


SUMMARY_COLUMNS: dict[str, Callable[[Annotation], Any]] = {
    "feature": lambda annotation: annotation.feature.name,
    "named_by": lambda annotation: annotation.feature.named_by,
    "rank": _of_best(lambda _: 1),
    "name": _of_best(lambda best: best.name),
    "molecularFormula": _of_best(lambda best: best.formula),
    "adduct": _of_best(lambda best: best.adduct),
    "InChIkey2D": _of_best(lambda best: best.key),
    "smiles": _of_best(lambda best: best.smiles),
    "ionMass": lambda annotation: annotation.feature.precursor_mz,
    "retentionTimeInSeconds": lambda annotation: annotation.feature.retention_time,
    "links": _of_best(lambda best: tuple(links(best.identifiers))),
    "confidence": lambda annotation: annotation.confidence,
    "probability": _of_best(lambda best: best.probability),
    "inDatabaseProbability": lambda annotation: annotation.present,
    "setSize": lambda annotation: annotation.set_size,
    "coverage": lambda annotation: annotation.coverage,
    "candidates": lambda annotation: annotation.found,
    "scored": lambda annotation: annotation.scored,
    "evidence": _of_kind_best("evidence"),
    "analogy": _of_kind_best("analogy"),
    "match": _of_kind_best("match"),
    "prior": _of_kind_best("prior"),
    "explainedIntensity": _of_best(lambda best: best.explained),
    "libraryMatch": _of_best(lambda best: best.match and best.match.record),
    "librarySimilarity": _of_best(lambda best: best.match and best.match.similarity),
    "unlistedMatch": lambda a: a.unlisted and (a.unlisted.name or a.unlisted.record),
    "unlistedMatchSmiles": lambda a: a.unlisted and a.unlisted.smiles,
    "unlistedMatchSimilarity": lambda a: a.unlisted and a.unlisted.similarity,
    "nearestSimilarity": lambda annotation: annotation.nearest,
    "level": lambda annotation: annotation.level.number,
    "levelReason": lambda annotation: annotation.level.reason,
    "spectra": lambda annotation: len(annotation.feature.spectra),
    "file": lambda annotation: annotation.feature.where,
    "notes": lambda annotation: tuple(annotation.notes),
}


# What is put beside the rows or nodes of somebody else's table or network, and which are numbers.
JOINED = (
    "name", "molecularFormula", "adduct", "InChIkey2D", "smiles", "confidence", "probability",
    "inDatabaseProbability", "setSize", "explainedIntensity", "libraryMatch", "librarySimilarity",
    "level", "levelReason", "links", "notes",
)  # fmt: skip
NUMBERS = frozenset(
    {"confidence", "probability", "inDatabaseProbability", "setSize", "explainedIntensity",
     "librarySimilarity"}
)  # fmt: skip
BEFORE = "mzseek_"  # before the names of these columns, so that they are like no other


def joined_cells(annotation: Annotation) -> dict[str, str]:
    """What is put beside a row or node, by column."""
    return {f"{BEFORE}{name}": cell(name, SUMMARY_COLUMNS[name](annotation)) for name in JOINED}


def summary_values(annotation: Annotation) -> dict[str, Any]:
    """Values of a feature under the names of ``summary.tsv``; None where there is none."""
    return {name: value(annotation) for name, value in SUMMARY_COLUMNS.items()}


class Summary(Rows):
    """Writes ``summary.tsv``."""

    columns = tuple(SUMMARY_COLUMNS)

    def spool_names(self) -> list[str]:
        """Rows are kept beside the table, so that a run that stops while it ends can be resumed."""
        return [f"{self.name}.rows"]

    def finish(self) -> list[str]:
        """Complete the table; mark compounds that are a library match at several times."""
        said = super().finish()
        rows = self.folder / self.spool_names()[0]
        with rows.open(encoding="utf-8", newline="\n") as file:
            cells = [line.rstrip("\n").split("\t") for line in file][1:]
        repeated = repeated_matches([dict(zip(self.columns, row, strict=True)) for row in cells])
        _write_table(self.folder / self.name, cells, repeated)
        if repeated:
            first = next(iter(repeated.values()))
            said.append(
                f"{len(repeated):,} features at level 2a have the compound of another feature of "
                f"the run at another retention time (first: {first}); at most one of them can be "
                "right: see notes in summary.tsv"
            )
        return said

    @staticmethod
    def text(annotation: Annotation, _settings: Settings) -> str:
        """The row of an annotation."""
        return row([cell(*item) for item in summary_values(annotation).items()])


def repeated_matches(rows: Sequence[Mapping[str, str]]) -> dict[int, str]:
    """Find level-2a annotations of one compound and ion at different retention times of one file.

    Parameters
    ----------
    rows : sequence of mappings
        Cells of ``summary.tsv``.

    Returns
    -------
    dict of int to str
        For each row concerned, the note: which other features have the compound.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, cells in enumerate(rows):
        if cells["level"] == "2a" and cells["retentionTimeInSeconds"]:
            key = (cells["file"], cells["InChIkey2D"], cells["adduct"])
            groups.setdefault(key, []).append(place)
    notes = {}
    for members in groups.values():
        times = {place: float(rows[place]["retentionTimeInSeconds"]) for place in members}
        for place in members:
            others = [
                rows[other]["feature"]
                for other in members
                if abs(times[other] - times[place]) > SAME_PEAK_SECONDS
            ]
            if others:
                shown = ", ".join(others[:_OTHERS_SHOWN]) + (", …" if others[3:] else "")
                name = rows[place]["name"] or rows[place]["smiles"]
                notes[place] = (
                    f"{name} is also the library match of feature {shown}, at another time"
                )
    return notes


def _write_table(path: Path, rows: Sequence[list[str]], notes: Mapping[int, str]) -> None:
    """Write the table with notes added to some rows."""
    column = list(SUMMARY_COLUMNS).index("notes")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(SUMMARY_COLUMNS) + "\n")
        for place, cells in enumerate(rows):
            if place in notes:
                text = several([*cell_texts(cells[column]), notes[place]])
                cells = [*cells[:column], text, *cells[column + 1 :]]
            file.write("\t".join(cells) + "\n")


CHANNEL = "channel_"  # before a channel's name, which might be that of another column
_Value = Callable[[Annotation, Candidate], Any]
# "rank" is filled in by the writer; columns of channels stand between the two parts.
FIRST: dict[str, _Value] = {
    "feature": lambda annotation, _: annotation.feature.name,
    "rank": lambda *_: None,
    "smiles": lambda _, candidate: candidate.smiles,
    "InChIkey2D": lambda _, candidate: candidate.key,
    "molecularFormula": lambda _, candidate: candidate.formula,
    "adduct": lambda _, candidate: candidate.adduct,
    "probability": lambda _, candidate: candidate.probability,
    "confidence": lambda annotation, candidate: annotation.confidence_of(candidate),
    "inSet": lambda _, candidate: candidate.in_set,
    "name": lambda _, candidate: candidate.name,
    "mass": lambda _, candidate: candidate.mass,
    "errorPpm": lambda _, candidate: candidate.error_ppm,
    "score": lambda _, candidate: candidate.score,
}
LAST: dict[str, _Value] = {
    "evidence": _of_kind("evidence"),
    "analogy": _of_kind("analogy"),
    "match": _of_kind("match"),
    "prior": _of_kind("prior"),
    "explainedIntensity": lambda _, candidate: candidate.explained,
    "explainedPeaks": lambda _, candidate: candidate.peaks_explained,
    "libraryMatch": lambda _, candidate: candidate.match and candidate.match.record,
    "librarySimilarity": lambda _, candidate: candidate.match and candidate.match.similarity,
    "analogRecord": lambda _, candidate: candidate.analog and candidate.analog.record,
    "analogSimilarity": lambda _, candidate: candidate.analog and candidate.analog.similarity,
    "analogLikeness": lambda _, candidate: candidate.analog and candidate.analog.likeness,
    "level": lambda annotation, candidate: (
        annotation.level.number if candidate is annotation.best else None
    ),
    "sources": lambda _, candidate: tuple(candidate.sources),
    "links": lambda _, candidate: tuple(links(candidate.identifiers)),
}


def candidate_values(annotation: Annotation, candidate: Candidate, rank: int) -> dict[str, Any]:
    """Values of a candidate under the names of ``candidates.tsv``; None where there is none."""
    parts = zip(annotation.channels, candidate.parts, strict=True)
    return {
        **{name: value(annotation, candidate) for name, value in FIRST.items()},
        "rank": rank,
        **{f"{CHANNEL}{words(channel)}": part for channel, part in parts},
        **{name: value(annotation, candidate) for name, value in LAST.items()},
    }


class Candidates(Writer):
    """Writes ``candidates.tsv``, and any single file that ends in ``.tsv``."""

    _header: str | None = None

    def write(self, annotation: Annotation) -> None:
        """Add a row for each candidate."""
        self._begin(annotation.channels)
        self.spools[self.name].write(
            "".join(
                row([cell(*each) for each in candidate_values(annotation, candidate, rank).items()])
                for rank, candidate in enumerate(annotation.ranked, 1)
            )
        )

    def finish(self) -> list[str]:
        """Complete the file: without annotations it is a header that knows no channels."""
        if self.spools[self.name].is_empty:
            self._begin(())
        return super().finish()

    def _begin(self, channels: tuple[str, ...]) -> None:
        spool = self.spools[self.name]
        header = row([*FIRST, *(f"{CHANNEL}{words(each)}" for each in channels), *LAST])
        if spool.is_empty:
            spool.write(header)
        if self._header is None:
            self._header = next(spool.lines())
        if header != self._header:
            raise ValueError("answers of one run have different channels")


PEAK_COLUMNS = (
    "feature", "spectrum", "rank", "smiles", "mz", "intensity", "relative", "formula", "errorPpm",
    "charge", "bonds", "hydrogens", "piece", "atoms", "note",
)  # fmt: skip


class Peaks(Rows):
    """Writes ``peaks.tsv``."""

    columns = PEAK_COLUMNS

    @staticmethod
    def text(annotation: Annotation, settings: Settings) -> str:
        """A row for each peak and candidate."""
        return "".join(map(row, peak_rows(annotation, settings)))


def peak_rows(annotation: Annotation, settings: Settings) -> Iterator[list[str]]:
    """Rows of a feature: for each of its best candidates all peaks of all spectra.

    A feature without candidates has its peaks all the same, unexplained.
    """
    best: list[tuple[int, Candidate | None]] = [
        *enumerate(annotation.ranked[: settings.peaks_of], 1)
    ]
    name = words(annotation.feature.name)
    for rank, candidate in best or [(0, None)]:
        smiles = words(candidate.smiles) if candidate else ""
        fragments = FragmentSmiles(candidate)
        explained = annotation.peaks_of(candidate)
        for spectrum, peaks in zip(annotation.feature.spectra, explained, strict=True):
            whose = [name, words(spectrum.identifier), str(rank) if rank else "", smiles]
            most = float(spectrum.intensities.max(initial=0.0)) or 1.0
            for peak in peaks:
                yield [
                    *whose,
                    decimal(peak.mz, 5),
                    f"{peak.intensity:.6g}",
                    decimal(peak.intensity / most, 4),
                    *_explanation_cells(peak, fragments),
                ]


def _explanation_cells(peak: Explanation, fragments: "FragmentSmiles") -> list[str]:
    if peak.formula is None:
        return [""] * 8
    return [
        words(peak.formula),
        decimal(peak.error_ppm, 2),
        f"{peak.charge:+d}" if peak.charge is not None else "",
        str(peak.bonds),
        f"{peak.hydrogens:+d}" if peak.hydrogens else "0",
        words(fragments.smiles(peak.atoms)),
        " ".join(map(str, peak.atoms)),
        peak.note,
    ]
