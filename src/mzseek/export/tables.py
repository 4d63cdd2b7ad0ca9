"""summary.tsv, candidates.tsv, peaks.tsv and the table of skipped features."""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rdkit.Chem import Mol, MolFragmentToSmiles

from mzseek.annotation.annotation import Annotation, Candidate
from mzseek.chem import parse_molecule
from mzseek.chem.identifiers import links
from mzseek.core.errors import MzseekError
from mzseek.export.writer import Rows, Settings, Spool, Writer, ranked
from mzseek.fragments import Explanation, explain
from mzseek.io.text_tables import cell_texts, list_cell, text_cell
from mzseek.spectra import Spectrum

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


_Cell = Callable[[Annotation], str]
SAME_PEAK_SECONDS = 30.0  # a compound elutes once: later than this is another compound
_OTHERS_SHOWN = 3


def _of_best(cell: Callable[[Candidate], str]) -> _Cell:
    """A cell about what is decided for; empty where there are no candidates."""
    return lambda annotation: "" if annotation.best is None else cell(annotation.best)


def nats(kind: str) -> Callable[[Annotation, Candidate], str]:
    """A cell of what channels of a kind add; empty where no channel is of that kind."""
    return lambda annotation, candidate: (
        decimal(annotation.nats(candidate, kind), 4) if kind in annotation.kinds.values() else ""
    )


def _nats_of_best(kind: str) -> _Cell:
    cell = nats(kind)
    return lambda annotation: "" if annotation.best is None else cell(annotation, annotation.best)


