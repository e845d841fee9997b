"""The surface of the console: its pages, files and sessions."""

from __future__ import annotations

from typing import Final

from api.http.surface import Surface

CONSOLE: Final = Surface("console", prefix="/console", body_limit=4096, never=frozenset({412}))
