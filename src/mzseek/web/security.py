"""Who may do what: Host, token, sessions, CSRF, sizes, headers; and a log that names no sample."""

import asyncio
import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mzseek.web.errors import ApiError
from mzseek.web.services import Services

LOG = logging.getLogger("mzseek.web")
COOKIE = "mzseek_session"
_MAX_AGE = 30 * 86_400
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN_PATHS = ("/health", "/login")
_STATIC = "/static/"
_WRONG_TOKEN_PAUSE = 0.5  # seconds
_MAX_LOGIN = 10_000  # bytes
_PLAIN_NAMES = ("localhost", "127.0.0.1", "::1")
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer, with which browsers send no origin that could be checked.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mzseek: log in</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/report.css">
<link rel="stylesheet" href="/static/app.css"></head>
<body class="app login"><main><h1>mzseek</h1>
<form class="form" method="post" action="/login"><div class="field">
<label for="token">Token of this server</label>
<input type="password" id="token" name="token" autocomplete="current-password" required autofocus>
{problem}</div><p><button type="submit" class="primary">Log in</button></p></form></main></body>
</html>
"""


class Session(NamedTuple):
    """A browser: its id, which owns jobs, and the token that its forms must send along."""

    id: str
    csrf_token: str


class Sessions:
    """Sessions of browsers, in signed cookies; nothing is stored.

    Parameters
    ----------
    folder : Path
        The key is in a file of it, so that sessions survive a restart.
    token : str or None
        Of the server. With another one all sessions end.
    """

    def __init__(self, folder: Path, token: str | None) -> None:
        self._token = token
        self._key = hmac.digest(_secret(folder / "secret"), (token or "").encode(), "sha256")

    def check_token(self, given: str) -> bool:
        """Return whether a token is that of the server, in a time that does not depend on it."""
        return self._token is None or hmac.compare_digest(
            hashlib.sha256(given.encode()).digest(), hashlib.sha256(self._token.encode()).digest()
        )

    def new(self) -> tuple[Session, str]:
        """Make a session, and the value of its cookie."""
        id = secrets.token_urlsafe(18)
        return self._session(id), f"{id}.{self._signed('session', id)}"

    def read(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None if this server has not made it."""
        id, _, signature = (cookie or "").partition(".")
        wanted = self._signed("session", id)
        is_own = hmac.compare_digest(signature.encode(), wanted.encode())
        return self._session(id) if id and is_own else None

    def _session(self, id: str) -> Session:
        return Session(id, self._signed("csrf", id))

    def _signed(self, purpose: str, id: str) -> str:
        return hmac.new(self._key, f"{purpose} {id}".encode(), "sha256").hexdigest()


def _secret(path: Path) -> bytes:
    """Return the key in a file, which is made if there is none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        key = secrets.token_bytes(32)
        file.write(key)
    return key


def host_name(header: str) -> str:
    """Return the name in a Host header, without its port.

    Examples
    --------
    >>> host_name("localhost:8765"), host_name("[::1]:80"), host_name("LAB.org.")
    ('localhost', '::1', 'lab.org')
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""
    return name.rstrip(".").lower()


