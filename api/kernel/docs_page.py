"""The page `/docs`: Swagger UI, which shows `/openapi.json` to people. All of its files come from this server."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from fastapi import APIRouter

from api.http.request import Request
from api.http.response import HTML, SCRIPT, STYLE, Document, Response
from api.http.routing import OPEN
from api.kernel.surfaces import OperationsRoute

routes = APIRouter(route_class=OperationsRoute, include_in_schema=False)

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. Programs read <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
# `validatorUrl: null` keeps the page from sending the document to a public validator.
_START: Final = Document(b"""SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  validatorUrl: null,
});
""")
_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "style-src 'self' 'unsafe-inline'",
)
_HEADERS: Final = (
    ("content-security-policy", "; ".join(_POLICY)),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-cache"),
)
"""The headers of the page and its files. The Content-Security-Policy lets the page load from its own origin only."""


@routes.get("/openapi.json", dependencies=[OPEN])
async def openapi_document(request: Request) -> Response:
    document: Document = await request.app.document()
    return document.response()


@routes.get("/docs", dependencies=[OPEN])
async def swagger_ui(request: Request) -> Response:
    return _page(request.app.title).response(HTML, headers=_HEADERS)


@routes.get("/docs/start.js", dependencies=[OPEN])
async def swagger_ui_start(request: Request) -> Response:
    return _START.response(SCRIPT, headers=_HEADERS)


@routes.get("/docs/swagger-ui.css", dependencies=[OPEN])
async def swagger_ui_style(request: Request) -> Response:
    return _file("swagger-ui.css").response(STYLE, headers=_HEADERS)


@routes.get("/docs/swagger-ui-bundle.js", dependencies=[OPEN])
async def swagger_ui_script(request: Request) -> Response:
    return _file("swagger-ui-bundle.js").response(SCRIPT, headers=_HEADERS)


@cache
def _page(title: str) -> Document:
    return Document(_PAGE.format(title=escape(title)).encode())


@cache
def _file(name: str) -> Document:
    """Return a file of Swagger UI, which is read when it is first asked for: the script has 1.5 MB."""
    return Document((files("fastapi_offline") / "static" / name).read_bytes())
