"""Writing the page: features go by one at a time, and none is kept."""

import contextlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment
from markupsafe import Markup

from mzseek.annotation.answers import Answer
from mzseek.annotation.writing import Settings, Writer
from mzseek.annotation.writing.output import SET_ASIDE
from mzseek.annotation.writing.tables.set_aside import read_set_aside
from mzseek.files import StrPath, atomic_file
from mzseek.fragments.match import LEAST, PPM
from mzseek.report.annotations.counts import Counts, signs_of
from mzseek.report.annotations.embed import embedded, source_hash
from mzseek.report.annotations.facts import Facts, facts_of
from mzseek.report.annotations.feature import IN_FULL, feature_data
from mzseek.report.annotations.row import row_data
from mzseek.report.annotations.words import LEVELS, goals, percentage_words
from mzseek.report.page import templates

_ROOM = "annotations"
# In this order they are one script.
SCRIPTS = ("dom", "save", "structure", "spectrum", "mirror", "panels", "detail", "table")


def write_report(
    answers: Iterable[Answer],
    out: StrPath,
    *,
    title: str,
    facts: Facts | Callable[[], Facts],
    in_full: int = IN_FULL,
    ppm: float = PPM,
    least: float = LEAST,
) -> Path:
    """Write one self-contained HTML file about annotated features; returns its path.

    The file appears when it is whole. Memory does not grow with the number of features.

    Parameters
    ----------
    answers : iterable of Answer
        In the order of the page; read once.
    out : path
    title : str
    facts : Facts, or a function that returns them
        A function is called after the last answer, when all is known that was set aside.
    in_full : int
        Candidates of a feature that are drawn with what they explain.
    ppm, least : float
        Tolerance of peaks, as in `mzseek.fragments.explain`.
    """
    environment = templates()
    row = environment.get_template(f"{_ROOM}/row.html")
    counts = Counts()
    out = Path(out)
    with atomic_file(out) as partial, _spool(partial) as rows, _spool(partial) as blocks:
        for place, answer in enumerate(answers):
            rows.write(row.render(row_data(answer, place)))
            block, references = _block(answer, place, in_full=in_full, ppm=ppm, least=least)
            blocks.write(block)
            counts.take({**signs_of(answer), "references": references})
        known = _known(title, facts if isinstance(facts, Facts) else facts(), counts)
        with partial.open("w", encoding="utf-8", newline="\n") as page:
            _assemble(page, environment, known, rows, blocks)
    return out


class ReportWriter(Writer):
    """The page as one of the files that a job writes, which can be gone on with.

    Parameters
    ----------
    folder, name, settings
        As of every `Writer`.
    facts : callable of (records, reasons)
        Makes `Facts` when the last answer was written: of the records there were, and of how many
        were set aside for each reason.
    """

    def __init__(
        self, folder: Path, name: str, settings: Settings, facts: Callable[..., Facts]
    ) -> None:
        super().__init__(folder, name, settings)
        self._facts = facts
        self._environment = templates()
        self._row = self._environment.get_template(f"{_ROOM}/row.html")
        self._place = sum(1 for _ in self.spools[self._names[2]].lines())

    @property
    def _names(self) -> list[str]:
        return [f"{self.name}.{part}" for part in ("rows", "blocks", "counts")]

    def spool_names(self) -> list[str]:
        """Rows of the table, data of features, and what is counted of each."""
        return self._names

    def write(self, answer: Answer) -> None:
        """Add a feature."""
        rows, blocks, counts = (self.spools[name] for name in self._names)
        place, self._place = self._place, self._place + 1
        rows.write(self._row.render(row_data(answer, place)))
        block, references = _block(
            answer, place, in_full=IN_FULL, ppm=self.settings.ppm, least=self.settings.least
        )
        blocks.write(block)
        counts.write(json.dumps({**signs_of(answer), "references": references}) + "\n")

    def finish(self) -> list[str]:
        """Put the page together."""
        counts = Counts()
        for line in self.spools[self._names[2]].lines():
            counts.take(json.loads(line))
        reasons = Counter(reason for _, reason in read_set_aside(self.folder / SET_ASIDE))
        facts = self._facts(counts.records + sum(reasons.values()), reasons)
        known = _known(self.settings.title, facts, counts)
        self.close()
        with contextlib.ExitStack() as opened:
            page = opened.enter_context(
                (self.folder / self.name).open("w", encoding="utf-8", newline="\n")
            )
            rows, blocks = (
                opened.enter_context((self.folder / name).open(encoding="utf-8", newline="\n"))
                for name in self._names[:2]
            )
            _assemble(page, self._environment, known, rows, blocks)
        for name in self._names:
            (self.folder / name).unlink()
        return []


