"""The page for operators, /engine/dashboard.html, and its files. It needs no key and holds no secret."""

from __future__ import annotations

from pathlib import Path

from api.engine.surface import ENGINE
from api.http.auth import OPEN
from api.http.response import Response
from api.http.router import Router
from api.http.static import HTML, SCRIPT, STYLE, StaticFiles
from api.kernel.request import Request

routes = Router(surface=ENGINE, tag="Job engine")


class DashboardFiles(StaticFiles):
    """Read once, when the application starts."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).parent / "page")


@routes.get("/dashboard.html", OPEN, media_type=HTML)
async def get_dashboard_page(request: Request, files: DashboardFiles) -> Response:
    """A page that shows started, queued and scheduled jobs, and follows the log of a job."""
    return files.response("dashboard.html", HTML)


@routes.get("/dashboard.css", OPEN, media_type=STYLE)
async def get_dashboard_style(request: Request, files: DashboardFiles) -> Response:
    """The style of that page."""
    return files.response("dashboard.css", STYLE)


@routes.get("/dashboard.js", OPEN, media_type=SCRIPT)
async def get_dashboard_script(request: Request, files: DashboardFiles) -> Response:
    """The script of that page."""
    return files.response("dashboard.js", SCRIPT)
