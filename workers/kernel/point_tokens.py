"""The tokens with which this process writes to and reads from publishing points of the built-in origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from re import compile as regex
from typing import Any, Final

from pydantic_core import to_json

from domain.channel.point_token import PointToken, Use
from domain.kernel.clock import Clock
from domain.kernel.encryption import IngestKeys

_POINT: Final = regex(r"/origin/live/([A-Za-z0-9._-]{1,64})(?:[/?]|$)")
ENCODER_SECONDS: Final = 600
"""The lifetime of an encoder's token. Encoders get the next one long before the end."""
READ_SECONDS: Final = 60
STEP_SECONDS: Final = 25 * 3600
_POINTS: Final = regex(r"/origin/live/([A-Za-z0-9._-]{1,64})")


class PointTokens:
    """Makes tokens. `origin` is the address of the built-in origin; without one only `to_read` makes any."""

    def __init__(self, keys: IngestKeys, clock: Clock, *, origin: str | None) -> None:
        self._keys = keys
        self._clock = clock
        self._origin = origin

    def headers(self, url: str, session: int) -> Mapping[str, str]:
        """Return the headers of an encoder's request to a URL. A token is only sent to the origin."""
        below = url.removeprefix(self._origin) if self._origin is not None and url.startswith(self._origin) else ""
        point = _POINT.match(below)
        if point is None:
            return {}
        now = int(self._clock().timestamp())
        token = PointToken(Use.ENCODER, now, now + ENCODER_SECONDS, session)
        return {"Authorization": f"Bearer {token.text(self._keys.present, point=point[1])}"}

    def to_read(self, point: str, *, seconds: int = READ_SECONDS) -> str:
        """Return the token with which the product reads the publishing point of this name."""
        now = int(self._clock().timestamp())
        return PointToken(Use.READ, now, now + seconds).text(self._keys.present, point=point)

    def of_step(self, parameters: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the tokens of a step, which has no key: for the publishing points that its parameters name, valid for the length
        of a capture."""
        if self._origin is None:
            return {}
        return {name: self.to_read(name, seconds=STEP_SECONDS) for name in set(_POINTS.findall(to_json(parameters).decode()))}


class PointNames:
    """Finds the name of the publishing point of the built-in origin at a URL. `origins` are the addresses of this server."""

    def __init__(self, origins: Sequence[str] = ()) -> None:
        self._origins = origins

    def __call__(self, url: str) -> str | None:
        """Return the name; None for any other address."""
        matches = [_POINT.match(url.removeprefix(origin)) for origin in self._origins if url.startswith(f"{origin}/")]
        return next((match[1] for match in matches if match is not None), None)
