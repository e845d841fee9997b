"""The surface of the built-in origin. Pages of every origin may read it, including its errors."""

from __future__ import annotations

from typing import Final

from api.http.routing import Route
from api.http.surface import Surface
from api.published.surface import PLAYERS

ORIGIN: Final = Surface("origin", prefix="/origin", cross_origin=PLAYERS, routine=True)


class OriginRoute(Route):
    """A route of the built-in origin."""

    surface = ORIGIN
