"""``summary.tsv``: one row a feature; columns that SIRIUS has, too, are named as there."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mzseek.annotation.answers import Answer, Candidate
from mzseek.annotation.writing.links import links
from mzseek.annotation.writing.spool import Rows, Settings
from mzseek.annotation.writing.tables.cells import decimal, row, several, share, words
from mzseek.files.streams.cells import list_texts

_Cell = Callable[[Answer], str]
SAME_PEAK_SECONDS = 30.0  # a compound elutes once: later than this is another compound
_OTHERS_SHOWN = 3


def _of_best(cell: Callable[[Candidate], str]) -> _Cell:
    """A cell about what is decided for; empty where there are no candidates."""
    return lambda answer: "" if answer.best is None else cell(answer.best)


def nats(kind: str) -> Callable[[Answer, Candidate], str]:
    """A cell of what channels of a kind add; empty where no channel is of that kind."""
    return lambda answer, candidate: (
        decimal(answer.nats(candidate, kind), 4) if kind in answer.kinds.values() else ""
    )


def _nats_of_best(kind: str) -> _Cell:
    cell = nats(kind)
    return lambda answer: "" if answer.best is None else cell(answer, answer.best)


COLUMNS: dict[str, _Cell] = {
    "feature": lambda answer: words(answer.feature.name),
    "named_by": lambda answer: words(answer.feature.named_by),
    "rank": _of_best(lambda _: "1"),
    "name": _of_best(lambda best: words(best.name)),
    "molecularFormula": _of_best(lambda best: words(best.formula)),
    "adduct": _of_best(lambda best: words(best.adduct)),
    "InChIkey2D": _of_best(lambda best: words(best.key)),
    "smiles": _of_best(lambda best: words(best.smiles)),
    "ionMass": lambda answer: decimal(answer.feature.precursor_mz, 5),
    "retentionTimeInSeconds": lambda answer: decimal(answer.feature.retention_time, 2),
    "links": _of_best(lambda best: several(links(best.identifiers))),
    "confidence": lambda answer: share(answer.confidence),
    "probability": _of_best(lambda best: share(best.probability)),
    "inDatabaseProbability": lambda answer: share(answer.present),
    "setSize": lambda answer: str(answer.set_size),
    "coverage": lambda answer: share(answer.coverage),
    "candidates": lambda answer: str(answer.found),
    "scored": lambda answer: str(answer.scored),
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
    "nearestSimilarity": lambda answer: decimal(answer.nearest, 4),
    "level": lambda answer: words(answer.level.number),
    "levelReason": lambda answer: words(answer.level.reason),
    "spectra": lambda answer: str(len(answer.feature.spectra)),
    "file": lambda answer: words(answer.feature.where),
    "notes": lambda answer: several(answer.notes),
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


def joined_cells(answer: Answer) -> dict[str, str]:
    """What is put beside a row or node, by column."""
    return {f"{BEFORE}{name}": COLUMNS[name](answer) for name in JOINED}


def summary_cells(answer: Answer) -> dict[str, str]:
    """What the table says of a feature, by column."""
    return {name: cell(answer) for name, cell in COLUMNS.items()}


class Summary(Rows):
    """Writes ``summary.tsv``."""

    columns = tuple(COLUMNS)

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
    def text(answer: Answer, _settings: Settings) -> str:
        """The row of an answer."""
        return row(list(summary_cells(answer).values()))


def repeated_matches(rows: Sequence[Mapping[str, str]]) -> dict[int, str]:
    """Find level-2a answers of one compound and ion at different retention times of one file.

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
    column = list(COLUMNS).index("notes")
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for place, cells in enumerate(rows):
            if place in notes:
                text = several([*list_texts(cells[column]), notes[place]])
                cells = [*cells[:column], text, *cells[column + 1 :]]
            file.write("\t".join(cells) + "\n")
