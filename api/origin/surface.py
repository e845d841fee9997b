"""The surface of the built-in origin. Pages of other origins read it, also its errors."""

from __future__ import annotations

from typing import Final

from api.http.surface import Surface
from api.published.surface import render

ORIGIN: Final = Surface("origin", prefix="/origin", render=render, routine=True)