def _block(answer: Answer, place: int, **how: Any) -> tuple[str, list[list[str]]]:
    """Data of a feature, and licence and contributor of each reference spectrum in them."""
    data = feature_data(answer, **how)
    block = f'<script type="application/json" id="d{place}">{embedded(data)}</script>\n'
    return block, [[each["licence"], each["contributor"]] for each in data["refs"]]


def report_writers(facts: Mapping[str, Any]) -> dict[str, Callable[..., Writer]]:
    """Makers of the page, by name in a folder and by suffix, as `Output` takes them.

    Parameters
    ----------
    facts : mapping
        What is searched: ``model``, ``database`` and ``libraries``, as
        `mzseek.annotation.pipeline.Workshop.facts` has them.
    """
    make = partial(_report_writer, searched=facts)
    return {"report.html": make, ".html": make}


def _report_writer(
    folder: Path, name: str, settings: Settings, *, searched: Mapping[str, Any]
) -> ReportWriter:
    return ReportWriter(folder, name, settings, partial(facts_of, settings, searched))


def _spool(beside: Path) -> IO[str]:
    """A file without a name, on the disk of the page."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n", dir=beside.parent)


def _known(title: str, facts: Facts, counts: Counts) -> dict[str, Any]:
    aside = sorted(facts.set_aside.items(), key=lambda each: (-each[1], each[0]))
    number = sum(facts.set_aside.values())
    return {
        "title": title,
        "facts": facts,
        "counts": counts,
        "levels": counts.by_level(),
        "meanings": LEVELS,
        "set_aside": aside,
        "aside": number,
        "lost": facts.records - counts.records - number,
        "coverages": sorted(counts.coverages),
        "objectives": sorted(counts.objectives),
        "goals": goals(),
        "percentages": percentage_words(
            knows_absence=counts.knows_absence,
            known=facts.known,
            objectives=counts.objectives,
            has_prior=bool(facts.prior),
        ),
        "licences": sorted(counts.licences.items()),
    }


def _assemble(
    page: IO[str],
    environment: Environment,
    known: dict[str, Any],
    rows: IO[str],
    blocks: IO[str],
) -> None:
    style, script = _asset("style.css"), _script()
    head = environment.get_template(f"{_ROOM}/head.html")
    page.write(
        head.render(
            known,
            style=Markup(style),
            style_hash=source_hash(style),
            script_hash=source_hash(script),
        )
    )
    _append(rows, page)
    page.write(environment.get_template(f"{_ROOM}/foot.html").render(known))
    _append(blocks, page)
    common = embedded({"goals": goals(), "levels": LEVELS})
    page.write(f'<script type="application/json" id="common">{common}</script>\n')
    page.write(f"<script>{script}</script>\n</body>\n</html>\n")


def _append(spool: IO[str], page: IO[str]) -> None:
    spool.seek(0)
    shutil.copyfileobj(spool, page)


def _script() -> str:
    """The code of the page; nothing of it is visible to others."""
    parts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


def _asset(name: str) -> str:
    return files("mzseek.report").joinpath("templates", _ROOM, name).read_text("utf-8")
