"""The pages of ``mzseek serve``."""

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import escape

if TYPE_CHECKING:
    from mzseek.web.services import Services

_INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mzseek</title>
<meta name="csrf-token" content="{csrf}"></head>
<body><main><h1>mzseek</h1><p>Databases: {databases}</p>
<p>The API is described in <a href="/api/v1/openapi.json">OpenAPI</a>.</p></main></body></html>
"""


def make_router(services: "Services") -> APIRouter:
    """Return the routes of all pages."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    def index(request: Request) -> HTMLResponse:
        # `request.state.csrf_token` goes along as X-CSRF-Token with whatever changes something.
        databases = ", ".join(services.databases)
        csrf = escape(request.state.csrf_token)
        return HTMLResponse(_INDEX.format(csrf=csrf, databases=escape(databases)))

    return router
