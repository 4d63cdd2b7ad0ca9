"""``candidates.tsv``: one row a candidate, the best first; one column for each channel."""

from collections.abc import Callable

from mzseek.annotation.answers import Answer, Candidate
from mzseek.annotation.writing.links import links
from mzseek.annotation.writing.spool import Writer, ranked
from mzseek.annotation.writing.tables.cells import decimal, row, several, share, words
from mzseek.annotation.writing.tables.summary import nats

_Cell = Callable[[Answer, Candidate], str]
CHANNEL = "channel_"  # before a channel's name, which might be that of another column


def _of_candidate(cell: Callable[[Candidate], str]) -> _Cell:
    return lambda _, candidate: cell(candidate)


# "rank" is filled in by the writer; columns of channels stand between the two parts.
FIRST: dict[str, _Cell] = {
    "feature": lambda answer, _: words(answer.feature.name),
    "rank": lambda *_: "",
    "smiles": _of_candidate(lambda each: words(each.smiles)),
    "InChIkey2D": _of_candidate(lambda each: words(each.key)),
    "molecularFormula": _of_candidate(lambda each: words(each.formula)),
    "adduct": _of_candidate(lambda each: words(each.adduct)),
    "probability": _of_candidate(lambda each: share(each.probability)),
    "confidence": lambda answer, each: share(answer.confidence_of(each)),
    "inSet": _of_candidate(lambda each: "yes" if each.in_set else "no"),
    "name": _of_candidate(lambda each: words(each.name)),
    "mass": _of_candidate(lambda each: decimal(each.mass, 5)),
    "errorPpm": _of_candidate(lambda each: decimal(each.error_ppm, 2)),
    "score": _of_candidate(lambda each: decimal(each.score, 4)),
}
LAST: dict[str, _Cell] = {
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
    "level": lambda answer, each: words(answer.level.number) if each is answer.best else "",
    "sources": _of_candidate(lambda each: several(each.sources)),
    "links": _of_candidate(lambda each: several(links(each.identifiers))),
}


def candidate_cells(answer: Answer, candidate: Candidate, rank: int) -> dict[str, str]:
    """What the table says of a candidate, by column."""
    cells = {name: cell(answer, candidate) for name, cell in FIRST.items()}
    cells["rank"] = str(rank)
    for channel, part in zip(answer.channels, candidate.parts, strict=True):
        cells[f"{CHANNEL}{words(channel)}"] = decimal(part, 4)
    return cells | {name: cell(answer, candidate) for name, cell in LAST.items()}


class Candidates(Writer):
    """Writes ``candidates.tsv``, and any single file that ends in ``.tsv``."""

    _header: str | None = None

    def write(self, answer: Answer) -> None:
        """Add a row for each candidate."""
        self._begin(answer.channels)
        self.spools[self.name].write(
            "".join(
                row(list(candidate_cells(answer, candidate, rank).values()))
                for rank, candidate in enumerate(ranked(answer), 1)
            )
        )

    def finish(self) -> list[str]:
        """Complete the file: without answers it is a header that knows no channels."""
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
