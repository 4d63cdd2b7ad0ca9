"""The pages of ``mzseek serve``: HTML shells, scripts and styles.

A page holds no result. Its script asks the API for all data and draws them with the scripts of the
annotation report (`mzseek.export.report`), so that both show the same figures.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup

from mzseek.annotation.config import INSTRUMENTS, AnnotateConfig
from mzseek.chem.depiction import structure
from mzseek.chem.fingerprinting import FINGERPRINTS
from mzseek.decision import UTILITIES
from mzseek.export.report import LEVELS, asset, common_data, embedded, goals, renderer, templates
from mzseek.spectra.read import known_formats

if TYPE_CHECKING:
    from mzseek.web.services import Services

# What scripts of pages can import from the renderer: whatever it defines at its top level.
_DEFINED = re.compile(r"^(?:const|function) (\w+)", re.MULTILINE)
_MEDIA_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
# Ions in the choice of the forms; any other can be typed.
IONS = (
    "[M+H]+", "[M+Na]+", "[M+NH4]+", "[M+K]+", "[M-H2O+H]+", "[M]+", "[2M+H]+", "[M+2H]2+",
    "[M-H]-", "[M+Cl]-", "[M+HCOO]-", "[M+CH3COO]-", "[2M-H]-",
)  # fmt: skip
SIMILARITIES = ("tanimoto", "cosine", "f1", "bits")  # the usual one first
# Caffeine and a reference spectrum's peaks, which the forms offer as an example.
EXAMPLE = {
    "peaks": [
        "56.0495 2", "69.0447 5", "83.0604 4", "110.0713 18", "123.0427 2", "138.0662 100",
        "195.0877 60",
    ],
    "precursor_mz": "195.0877",
    "adduct": "[M+H]+",
    "smiles": "Cn1c(=O)c2c(ncn2C)n(C)c1=O",
}  # fmt: skip


@dataclass(frozen=True)
class _Asset:
    content: bytes
    media_type: str
    etag: str


def make_router(services: "Services") -> APIRouter:
    """Return the routes of all pages, and of their scripts and styles."""
    router = APIRouter(include_in_schema=False)
    assets, environment = _assets(), templates("mzseek.web")
    environment.globals["nav"] = (
        ("/", "New job"), ("/search", "Search"), ("/explain", "Explain"),
        ("/trade-off", "Trade-off"), ("/help", "Help"),
    )  # fmt: skip
    labels = {name: utility.label for name, utility in UTILITIES.items()}

    def page(template: str, request: Request, **variables: Any) -> HTMLResponse:
        csrf_token = getattr(request.state, "csrf_token", "")
        known = {"path": request.url.path, "csrf_token": csrf_token}
        return HTMLResponse(environment.get_template(template).render(known | variables))

    def choices() -> dict[str, Any]:
        """Return what forms offer."""
        return {
            "databases": [
                (name, f"{name}: {description}" if description else name)
                for name, description in services.databases.items()
            ],
            "libraries": list(services.libraries),
            "ions": IONS,
            "goals": goals(),
            "common": Markup(common_data()),
            "data": Markup(embedded({"example": EXAMPLE})),
        }

    @router.get("/")
    def new_job(request: Request) -> HTMLResponse:
        return page(
            "new.html", request, **choices(), defaults=AnnotateConfig(), formats=known_formats(),
            instruments=[("", "not stated"), *_pairs(INSTRUMENTS)],
            objectives=[(name, f"{purpose} ({labels[name]})") for name, purpose in goals().items()],
        )  # fmt: skip

    @router.get("/jobs/{job}")
    def job(request: Request, job: str) -> HTMLResponse:
        return page("job.html", request, **choices(), levels=list(LEVELS))

    @router.get("/search")
    def search(request: Request) -> HTMLResponse:
        return page("search.html", request, **choices())

    @router.get("/explain")
    def explain(request: Request) -> HTMLResponse:
        return page("explain.html", request, **choices())

    @router.get("/trade-off")
    def trade_off(request: Request) -> HTMLResponse:
        return page(
            "trade-off.html", request, **choices(), fingerprints=_pairs(FINGERPRINTS),
            similarities=[(name, labels[name]) for name in SIMILARITIES],
        )  # fmt: skip

    @router.get("/help")
    def about(request: Request) -> HTMLResponse:
        return page("help.html", request, **choices(), levels=LEVELS)

    @router.get("/structure")
    def drawn(smiles: str) -> Response:
        """Return the coordinates that a molecule is drawn from."""
        found = structure(smiles) if len(smiles) <= services.settings.limits.smiles else None
        return JSONResponse(found) if found else Response("no structure", 404)

    @router.get("/static/{name}")
    def static(request: Request, name: str) -> Response:
        found = assets.get(name)
        if found is None:
            return Response("no such file", 404, media_type="text/plain")
        headers = {"ETag": found.etag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == found.etag:
            return Response(status_code=304, headers=headers)
        return Response(found.content, headers=headers, media_type=found.media_type)

    return router


def _pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return options of a choice that are called as they are."""
    return [(name, name) for name in names]


def _assets() -> Mapping[str, _Asset]:
    """Return all scripts and styles by name: those of this package, and those of the report."""
    script = renderer()
    exports = f"export {{ {', '.join(_DEFINED.findall(script))} }};\n"
    texts = {"renderer.js": script + exports, "report.css": asset("style.css")}
    for file in files("mzseek.web").joinpath("static").iterdir():
        texts[file.name] = file.read_text("utf-8")
    return {name: _made(name, text.encode("utf-8")) for name, text in texts.items()}


def _made(name: str, content: bytes) -> _Asset:
    digest = hashlib.sha256(content).hexdigest()[:32]
    return _Asset(content, _MEDIA_TYPES[name.rpartition(".")[2]], f'"{digest}"')
