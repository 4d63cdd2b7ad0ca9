"""Write the annotation report: one HTML page, streamed."""

import base64
import contextlib
import hashlib
import json
import math
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment
from markupsafe import Markup

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.config import larger_databases
from mzseek.annotation.shared_state import extension_lines
from mzseek.core.text import visible
from mzseek.export.output import SET_ASIDE
from mzseek.export.page import templates
from mzseek.export.report_data import (
    IN_FULL,
    LEVELS,
    Counts,
    feature_data,
    goals,
    percentage_words,
    row_data,
    signs_of,
)
from mzseek.export.tables import read_set_aside
from mzseek.export.writer import Settings, Writer
from mzseek.io import StrPath, atomic_file
from mzseek.version import __version__

# Legal in JSON, and never read as the end of a script, as a comment, or as the end of a line.
_MARKUP = re.compile("[<>&\u2028\u2029]")
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded(data: Any) -> str:
    r"""Compact JSON that can stand inside a script element.

    Texts are `visible`: control characters become marks. A number that is not finite becomes null.

    Examples
    --------
    >>> embedded({"name": "</script>", "p": float("nan")})
    '{"name":"\\u003c/script\\u003e","p":null}'
    """
    try:
        text = _json(data)
        is_plain = "\\" not in text and visible(text) == text
    except ValueError:  # a number that is not finite
        is_plain = False
    if not is_plain:
        text = _json(_plain(data))
    return text.translate(_ESCAPES) if _MARKUP.search(text) else text


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def source_hash(text: str) -> str:
    """The name by which a page's policy allows a script or a style, and no other.

    Examples
    --------
    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _plain(data: Any) -> Any:
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {visible(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return data


SMALL = 200_000  # molecules: a smaller database is called small


@dataclass(frozen=True)
class Facts:
    """A run of annotation, in the words of its report.

    Attributes
    ----------
    records : int
        Spectra that were in the files.
    set_aside : mapping of str to int
        For each reason, how many of them got no annotation for it.
    database : str
        What was searched.
    molecules : int or None
        How many it holds; None where that is not known.
    small : bool
        Whether the page must say that the database is small.
    larger : tuple of str
        Commands that get a larger one.
    prior : str
        The prior that is applied, in words; empty for none.
    known : float or None
        Share of features that is assumed to be in the database; None where that is not known.
    model, about_model : str
        The model's name, and in a sentence what it learned from.
    library : str
        Reference spectra that were searched, in words.
    files : tuple of str
        Names of the files of spectra.
    options, versions, checksums : mapping of str to str
        What made this, for the end of the page.
    date : str
        When; empty by default, so that equal input makes equal pages.

    Examples
    --------
    >>> Facts(3, {"no peaks": 1}, "molecules of the library", 4406).records
    3
    """

    records: int
    set_aside: Mapping[str, int]
    database: str
    molecules: int | None
    small: bool = False
    larger: tuple[str, ...] = ()
    model: str = ""
    about_model: str = ""
    library: str = ""
    files: tuple[str, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    checksums: Mapping[str, str] = field(default_factory=dict)
    date: str = ""
    prior: str = ""
    known: float | None = None


def facts_of(
    settings: Settings, searched: Mapping[str, Any], records: int, reasons: Mapping[str, int]
) -> Facts:
    """Facts of a job.

    Parameters
    ----------
    settings : Settings
        Of its writers.
    searched : mapping
        ``model``, ``database``, ``libraries``, what these have ``added``, and the ``prior`` that is
        counted in.
    records : int
    reasons : mapping of str to int
        How many were set aside for each.
    """
    database, model = searched["database"], searched["model"]
    spectra = sum(library["spectra"] for library in searched["libraries"])
    molecules = int(database["molecules"])
    return Facts(
        records=records,
        set_aside=reasons,
        database=settings.database,
        molecules=molecules,
        small=molecules < SMALL and database["kind"] != "file",
        larger=larger_databases() if database["kind"] == "bundled" else (),
        model=model.get("name", Path(model["path"]).name),
        about_model=model.get("about", ""),
        library=" ".join([f"{spectra:,} reference spectra.", *extension_lines(searched["added"])]),
        files=tuple(Path(name).name for name in settings.inputs),
        options={name: str(value) for name, value in settings.options.items()},
        versions={"mzseek": __version__},
        checksums={name: digest[:16] for name, digest in model.get("sha256", {}).items()},
        prior=(searched.get("prior") or {}).get("said", ""),
        known=searched.get("expected_share"),
    )


_ROOM = "annotations"
# In this order they are one script.
SCRIPTS = ("dom", "save", "structure", "spectrum", "mirror", "panels", "detail", "table")


def write_report(
    annotations: Iterable[Annotation],
    out: StrPath,
    *,
    title: str,
    facts: Facts | Callable[[], Facts],
    in_full: int = IN_FULL,
) -> Path:
    """Write one self-contained HTML file about annotated features; returns its path.

    The file appears when it is whole. Memory does not grow with the number of features.

    Parameters
    ----------
    annotations : iterable of Annotation
        In the order of the page; read once.
    out : path
    title : str
    facts : Facts, or a function that returns them
        A function is called after the last annotation, when all is known that was set aside.
    in_full : int
        Candidates of a feature that are drawn with what they explain.
    """
    environment = templates()
    row = environment.get_template(f"{_ROOM}/row.html")
    counts = Counts()
    out = Path(out)
    with atomic_file(out) as partial, _spool(partial) as rows, _spool(partial) as blocks:
        for place, annotation in enumerate(annotations):
            rows.write(row.render(row_data(annotation, place)))
            block, references = _block(annotation, place, in_full)
            blocks.write(block)
            counts.take({**signs_of(annotation), "references": references})
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
        Makes `Facts` when the last annotation was written: of the records there were, and of how
        many were set aside for each reason.
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

    def write(self, annotation: Annotation) -> None:
        """Add a feature."""
        rows, blocks, counts = (self.spools[name] for name in self._names)
        place, self._place = self._place, self._place + 1
        rows.write(self._row.render(row_data(annotation, place)))
        block, references = _block(annotation, place, IN_FULL)
        blocks.write(block)
        counts.write(json.dumps({**signs_of(annotation), "references": references}) + "\n")

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


def _block(annotation: Annotation, place: int, in_full: int) -> tuple[str, list[list[str]]]:
    """Data of a feature, and licence and contributor of each reference spectrum in them."""
    data = feature_data(annotation, in_full=in_full)
    block = f'<script type="application/json" id="d{place}">{embedded(data)}</script>\n'
    return block, [[each["licence"], each["contributor"]] for each in data["refs"]]


def report_writers(facts: Mapping[str, Any]) -> dict[str, Callable[..., Writer]]:
    """Makers of the page, by name in a folder and by suffix, as `Output` takes them.

    Parameters
    ----------
    facts : mapping
        What is searched: ``model``, ``database`` and ``libraries``, as
        `mzseek.annotation.annotator.Annotator.facts` has them.
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
    return files("mzseek.export").joinpath("templates", _ROOM, name).read_text("utf-8")
