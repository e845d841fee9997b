"""Ports of the use cases on clients."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class AdminLookup(Protocol):
    """Tells whether another admin exists. Adapter: `ClientDirectory`."""

    def admin_lock(self) -> AbstractAsyncContextManager[None]:
        """Return a lock across all processes, which is held while a command depends on `other_admins`."""
        ...

    async def other_admins(self, name: str) -> bool:
        """Return True if another client with the role admin, except that of the demo, has a key that does not expire."""
        ...

    def invalidate(self) -> None:
        """Drop cached clients, which must be loaded again after a change."""
        ...
