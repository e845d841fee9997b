"""The console at /console/: its files, and its page for every address below. They need no key and hold no secret."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from api.console.files import ConsoleFiles
from api.console.session import ConsoleRoute
from api.http.request import Request
from api.http.response import HTML, Response
from api.http.routing import OPEN, Service, rules
from api.kernel.surfaces import OperationsRoute

routes = APIRouter(prefix="/console", tags=["console"], route_class=ConsoleRoute)
root = APIRouter(tags=["console"], route_class=OperationsRoute)
_NOT_BUILT: Final = {404: "The console is not built, or has no such file"}


@root.get("/", dependencies=[OPEN], status_code=302, include_in_schema=False)
async def go_to_console(request: Request) -> Response:
    """Redirect to the console. A request of the server's bare address comes from a person."""
    return Response(status_code=302, headers=(("location", "/console/"), ("cache-control", "no-cache")))


@routes.get("/", dependencies=[OPEN], include_in_schema=False)
@rules(media_type=HTML, errors=_NOT_BUILT)
async def get_console(request: Request, files: Service[ConsoleFiles]) -> Response:
    return files.response("index.html", request)


@routes.get("/{path:path}", dependencies=[OPEN], include_in_schema=False)
@rules(media_type=HTML, errors=_NOT_BUILT)
async def get_console_path(request: Request, path: str, files: Service[ConsoleFiles]) -> Response:
    return files.response(path, request)