SUMMARY_COLUMNS: dict[str, _Cell] = {
    "feature": lambda annotation: words(annotation.feature.name),
    "named_by": lambda annotation: words(annotation.feature.named_by),
    "rank": _of_best(lambda _: "1"),
    "name": _of_best(lambda best: words(best.name)),
    "molecularFormula": _of_best(lambda best: words(best.formula)),
    "adduct": _of_best(lambda best: words(best.adduct)),
    "InChIkey2D": _of_best(lambda best: words(best.key)),
    "smiles": _of_best(lambda best: words(best.smiles)),
    "ionMass": lambda annotation: decimal(annotation.feature.precursor_mz, 5),
    "retentionTimeInSeconds": lambda annotation: decimal(annotation.feature.retention_time, 2),
    "links": _of_best(lambda best: several(links(best.identifiers))),
    "confidence": lambda annotation: share(annotation.confidence),
    "probability": _of_best(lambda best: share(best.probability)),
    "inDatabaseProbability": lambda annotation: share(annotation.present),
    "setSize": lambda annotation: str(annotation.set_size),
    "coverage": lambda annotation: share(annotation.coverage),
    "candidates": lambda annotation: str(annotation.found),
    "scored": lambda annotation: str(annotation.scored),
    "evidence": _nats_of_best("evidence"),
    "analogy": _nats_of_best("analogy"),
    "match": _nats_of_best("match"),
    "prior": _nats_of_best("prior"),
    "explainedIntensity": _of_best(lambda best: decimal(best.explained, 4)),
    "libraryMatch": _of_best(lambda best: words(best.match.record) if best.match else ""),
    "librarySimilarity": _of_best(lambda b: decimal(b.match.similarity, 4) if b.match else ""),
    "unlistedMatch": lambda a: words(a.unlisted.name or a.unlisted.record) if a.unlisted else "",
    "unlistedMatchSmiles": lambda a: words(a.unlisted.smiles) if a.unlisted else "",
    "unlistedMatchSimilarity": lambda a: decimal(a.unlisted.similarity, 4) if a.unlisted else "",
    "nearestSimilarity": lambda annotation: decimal(annotation.nearest, 4),
    "level": lambda annotation: words(annotation.level.number),
    "levelReason": lambda annotation: words(annotation.level.reason),
    "spectra": lambda annotation: str(len(annotation.feature.spectra)),
    "file": lambda annotation: words(annotation.feature.where),
    "notes": lambda annotation: several(annotation.notes),
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
    return {f"{BEFORE}{name}": SUMMARY_COLUMNS[name](annotation) for name in JOINED}


def summary_cells(annotation: Annotation) -> dict[str, str]:
    """What the table says of a feature, by column."""
    return {name: cell(annotation) for name, cell in SUMMARY_COLUMNS.items()}


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
        return row(list(summary_cells(annotation).values()))


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


_Cell_candidates = Callable[[Annotation, Candidate], str]
CHANNEL = "channel_"  # before a channel's name, which might be that of another column


def _of_candidate(cell: Callable[[Candidate], str]) -> _Cell_candidates:
    return lambda _, candidate: cell(candidate)


# "rank" is filled in by the writer; columns of channels stand between the two parts.
FIRST: dict[str, _Cell_candidates] = {
    "feature": lambda annotation, _: words(annotation.feature.name),
    "rank": lambda *_: "",
    "smiles": _of_candidate(lambda each: words(each.smiles)),
    "InChIkey2D": _of_candidate(lambda each: words(each.key)),
    "molecularFormula": _of_candidate(lambda each: words(each.formula)),
    "adduct": _of_candidate(lambda each: words(each.adduct)),
    "probability": _of_candidate(lambda each: share(each.probability)),
    "confidence": lambda annotation, each: share(annotation.confidence_of(each)),
    "inSet": _of_candidate(lambda each: "yes" if each.in_set else "no"),
    "name": _of_candidate(lambda each: words(each.name)),
    "mass": _of_candidate(lambda each: decimal(each.mass, 5)),
    "errorPpm": _of_candidate(lambda each: decimal(each.error_ppm, 2)),
    "score": _of_candidate(lambda each: decimal(each.score, 4)),
}
LAST: dict[str, _Cell_candidates] = {
    "evidence": nats("evidence"),
    "analogy": nats("analogy"),
    "match": nats("match"),
    "prior": nats("prior"),
    "explainedIntensity": _of_candidate(lambda each: decimal(each.explained, 4)),
    "explainedPeaks": _of_candidate(lambda each: str(each.peaks_explained)),
    "libraryMatch": _of_candidate(lambda each: words(each.match.record) if each.match else ""),
    "librarySimilarity": _of_candidate(
        lambda each: decimal(each.match.similarity, 4) if each.match else ""
    ),
    "analogRecord": _of_candidate(lambda each: words(each.analog.record) if each.analog else ""),
    "analogSimilarity": _of_candidate(
        lambda each: decimal(each.analog.similarity, 4) if each.analog else ""
    ),
    "analogLikeness": _of_candidate(
        lambda each: decimal(each.analog.likeness, 4) if each.analog else ""
    ),
    "level": lambda annotation, each: (
        words(annotation.level.number) if each is annotation.best else ""
    ),
    "sources": _of_candidate(lambda each: several(each.sources)),
    "links": _of_candidate(lambda each: several(links(each.identifiers))),
}


def candidate_cells(annotation: Annotation, candidate: Candidate, rank: int) -> dict[str, str]:
    """What the table says of a candidate, by column."""
    cells = {name: cell(annotation, candidate) for name, cell in FIRST.items()}
    cells["rank"] = str(rank)
    for channel, part in zip(annotation.channels, candidate.parts, strict=True):
        cells[f"{CHANNEL}{words(channel)}"] = decimal(part, 4)
    return cells | {name: cell(annotation, candidate) for name, cell in LAST.items()}


class Candidates(Writer):
    """Writes ``candidates.tsv``, and any single file that ends in ``.tsv``."""

    _header: str | None = None

    def write(self, annotation: Annotation) -> None:
        """Add a row for each candidate."""
        self._begin(annotation.channels)
        self.spools[self.name].write(
            "".join(
                row(list(candidate_cells(annotation, candidate, rank).values()))
                for rank, candidate in enumerate(ranked(annotation), 1)
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
        *enumerate(ranked(annotation)[: settings.peaks_of], 1)
    ]
    name = words(annotation.feature.name)
    for rank, candidate in best or [(0, None)]:
        smiles = words(candidate.smiles) if candidate else ""
        fragments = FragmentSmiles(candidate)
        for spectrum in annotation.feature.spectra:
            whose = [name, words(spectrum.identifier), str(rank) if rank else "", smiles]
            most = float(spectrum.intensities.max(initial=0.0)) or 1.0
            for peak in explained_peaks(spectrum, candidate, settings):
                yield [
                    *whose,
                    decimal(peak.mz, 5),
                    f"{peak.intensity:.6g}",
                    decimal(peak.intensity / most, 4),
                    *_explanation_cells(peak, fragments),
                ]


def explained_peaks(
    spectrum: Spectrum, candidate: Candidate | None, settings: Settings
) -> Iterator[Explanation]:
    """Peaks of a spectrum, each with the fragment of a candidate that explains it best, if any."""
    if candidate is not None:
        try:
            yield from explain(
                spectrum,
                candidate.smiles,
                adduct=candidate.adduct or None,
                ppm=settings.ppm,
                least=settings.least,
            )
        except MzseekError:  # an ion whose fragments nobody can name explains nothing
            pass
        else:
            return
    for mz, intensity in zip(spectrum.mz.tolist(), spectrum.intensities.tolist(), strict=True):
        nothing = (None, None, (), None, None, None, (), None, None)
        yield Explanation(mz, *nothing, intensity, 0.0, 0)


def _explanation_cells(peak: Explanation, fragments: "FragmentSmiles") -> list[str]:
    if peak.formula is None:
        return [""] * 8
    return [
        words(peak.formula),
        decimal(peak.error_ppm, 2),
        f"{peak.charge:+d}" if peak.charge is not None else "",
        str(peak.bonds),
        f"{peak.hydrogens:+d}" if peak.hydrogens else "0",
        fragments.smiles(peak.atoms),
        " ".join(map(str, peak.atoms)),
        peak.note,
    ]


class FragmentSmiles:
    """Fragments of a candidate as SMILES, each written once."""

    def __init__(self, candidate: Candidate | None) -> None:
        self._molecule: Mol | None = None
        self._written: dict[tuple[int, ...], str] = {}
        if candidate is not None:
            with contextlib.suppress(MzseekError):
                self._molecule = parse_molecule(candidate.smiles)

    def smiles(self, atoms: tuple[int, ...]) -> str:
        """SMILES of some atoms of the candidate; empty where it cannot be read."""
        if atoms not in self._written:
            known = self._molecule is not None and atoms
            text = MolFragmentToSmiles(self._molecule, list(atoms)) if known else ""
            self._written[atoms] = words(text)
        return self._written[atoms]
