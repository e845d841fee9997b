"""The built files of the console, held in memory with their compressed forms, and their response headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api.http.request import Request
from api.http.response import HTML, SCRIPT, STYLE, Response
from domain.kernel.errors import NotFound

_PLACES: Final = (Path(__file__).parent / "built", Path(__file__).parents[2] / "console" / "dist")
"""The folder of the built files in an installed package and in the source tree."""
_INDEX: Final = "index.html"
_ASSETS: Final = "assets/"
_TYPES: Final = {
    ".css": STYLE,
    ".html": HTML,
    ".js": SCRIPT,
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_CODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
"""The compressed forms that the build of the console makes, best first."""
_FOREVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    media_type: str
    plain: bytes
    coded: Mapping[str, bytes]


class ConsoleFiles:
    """All files below a folder. Without a folder the console is not built, and every path is 404. `media_origins` are other origins
    that players in the console may load from."""

    def __init__(self, folder: Path | None, *, media_origins: Sequence[str] = ()) -> None:
        self._files = {} if folder is None else _read(folder)
        self._headers = (
            ("content-security-policy", content_security_policy(media_origins)),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("vary", "Accept-Encoding"),
        )

    def response(self, name: str, request: Request) -> Response:
        """Return the file, or the index page for a path without a file, because the console routes in the browser. Raise `NotFound`
        for missing assets."""
        if not self._files:
            raise NotFound("console", name, sentence="The console is not built; `make console` builds it.")
        file = self._files.get(name)
        if file is None and (name.startswith(_ASSETS) or name == _ASSETS.rstrip("/")):
            raise NotFound("file of the console", name)
        caching = _FOREVER if file is not None and name.startswith(_ASSETS) else "no-cache"
        file = file or self._files[_INDEX]
        headers = (*self._headers, ("cache-control", caching))
        accepted = _codings(request.header("accept-encoding"))
        for coding, _ in _CODINGS:
            if coding in accepted and coding in file.coded:
                coded = (*headers, ("content-encoding", coding))
                return Response(file.coded[coding], headers=coded, media_type=file.media_type)
        return Response(file.plain, headers=headers, media_type=file.media_type)


def built_console() -> Path | None:
    """Return the folder of the built files; None if the console is not built."""
    return next((folder for folder in _PLACES if (folder / _INDEX).is_file()), None)


def content_security_policy(media_origins: Sequence[str]) -> str:
    """Return a policy that forbids other origins, inline content and frames. Only players may load from the `media_origins`."""
    media = " ".join(("", *media_origins))
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "font-src 'self'",
            f"img-src 'self' data: blob:{media}",
            f"media-src 'self' blob:{media}",
            f"connect-src 'self'{media}",
            "worker-src 'self' blob:",
            "manifest-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _read(folder: Path) -> Mapping[str, _File]:
    coded = tuple(suffix for _, suffix in _CODINGS)
    return {
        file.relative_to(folder).as_posix(): _File(
            _TYPES.get(file.suffix, "application/octet-stream"),
            file.read_bytes(),
            {coding: compressed.read_bytes() for coding, suffix in _CODINGS if (compressed := Path(f"{file}{suffix}")).is_file()},
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix not in coded
    }


def _codings(accepted: str | None) -> frozenset[str]:
    """Return the content codings that a browser accepts. A coding of weight 0 is not accepted."""
    parts = [part.replace(" ", "").lower().partition(";") for part in (accepted or "").split(",")]
    return frozenset(name for name, _, weight in parts if weight not in ("q=0", "q=0.0", "q=0.00", "q=0.000"))