class Guard:
    """ASGI middleware that every request passes through.

    ``request.state.session`` is the `Session` of a browser (or None), and
    ``request.state.csrf_token`` what its page must send as ``X-CSRF-Token`` with every request
    that changes something.

    Parameters
    ----------
    app : ASGI application
    services : Services
    """

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._services, self._settings = app, services, services.settings
        self._sessions = Sessions(self._settings.data_dir, self._settings.token)
        named = (*_PLAIN_NAMES, self._settings.host, *self._settings.hosts)
        self._hosts = {name.strip("[]").lower() for name in named}
        # Behind a name that nobody has told, the token alone protects.
        self._any_host = not self._settings.is_local and not self._settings.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on, and log its route, status and time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._settings.limits.body)
        began = time.perf_counter()
        try:
            refusal = await self._before(exchange)
            if refusal is None:
                await self._app(scope, exchange.receive, exchange.send)
            else:
                await refusal(scope, exchange.receive, exchange.send)
        except ApiError as error:
            await error_response(error)(scope, receive, exchange.send)
        except Exception as error:
            LOG.error("%s has failed: %s", _route(scope), _place(error))
            if not exchange.status:
                message = "something unforeseen happened; the log of the server says where"
                body = {"error": {"code": "internal", "message": message, "field": None}}
                await JSONResponse(body, 500)(scope, receive, exchange.send)
        finally:
            seconds = time.perf_counter() - began
            method = scope["method"]
            key = method if method in _METHODS else "other", _route(scope)
            self._services.requests[(*key, exchange.status)] += 1
            self._services.seconds[key] += seconds
            LOG.info("%s %s %d %.0f ms", *key, exchange.status, 1e3 * seconds)

    async def _before(self, exchange: "_Exchange") -> Response | None:
        """Return the response to a request that must not be passed on; None if it may."""
        scope, headers = exchange.scope, exchange.headers
        path, method = scope["path"], scope["method"]
        host = headers.get("host", "")
        if not self._any_host and host_name(host) not in self._hosts:
            raise ApiError("bad_host", "the Host header names no name of this server")
        exchange.check_length()
        session = self._sessions.read(_cookie(headers))
        bearer = headers.get("authorization", "")
        has_token = bearer[:7].lower() == "bearer " and self._sessions.check_token(bearer[7:])
        if method not in _SAFE and not (has_token and self._settings.token):
            _check_origin(headers, host)
        if path == "/login":
            return await self._login(exchange)
        if self._settings.token and not has_token and session is None:
            return await self._unauthorized(exchange)
        if session is None and not has_token and _wants_page(scope, headers):
            session, cookie = self._sessions.new()
            exchange.cookie = _cookie_text(scope, cookie)
        is_browser = session is not None and not (has_token and self._settings.token)
        if method not in _SAFE and is_browser and session is not None:
            given = headers.get("x-csrf-token", "")
            if not hmac.compare_digest(given.encode(), session.csrf_token.encode()):
                raise ApiError("forbidden", "the CSRF token is missing or wrong: reload the page")
        state = scope.setdefault("state", {})
        state["session"] = session
        state["csrf_token"] = "" if session is None else session.csrf_token
        return None

    async def _unauthorized(self, exchange: "_Exchange") -> Response | None:
        scope, headers = exchange.scope, exchange.headers
        path = scope["path"]
        if path in _OPEN_PATHS or path.startswith(_STATIC):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and _wants_page(scope, headers):
            if self._sessions.check_token(given):
                return self._logged_in(exchange, path if path[1:2] not in ("/", "\\") else "/")
            await asyncio.sleep(_WRONG_TOKEN_PAUSE)
        if _wants_page(scope, headers):
            return RedirectResponse("/login", 303)
        if headers.get("authorization"):
            await asyncio.sleep(_WRONG_TOKEN_PAUSE)
        return error_response(
            ApiError("unauthorized", "the token of the server is missing or wrong")
        )

    async def _login(self, exchange: "_Exchange") -> Response:
        """Show the form, or check the token that it sends."""
        if exchange.scope["method"] != "POST":
            return HTMLResponse(_LOGIN.format(problem=""))
        body = b""
        more = True
        while more and len(body) < _MAX_LOGIN:
            message = await exchange.receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]
        if self._settings.token is None or self._sessions.check_token(token):
            return self._logged_in(exchange, "/")
        await asyncio.sleep(_WRONG_TOKEN_PAUSE)
        return HTMLResponse(
            _LOGIN.format(problem='<p class="error" role="alert">This is not the token.</p>'), 401
        )

    def _logged_in(self, exchange: "_Exchange", path: str) -> Response:
        _, cookie = self._sessions.new()
        exchange.cookie = _cookie_text(exchange.scope, cookie)
        return RedirectResponse(path, 303)


class _Exchange:
    """A request and its response: bytes are counted, headers added, the status noted."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        self.scope, self.headers = scope, Headers(scope=scope)
        self._receive, self._send, self._most = receive, send, most
        self._bytes, self._is_too_large, self._is_refused = 0, False, False
        self.status, self.cookie = 0, ""

    def check_length(self) -> None:
        """Refuse a body that is stated to be too large."""
        text = self.headers.get("content-length", "")
        if text.isascii() and text.isdigit() and int(text) > self._most:
            raise self._too_large()

    def _too_large(self) -> ApiError:
        return ApiError("body_too_large", f"the body has more than {self._most:,} bytes")

    async def receive(self) -> Message:
        """Receive a part of the body; one that is too large ends as if the client had gone."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            if self._bytes > self._most:
                self._is_too_large = True
                raise self._too_large()
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response, with the headers that all have."""
        if self._is_too_large and not self._is_refused:
            # However the application has taken that its body was cut: the client is told why.
            self._is_refused = True
            if not self.status:
                await error_response(self._too_large())(self.scope, self.receive, self._start)
            return
        if not self._is_refused:
            await self._start(message)

    async def _start(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
            if self.cookie:
                headers.append("set-cookie", self.cookie)
        await self._send(message)


def _cookie_text(scope: Scope, value: str) -> str:
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={_MAX_AGE}; HttpOnly; SameSite=Strict{secure}"


def _check_origin(headers: Headers, host: str) -> None:
    """Refuse a request that a page of another site makes a browser send."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise ApiError("forbidden", "the request comes from a page of another site")
    if site is not None and site not in ("same-origin", "none"):
        raise ApiError("forbidden", "the request comes from a page of another site")


def _wants_page(scope: Scope, headers: Headers) -> bool:
    is_page = scope["method"] == "GET" and not scope["path"].startswith(("/api/", _STATIC))
    return is_page and "text/html" in headers.get("accept", "")


def _cookie(headers: Headers) -> str | None:
    try:
        cookies: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    return cookies[COOKIE].value if COOKIE in cookies else None


def error_response(error: ApiError) -> Response:
    """Return the response for an error of the API."""
    headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
    if error.status in (429, 503):
        headers["retry-after"] = "5"
    return JSONResponse(error.to_dict(), error.status, headers)


def _route(scope: Scope) -> str:
    """Return the pattern of a route: a path may hold the id of a job."""
    route = scope.get("route")
    return str(getattr(route, "path", "other"))


def _place(error: BaseException) -> str:
    """Return the type of an exception and where it was raised; messages may name samples."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where: Any = trace and trace.tb_frame.f_code
    line = trace.tb_lineno if trace else 0
    return f"{type(error).__name__} in {where and Path(where.co_filename).name}:{line}"
