"""The console at /console/: its files, and its page for every address below. They need no key and hold no secret."""

from __future__ import annotations

from typing import Final

from api.console.files import ConsoleFiles
from api.console.session import CONSOLE
from api.http.auth import OPEN
from api.http.request import Request
from api.http.response import Response
from api.http.router import Router
from api.http.static import HTML
from api.kernel.surfaces import OPERATIONS

routes = Router(surface=CONSOLE)
root = Router(surface=OPERATIONS, tag="console")
_NOT_BUILT: Final = {404: "The console is not built, or has no such file"}


@root.get("/", OPEN, status=302, documented=False)
async def go_to_console(request: Request) -> Response:
    """Redirect to the console. A request of the server's bare address comes from a person."""
    return Response(302, headers=(("location", "/console/"), ("cache-control", "no-cache")))


@routes.get("/", OPEN, media_type=HTML, documented=False, errors=_NOT_BUILT)
async def get_console(request: Request, files: ConsoleFiles) -> Response:
    return files.response("index.html", request)


@routes.get("/{+path}", OPEN, media_type=HTML, documented=False, errors=_NOT_BUILT)
async def get_console_path(request: Request, path: str, files: ConsoleFiles) -> Response:
    return files.response(path, request)
