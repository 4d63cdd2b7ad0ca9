"""The HTTP API, version 1."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Path, Query, Request, Response, UploadFile
from fastapi.responses import FileResponse, PlainTextResponse, StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import ValidationError
from starlette.background import BackgroundTask

from mzseek.version import __version__
from mzseek.web.errors import ApiError, responses
from mzseek.web.job_files import CANDIDATES, FEATURES, FORMATS, NETWORK, SPECTRA
from mzseek.web.jobs import Upload
from mzseek.web.models import (
    AnnotateRequest,
    AnnotateResponse,
    DecideRequest,
    DecideResponse,
    ExplainRequest,
    ExplainResponse,
    FormulaRequest,
    FormulaResponse,
    HealthResponse,
    InfoResponse,
    JobCreated,
    JobList,
    JobResponse,
    LibrarySearchRequest,
    MatchesResponse,
    MoleculesResponse,
    Options,
    ReferencesResponse,
    RowsResponse,
    TradeOffRequest,
    TradeOffResponse,
)
from mzseek.web.services import MoleculeQuery, Services

_ALWAYS = (400, 401, 403)
_COMPUTED = responses(*_ALWAYS, 404, 413, 415, 422, 503)
_OF_JOB = responses(*_ALWAYS, 404, 422)
_JSON = "application/json"
FormatName = Annotated[str, Path(max_length=20, json_schema_extra={"enum": list(FORMATS)})]
JobId = Annotated[str, Path(max_length=100, description="Id of a job.")]


def make_router(services: Services) -> APIRouter:
    """Return all routes of the API."""
    protected = [Depends(HTTPBearer(auto_error=False))] if services.settings.token else []
    router = APIRouter(prefix="/api/v1", dependencies=protected)
    _add_single_requests(router, services)
    _add_searches(router, services)
    _add_jobs(router, services)
    _add_results(router, services)
    return router


def _made(body: bytes) -> Response:
    return Response(body, media_type=_JSON)


def _add_single_requests(router: APIRouter, services: Services) -> None:
    more: dict[str, Any] = {"responses": _COMPUTED, "tags": ["annotate"]}

    @router.post("/annotate", response_model=AnnotateResponse, **more)
    async def annotate(request: AnnotateRequest) -> Response:
        """Annotate a few spectra at once; for many, submit a job."""
        return _made(await services.annotate(request))

    @router.post("/formula", response_model=FormulaResponse, **more)
    async def formula(request: FormulaRequest) -> Response:
        """Rank the molecular formulas behind a few spectra, without a database."""
        return _made(await services.formula(request))

    @router.post("/explain", response_model=ExplainResponse, **more)
    async def explain(request: ExplainRequest) -> Response:
        """Explain the peaks of a spectrum by fragments of a molecule."""
        return _made(await services.explain(request))

    @router.post("/decide", response_model=DecideResponse, **more)
    async def decide(request: DecideRequest) -> Response:
        """Decide for each objective among candidates, with expected utilities and regrets."""
        return _made(await services.decide(request))

    @router.post("/trade-off", response_model=TradeOffResponse, **more)
    async def trade_off(request: TradeOffRequest) -> Response:
        """Return the similarity band of candidates, and what each objective costs in the others."""
        return _made(await services.trade_off(request))


def _add_searches(router: APIRouter, services: Services) -> None:
    limits = services.settings.limits
    text = Query(max_length=10_000)
    named = Query(max_length=200)
    few = Query(ge=1, le=limits.rows)

    def wanted(
        name: Annotated[str | None, text] = None,
        formula: Annotated[str | None, text] = None,
        mass: Annotated[float | None, Query(gt=0, le=1e6, allow_inf_nan=False)] = None,
        smiles: Annotated[str | None, text] = None,
        ppm: Annotated[float, Query(ge=0, le=1_000, allow_inf_nan=False)] = 10.0,
    ) -> MoleculeQuery:
        by = {"name": name, "formula": formula, "mass": mass, "smiles": smiles}
        given = {kind: str(value) for kind, value in by.items() if value is not None}
        if len(given) != 1:
            raise ApiError("invalid", f"expected one of {', '.join(by)}", next(iter(given), None))
        kind, query = next(iter(given.items()))
        if not query.strip():
            raise ApiError("bad_query", f"the {kind} is empty", kind)
        return MoleculeQuery(kind, query, ppm)

    more: dict[str, Any] = {"responses": _COMPUTED, "tags": ["search"]}

    @router.get("/database/search", response_model=MoleculesResponse, **more)
    async def search_database(
        query: Annotated[MoleculeQuery, Depends(wanted)],
        database: Annotated[str | None, named] = None,
        limit: Annotated[int, few] = 50,
    ) -> Response:
        """Look molecules up by one of name, formula, mass and smiles (similarity)."""
        with _about(query.kind):
            return _made(await services.search_database(query, limit, database))

    @router.get("/library/search", response_model=ReferencesResponse, **more)
    async def find_references(
        query: Annotated[MoleculeQuery, Depends(wanted)],
        library: Annotated[str | None, named] = None,
        limit: Annotated[int, few] = 50,
    ) -> Response:
        """Look reference spectra up by name, formula, mass or smiles of their molecule."""
        with _about(query.kind):
            return _made(await services.find_references(query, limit, library))

    @router.post("/library/search", response_model=MatchesResponse, **more)
    async def search_library(request: LibrarySearchRequest) -> Response:
        """Search for the reference spectra that are most similar to a spectrum."""
        return _made(await services.search_library(request))

    @router.get("/info", responses=responses(*_ALWAYS), tags=["server"])
    async def info() -> InfoResponse:
        """Return the databases, libraries and limits of the server."""
        settings = services.settings
        return InfoResponse(
            version=__version__, databases=dict(services.databases),
            default_database=settings.default_database, libraries=list(services.libraries),
            limits=vars(settings.limits),
        )  # fmt: skip


@contextmanager
def _about(field: str) -> Iterator[None]:
    """Name the field that an error is about, where it does not say so."""
    try:
        yield
    except ApiError as error:
        raise ApiError(error.code, error.message, error.field or field) from error


def _owner(request: Request) -> str | None:
    session = request.state.session
    return None if session is None else session.id


def _add_jobs(router: APIRouter, services: Services) -> None:
    @router.post(
        "/jobs", status_code=201, tags=["jobs"],
        responses=responses(*_ALWAYS, 413, 415, 422, 429, 503),
    )  # fmt: skip
    async def create(
        request: Request,
        files: Annotated[
            list[UploadFile], File(description="Spectra, in any format that annotate reads.")
        ],
        candidates: Annotated[
            UploadFile | None, File(description="A list of molecules: the only candidates.")
        ] = None,
        features: Annotated[
            UploadFile | None, File(description="A feature table, which is written with results.")
        ] = None,
        network: Annotated[
            UploadFile | None, File(description="A molecular network, likewise.")
        ] = None,
        options: Annotated[str, Form(description="`Options` of annotate, as JSON.")] = "{}",
    ) -> JobCreated:
        """Submit a job; `url` is its page."""
        parsed = _options(options)
        services.check_options(parsed)
        parts = [(SPECTRA, file) for file in files]
        named = {CANDIDATES: candidates, FEATURES: features, NETWORK: network}
        parts += [(kind, file) for kind, file in named.items() if file is not None]
        uploads = [Upload(kind, file.filename or "", file.file) for kind, file in parts]
        job = await services.jobs.create(uploads, services.complete(parsed), _owner(request))
        return JobCreated(id=job.id, url=f"/jobs/{job.id}")

    @router.get("/jobs", responses=responses(*_ALWAYS), tags=["jobs"])
    async def list_jobs(request: Request) -> JobList:
        """List the jobs of this browser; of a client without a session there are none."""
        jobs = services.jobs
        described = [jobs.describe(job) for job in jobs.owned(_owner(request))]
        return JobList(jobs=[JobResponse.model_validate(job) for job in described])

    @router.get("/jobs/{id}", responses=_OF_JOB, tags=["jobs"])
    async def get(id: JobId) -> JobResponse:
        """Return a job."""
        return JobResponse.model_validate(services.jobs.describe(services.jobs.get(id)))

    @router.post("/jobs/{id}/cancel", responses=_OF_JOB | responses(409), tags=["jobs"])
    async def cancel(id: JobId) -> JobResponse:
        """Stop a job; what it has annotated can still be looked at."""
        return JobResponse.model_validate(services.jobs.describe(services.jobs.cancel(id)))

    @router.delete("/jobs/{id}", status_code=204, responses=_OF_JOB, tags=["jobs"])
    async def delete(id: JobId) -> None:
        """Remove a job with its results."""
        await services.jobs.delete(id)

    @router.get(
        "/jobs/{id}/events", tags=["jobs"], response_class=StreamingResponse,
        responses=_OF_JOB | {200: {"content": {"text/event-stream": {}},
                                   "description": "Server-sent events."}},
    )  # fmt: skip
    async def events(id: JobId, request: Request) -> StreamingResponse:
        """Follow a job: events `progress`, `result` (a row) and `end`.

        The id of an event is the number of rows so far; with it as `Last-Event-ID` the stream goes
        on after them.
        """
        services.jobs.get(id)
        last = request.headers.get("last-event-id", "")
        seen = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else 0
        return StreamingResponse(_stream(services, id, seen), media_type="text/event-stream")


def _options(text: str) -> Options:
    try:
        return Options.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(["options", *map(str, first["loc"])])
        raise ApiError("invalid", f"{field}: {first['msg']}", field) from error


async def _stream(services: Services, id: str, seen: int) -> AsyncIterator[str]:
    async for name, number, data in services.jobs.events(id, seen):
        if name == "ping":
            yield ": still there\n\n"
        else:
            yield f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n"


def _add_results(router: APIRouter, services: Services) -> None:
    most = services.settings.limits.rows

    @router.get("/jobs/{id}/rows", responses=_OF_JOB, tags=["results"])
    async def rows(
        id: JobId,
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=most)] = 100,
    ) -> RowsResponse:
        """Return rows of the features that are annotated so far."""
        found, total = await asyncio.to_thread(services.jobs.rows, id, offset, limit)
        return RowsResponse(offset=offset, total=total, rows=found)

    @router.get("/jobs/{id}/features/{number}", responses=_OF_JOB, tags=["results"])
    async def feature(id: JobId, number: Annotated[int, Path(ge=0, le=10**9)]) -> dict[str, Any]:
        """Return what the drawings of a feature, from 0, are made from."""
        return await asyncio.to_thread(services.jobs.drawing, id, number)

    content: Mapping[str, Any] = {
        known_format.media_type.split(";")[0]: {} for known_format in FORMATS.values()
    }

    @router.get(
        "/jobs/{id}/results/{format}", tags=["results"], response_class=FileResponse,
        responses=_OF_JOB | responses(409)
        | {200: {"content": content, "description": "A file of results."}},
    )  # fmt: skip
    async def result(id: JobId, format: FormatName) -> FileResponse:
        """Download results in a format; zip is the whole folder."""
        found = await asyncio.to_thread(services.jobs.result, id, format)
        remove = BackgroundTask(found.path.unlink, missing_ok=True) if found.is_temporary else None
        return FileResponse(
            found.path, filename=found.name, media_type=found.media_type, background=remove
        )


def make_server_router(services: Services) -> APIRouter:
    """Return the routes for those who run the server."""
    router = APIRouter(tags=["server"])

    @router.get("/health", responses=responses(400))
    async def health() -> HealthResponse:
        """Say whether annotations can be made: loading, ready or failed."""
        return HealthResponse(
            status=services.status, version=__version__, workers=services.pool.ready,
            reason=services.pool.reason or None,
        )  # fmt: skip

    @router.get("/metrics", response_class=PlainTextResponse, responses=responses(400, 401))
    async def metrics() -> PlainTextResponse:
        """Return metrics in the text format of Prometheus."""
        return PlainTextResponse(services.metrics(), media_type="text/plain; version=0.0.4")

    return router
