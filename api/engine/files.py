"""The page for operators, /engine/dashboard.html, and what it is made of: it needs no key and holds no secret. Issue 7, point 7."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from api.engine.surface import ENGINE
from api.kernel.answer import Answer
from api.kernel.auth import OPEN
from api.kernel.call import Call
from api.kernel.routes import Routes

routes = Routes(surface=ENGINE, tag="Job engine")

_HTML: Final = "text/html; charset=utf-8"
_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-cache"),
)


class DashboardFiles:
    """Read once, when the application is put together."""

    def __init__(self) -> None:
        folder = Path(__file__).parent / "page"
        self._files = {file.name: file.read_bytes() for file in folder.iterdir()}

    def answer(self, name: str, media_type: str) -> Answer:
        return Answer(200, self._files[name], headers=_HEADERS, media_type=media_type)


@routes.get("/dashboard.html", OPEN, media_type=_HTML)
async def dashboard_page(call: Call, files: DashboardFiles) -> Answer:
    """A page that shows what runs, waits and is scheduled, and follows the log of a job."""
    return files.answer("dashboard.html", _HTML)


@routes.get("/dashboard.css", OPEN, media_type=_STYLE)
async def dashboard_style(call: Call, files: DashboardFiles) -> Answer:
    """How that page looks."""
    return files.answer("dashboard.css", _STYLE)


@routes.get("/dashboard.js", OPEN, media_type=_SCRIPT)
async def dashboard_script(call: Call, files: DashboardFiles) -> Answer:
    """What that page does."""
    return files.answer("dashboard.js", _SCRIPT)
