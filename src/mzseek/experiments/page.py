"""One page of every experiment that has been run in a folder."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from mzseek.errors import ExperimentError
from mzseek.experiments.claims import FAILS, HOLDS, UNTESTED
from mzseek.experiments.reproduce import FIGURE, RESULTS
from mzseek.files.json_file import read_object
from mzseek.report.page import write_page as fill

INDEX = "index.html"


def write_page(out: Path) -> Path:
    """Write ``index.html`` from all results below a folder.

    Parameters
    ----------
    out : Path
        As `mzseek.experiments.site.Site` has it.

    Returns
    -------
    Path
    """
    found = [_section(path.parent) for path in sorted((out / "results").glob(f"*/*/{RESULTS}"))]
    sections = sorted(found, key=lambda section: (section["order"], section["key"]))
    claims = [claim for section in sections for claim in section["claims"]]
    return fill(
        "experiments.html",
        out / INDEX,
        {
            "sections": sections,
            "simulated": any(section["simulated"] for section in sections),
            "counts": {
                state: sum(claim["here"] == state for claim in claims)
                for state in (HOLDS, FAILS, UNTESTED)
            },
        },
    )


def _section(folder: Path) -> dict[str, Any]:
    facts = read_object(folder / RESULTS, ExperimentError, "run the experiment again")
    figure = folder / FIGURE
    return {
        **{name: facts.get(name) for name in ("title", "about", "paper", "reduced", "footnotes")},
        "key": f"{facts['scale']}-{facts['experiment']}",
        "name": facts["experiment"],
        "scale": facts["scale"],
        "fold": facts["fold"],
        "order": facts.get("order", 0),
        "spectra": facts.get("spectra"),
        "simulated": bool(facts.get("simulated")),
        "seconds": facts.get("seconds", 0.0),
        "trials": facts.get("trials", 0),
        "failed": facts["failed"],
        "claims": facts["claims"],
        "table": facts["table"],
        # Its own file of ours, made by matplotlib: text in it is escaped there.
        "figure": Markup(_inline(figure)) if figure.exists() else None,
    }


def _inline(path: Path) -> str:
    """An SVG file as a part of a page: without what must stand at the beginning of a file."""
    text = path.read_text("utf-8")
    return text[text.index("<svg") :]
