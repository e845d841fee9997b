"""`/openapi.json`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pydantic_core import to_json

from api.http.api_description import ApiDescription
from api.http.auth import OPEN
from api.http.request import Request
from api.http.response import Document, Response
from api.http.router import Router
from api.http.surface import Surface


class Documentation:
    """Serves the document. It is made when first asked for, off the event loop: with some 170 routes it takes a moment that no
    request should wait. FastAPI is imported then too: most processes are never asked."""

    def __init__(self, routes: Iterable[Router], *, title: str, version: str, about: ApiDescription | None = None) -> None:
        self._routes = list(routes)
        self._title = title
        self._version = version
        self._about = about
        self._document: Document | None = None

    def router(self, surface: Surface) -> Router:
        routes = Router(surface=surface)

        @routes.get("/openapi.json", OPEN, documented=False)
        async def openapi_document(request: Request) -> Response:
            if self._document is None:
                self._document = await asyncio.to_thread(self._render)
            return self._document.response()

        return routes

    def _render(self) -> Document:
        from api.http.openapi import describe

        return Document(to_json(describe(self._routes, title=self._title, version=self._version, about=self._about)))
