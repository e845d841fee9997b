"""Static files, read once, with headers that forbid a page to load anything from other sites."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from api.http.response import Document, Response

HTML: Final = "text/html; charset=utf-8"
SCRIPT: Final = "text/javascript; charset=utf-8"
STYLE: Final = "text/css; charset=utf-8"
_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)


def page_headers(*, inline_styles: bool = False) -> tuple[tuple[str, str], ...]:
    """Headers of a page and its files. A Content-Security-Policy lets the page load from its own origin only."""
    styles = "style-src 'self' 'unsafe-inline'" if inline_styles else "style-src 'self'"
    return (
        ("content-security-policy", "; ".join((*_POLICY, styles))),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
    )


_HEADERS: Final = page_headers()


class StaticFiles:
    """The files of one folder, kept in memory."""

    def __init__(self, folder: Path) -> None:
        self._files = {file.name: Document(file.read_bytes()) for file in folder.iterdir() if file.is_file()}

    def response(self, name: str, media_type: str) -> Response:
        return self._files[name].response(media_type, headers=_HEADERS)
