"""Write the annotation report: one self-contained HTML page.

Memory does not grow with the number of features: a record of each waits on disk.
"""

import base64
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

from markupsafe import Markup

from mzseek.annotation.annotation import Annotation
from mzseek.annotation.config import larger_databases
from mzseek.annotation.shared_state import extension_lines
from mzseek.core.text import visible
from mzseek.export.page import templates
from mzseek.export.report_data import (
    LEVELS,
    Counts,
    feature_data,
    goals,
    percentage_words,
    row_data,
    signs_of,
)
from mzseek.export.tables import read_skipped
from mzseek.export.writer import RecordWriter, Settings
from mzseek.version import __version__

SMALL = 200_000  # molecules: a smaller database is called small
_TEMPLATES = "annotations"
# In this order they are one script.
SCRIPTS = ("dom", "save", "structure", "spectrum", "mirror", "panels", "detail", "table")
# Legal in JSON, and never read as the end of a script, as a comment, or as the end of a line.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def embedded(data: Any) -> str:
    r"""Return compact JSON that can stand inside a script element.

    Texts are `visible`: control characters become marks. A number that is not finite becomes null.

    Examples
    --------
    >>> embedded({"name": "</script>", "p": float("nan")})
    '{"name":"\\u003c/script\\u003e","p":null}'
    """
    text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


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


def source_hash(text: str) -> str:
    """Return the name by which a page's policy allows a script or a style, and no other.

    Examples
    --------
    >>> source_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


class ReportWriter(RecordWriter):
    """Write ``report.html``, and any single file that ends in ``.html``."""

    signature = re.compile(
        rb'\A<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        rb'<meta name="generator" content="mzseek annotate">\n'
    )

    def record(self, annotation: Annotation) -> dict[str, Any]:
        """Return the row of a feature, the data that it is drawn from, and what is counted."""
        data = feature_data(annotation)
        references = [
            [reference["licence"], reference["contributor"]] for reference in data["refs"]
        ]
        return {
            "row": row_data(annotation),
            "data": embedded(data),
            "signs": {**signs_of(annotation), "references": references},
        }

    def assemble(self, file: TextIO) -> list[str]:
        """Write head, table, foot, data and script."""
        counts = Counts()
        for record in self.records():
            counts.add(record["signs"])
        reasons = Counter(reason for _, reason in read_skipped(self.folder))
        page = _page(self.settings, counts, reasons)
        environment = templates()
        head, row, foot = (
            environment.get_template(f"{_TEMPLATES}/{part}.html")
            for part in ("head", "row", "foot")
        )
        style = _asset("style.css")
        scripts = "\n".join(_asset(f"{name}.js") for name in SCRIPTS)
        script = f'(() => {{\n"use strict";\n{scripts}\n}})();'
        hashes = {"style_hash": source_hash(style), "script_hash": source_hash(script)}
        file.write(head.render(page, style=Markup(style), **hashes))
        for index, record in enumerate(self.records()):
            file.write(row.render(record["row"], place=index))
        file.write(foot.render(page))
        for index, record in enumerate(self.records()):
            file.write(f'<script type="application/json" id="d{index}">{record["data"]}</script>\n')
        common = embedded({"goals": goals(), "levels": LEVELS})
        file.write(f'<script type="application/json" id="common">{common}</script>\n')
        file.write(f"<script>{script}</script>\n</body>\n</html>\n")
        return []


def _page(settings: Settings, counts: Counts, reasons: Mapping[str, int]) -> dict[str, Any]:
    """Return what the templates of head and foot are filled with."""
    metadata = run_facts(settings)
    return {
        "title": settings.title,
        "facts": metadata,
        "records": counts.records + sum(reasons.values()),
        "counts": counts,
        "levels": counts.by_level(),
        "reasons": sorted(reasons.items(), key=lambda item: (-item[1], item[0])),
        "skipped": sum(reasons.values()),
        "coverages": sorted(counts.coverages),
        "objectives": sorted(counts.objectives),
        "goals": goals(),
        "percentages": percentage_words(
            knows_absence=counts.knows_absence,
            expected=settings.searched.get("expected_share"),
            objectives=counts.objectives,
            has_prior=bool(metadata["prior"]),
        ),
        "licences": sorted(counts.licences.items()),
    }


def run_facts(settings: Settings) -> dict[str, Any]:
    """Return metadata of the run for the page: what was searched, options, versions, checksums."""
    searched = settings.searched
    database, model = searched.get("database", {}), searched.get("model", {})
    molecules = database.get("molecules")
    library = ""
    if "libraries" in searched:
        spectra = sum(library["spectra"] for library in searched["libraries"])
        added = extension_lines(searched["added"])
        library = " ".join([f"{spectra:,} reference spectra.", *added])
    is_bundled, is_list = (database.get("kind") == kind for kind in ("bundled", "file"))
    return {
        "database": settings.database,
        "molecules": molecules,
        "small": molecules is not None and molecules < SMALL and not is_list,
        "larger": larger_databases() if is_bundled else (),
        "model": model.get("name", Path(model.get("path", "")).name),
        "about_model": model.get("about", ""),
        "library": library,
        "files": [Path(name).name for name in settings.inputs],
        "options": {name: str(value) for name, value in settings.options.items()},
        "versions": {"mzseek": __version__},
        "checksums": {name: digest[:16] for name, digest in model.get("sha256", {}).items()},
        "prior": (searched.get("prior") or {}).get("said", ""),
    }


def _asset(name: str) -> str:
    return files("mzseek.export").joinpath("templates", _TEMPLATES, name).read_text("utf-8")
