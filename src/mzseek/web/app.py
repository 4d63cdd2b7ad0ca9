"""The application, and the server that runs it."""

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mzseek.core.errors import MzseekError, ServerError
from mzseek.version import __version__
from mzseek.web import api, pages
from mzseek.web.errors import ApiError
from mzseek.web.security import Guard, error_response
from mzseek.web.services import Services
from mzseek.web.settings import ServerSettings

_CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
_BODIES = {"application/json", "multipart/form-data", "application/x-www-form-urlencoded"}
_WATCH = 0.5  # seconds between looks whether the server is still there
_GRACE = 2  # seconds for responses to end when the server is stopped
_KEEP_ALIVE = 75  # seconds that a connection may be idle
_DESCRIPTION = (
    "Find the molecules behind tandem mass spectra, with the same results as `mzseek annotate`. "
    "Every error is `{error: {code, message, field}}`."
)


def create_app(settings: ServerSettings) -> FastAPI:
    """Return the application with its API and pages."""
    services = Services(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await services.start()
        except MzseekError as error:
            app.state.failure = error
            raise
        try:
            yield
        finally:
            await services.stop()

    app = FastAPI(
        title="mzseek", version=__version__, description=_DESCRIPTION, lifespan=lifespan,
        openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.services, app.state.failure = services, None
    app.include_router(api.make_router(services))
    app.include_router(api.make_server_router(services))
    app.include_router(pages.make_router(services))
    app.add_middleware(Guard, services=services)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    return app


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_response(error)


async def _invalid(request: Request, error: Exception) -> Response:
    """Say what is wrong with the first field that is."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = [str(part) for part in first["loc"][1:]]
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    in_body = first["loc"][0] == "body"
    if in_body and media_type not in _BODIES and not media_type.endswith("+json"):
        expected = "expected application/json, or multipart/form-data for a job"
        return error_response(ApiError("unsupported_media_type", expected))
    if first["type"] == "json_invalid":
        return error_response(ApiError("bad_json", f"the body is no JSON ({first['msg']})"))
    field = ".".join(place) or None
    return error_response(ApiError("invalid", f"{field or 'the body'}: {first['msg']}", field))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "bad_json")
    response = error_response(ApiError(code, str(error.detail)))
    response.headers.update(error.headers or {})
    return response


class _Server(uvicorn.Server):
    """A server that says when it can be reached."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then say so."""
        await super().startup(sockets)
        if self.started:
            self._on_start()


def serve(settings: ServerSettings, on_start: Callable[[str], None]) -> None:
    """Run a server until it is interrupted.

    Parameters
    ----------
    settings : ServerSettings
    on_start : callable
        Gets the URL as soon as it can be opened.

    Raises
    ------
    ServerError
        It cannot listen at this address.
    """
    app = create_app(settings)
    listening = _listen(settings)
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{shown}:{listening.getsockname()[1]}/"
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=_GRACE, timeout_keep_alive=_KEEP_ALIVE,
    )  # fmt: skip
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its tracebacks may name samples
    server = _Server(config, lambda: on_start(url))
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(server.serve([listening]))
        except BaseException as error:
            failures.append(error)

    # Not in this thread, where an interrupt would be raised amid the loop.
    thread = threading.Thread(target=run, name="server")
    with listening:
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_WATCH)
        finally:
            server.should_exit = True
            thread.join()
    if failures or app.state.failure is not None:
        raise failures[0] if failures else app.state.failure


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2_048)
    except OSError as error:
        raise ServerError(
            f"cannot listen at {settings.host}, port {settings.port} ({error.strerror or error}); "
            "choose another --port"
        ) from error
