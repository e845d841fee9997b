"""The surface of the console."""

from __future__ import annotations

from typing import Final

from api.http.surface import Surface

CONSOLE: Final = Surface("console", prefix="/console")
