"""Ports of the use cases on clients."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class AdminLookup(Protocol):
    """Whether an admin would be left. Adapter: `ClientDirectory`."""

    def admin_lock(self) -> AbstractAsyncContextManager[None]:
        """A lock in all processes, held while a command depends on `other_admins`."""
        ...

    async def other_admins(self, name: str) -> bool:
        """Whether another client with role admin, but that of the demo, has a key that does not expire."""
        ...

    def invalidate(self) -> None:
        """Clients have changed: what is cached of them must be loaded again."""
        ...
