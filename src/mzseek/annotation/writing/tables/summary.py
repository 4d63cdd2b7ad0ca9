"""``summary.tsv``: one row a feature; columns that SIRIUS has, too, are named as there."""

from collections.abc import Callable

from mzseek.annotation.answers import Answer, Candidate
from mzseek.annotation.writing.links import links
from mzseek.annotation.writing.spool import Rows, Settings
from mzseek.annotation.writing.tables.cells import decimal, row, several, share, words

_Cell = Callable[[Answer], str]


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

    @staticmethod
    def text(answer: Answer, _settings: Settings) -> str:
        """The row of an answer."""
        return row(list(summary_cells(answer).values()))
