"""Writing the page: features go by one at a time, and none is kept."""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment
from markupsafe import Markup

from mzseek.annotation.answers import Answer
from mzseek.files import StrPath, atomic_file
from mzseek.fragments.match import LEAST, PPM
from mzseek.report.annotations.counts import Counts
from mzseek.report.annotations.embed import embedded, source_hash
from mzseek.report.annotations.facts import Facts
from mzseek.report.annotations.feature import IN_FULL, feature_data
from mzseek.report.annotations.row import row_data
from mzseek.report.annotations.words import LEVELS, goals
from mzseek.report.page import templates

_ROOM = "annotations"
# In this order they are one script.
SCRIPTS = ("dom", "structure", "spectrum", "mirror", "panels", "detail", "table")


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
            counts.add(answer)
            rows.write(row.render(row_data(answer, place)))
            data = feature_data(answer, in_full=in_full, ppm=ppm, least=least)
            counts.show(data["refs"])
            blocks.write(
                f'<script type="application/json" id="d{place}">{embedded(data)}</script>\n'
            )
        known = _known(title, facts if isinstance(facts, Facts) else facts(), counts)
        with partial.open("w", encoding="utf-8", newline="\n") as page:
            _assemble(page, environment, known, rows, blocks)
    return out


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
