"""Bodies of responses that their clients have not taken yet, bounded in bytes for a process.

A client that asks and does not read would otherwise keep its response in memory. A large body is handed to the connection in
pieces, each when the one before has left. Where all bodies together are too large, the one whose client has taken nothing for the
longest time is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from starlette.exceptions import HTTPException

from api.guards.application import CLOSE, Send

PIECE: Final = 65_536
_MOST: Final = 64 * 1024 * 1024
_STALLED: Final = 1.0


class NoRoom(HTTPException):
    """Too much of other responses waits for its clients."""

    def __init__(self) -> None:
        super().__init__(503, "Too many large responses are under way.", {"retry-after": "2"})


@dataclass(eq=False, slots=True)
class Body:
    """A body that is being sent. `close` closes its connection; without it nothing can."""

    left: int
    close: Callable[[], None] | None
    taken_at: float


class UnsentBodies:
    """`most` bytes of all bodies; one whose client takes nothing for `stalled` seconds may be given up for others."""

    def __init__(self, most: int = _MOST, *, stalled: float = _STALLED, clock: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._stalled = stalled
        self._clock = clock
        self._bodies: dict[Body, None] = {}
        self._left = 0

    def admit(self, payload: bytes, scope: Any) -> Body:
        """Raises `NoRoom`. One body is admitted beside nothing, whatever its size."""
        for body in list(self._bodies):
            if self._left + len(payload) <= self._most or body.taken_at + self._stalled > self._clock():
                break
            if body.close is not None:
                body.close()
                self._ended(body)
        if self._bodies and self._left + len(payload) > self._most:
            raise NoRoom
        admitted = Body(len(payload), scope.get("extensions", {}).get(CLOSE), self._clock())
        self._bodies[admitted] = None
        self._left += admitted.left
        return admitted

    async def send(self, body: Body, payload: bytes, send: Send) -> None:
        """The server lets `send` wait until it has room for the piece, and ignores it when the connection is closed."""
        try:
            for begin in range(0, len(payload), PIECE):
                end = min(begin + PIECE, len(payload))
                await send({"type": "http.response.body", "body": payload[begin:end], "more_body": end < len(payload)})
                self._took(body, end - begin)
        finally:
            self._ended(body)

    def _took(self, body: Body, size: int) -> None:
        """The bodies are in the order in which their clients took something, the longest ago first."""
        if body in self._bodies:
            body.left -= size
            self._left -= size
            body.taken_at = self._clock()
            del self._bodies[body]
            self._bodies[body] = None

    def _ended(self, body: Body) -> None:
        if body in self._bodies:
            del self._bodies[body]
            self._left -= body.left
