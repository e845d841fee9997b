"""The page `/docs`: Swagger UI, which shows `/openapi.json` to people. All of its files come from this server."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

from api.http.auth import OPEN
from api.http.request import Request
from api.http.response import Document, Response
from api.http.router import Router
from api.http.static import HTML, SCRIPT, STYLE, page_headers
from api.http.surface import Surface

_BUNDLE: Final = "swagger-ui-bundle.js"
_STYLE: Final = "swagger-ui.css"
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
_START: Final = b"""SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  validatorUrl: null,
});
"""
_HEADERS: Final = page_headers(inline_styles=True)


def docs_router(surface: Surface, *, title: str) -> Router:
    routes = Router(surface=surface)
    page, start = Document(_PAGE.format(title=escape(title)).encode()), Document(_START)

    @routes.get("/docs", OPEN, documented=False)
    async def swagger_ui(request: Request) -> Response:
        return page.response(HTML, headers=_HEADERS)

    @routes.get(f"/docs/{_BUNDLE}", OPEN, documented=False)
    async def swagger_ui_script(request: Request) -> Response:
        return _file(_BUNDLE).response(SCRIPT, headers=_HEADERS)

    @routes.get(f"/docs/{_STYLE}", OPEN, documented=False)
    async def swagger_ui_style(request: Request) -> Response:
        return _file(_STYLE).response(STYLE, headers=_HEADERS)

    @routes.get("/docs/start.js", OPEN, documented=False)
    async def swagger_ui_start(request: Request) -> Response:
        return start.response(SCRIPT, headers=_HEADERS)

    return routes


@cache
def _file(name: str) -> Document:
    """Read when it is first asked for: the script has 1.5 MB."""
    return Document((files("fastapi_offline") / "static" / name).read_bytes())
