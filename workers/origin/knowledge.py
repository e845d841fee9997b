"""What the origin is told of its publishing points by the database, where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

IsAwaited = Callable[[str, int], bool | None]
"""Whether somebody still waits to capture a recording, by the publishing point and the session; None: nothing is known of it."""


class Knowledge(Protocol):
    """Asked for each segment: the answers are in memory."""

    async def is_published(self, point: str) -> bool:
        """Whether everybody may play what is on the air there."""
        ...

    async def runs(self, session: int) -> bool:
        """Whether a session of an encoder that the product started has not ended; also where nobody knows."""
        ...

    async def awaited(self) -> IsAwaited:
        """Which recordings are still to be captured."""
        ...

    async def lost(self, point: str, session: int) -> None:
        """A recording that was still to be captured had to go."""
        ...


class NoDatabase:
    """Nothing is known: nothing is published, and a token alone says what its bearer may do."""

    async def is_published(self, point: str) -> bool:
        return False

    async def runs(self, session: int) -> bool:
        return True

    async def awaited(self) -> IsAwaited:
        return lambda point, session: None

    async def lost(self, point: str, session: int) -> None:
        return None
