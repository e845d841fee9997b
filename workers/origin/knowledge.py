"""The port through which the origin asks the database, if there is one, about its publishing points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

IsAwaited = Callable[[str, int], bool | None]
"""Returns True if a recording, given by the publishing point and the session, is still to be captured, and False if not; None if
this is unknown."""


class PointDirectory(Protocol):
    """State of publishing points from the database. It is asked for each segment, so the answers are in memory."""

    async def public_parts(self, point: str) -> Sequence[tuple[float, float]]:
        """Return the times, as begins and ends in Unix time, of which everyone may play what arrived there. What is on the air is
        the last part, and its end is infinite."""
        ...

    async def runs(self, session: int) -> bool:
        """Return True if a session of an encoder that the product started has not ended, or if this is unknown."""
        ...

    async def awaited(self) -> IsAwaited:
        """Return a function that tells which recordings are still to be captured."""
        ...

    async def lost(self, point: str, session: int) -> None:
        """Report that a recording had to be removed before it was captured."""
        ...


class NoDatabase:
    """The directory of an origin without a database: nothing is published, and a token alone decides what its bearer may do."""

    async def public_parts(self, point: str) -> Sequence[tuple[float, float]]:
        return ()

    async def runs(self, session: int) -> bool:
        return True

    async def awaited(self) -> IsAwaited:
        return lambda point, session: None

    async def lost(self, point: str, session: int) -> None:
        return None
