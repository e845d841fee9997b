"""The optional header `client` of open calls. They need no key, so it limits the answer and grants nothing."""

from __future__ import annotations

from api.kernel.auth import Role
from api.kernel.request import Request
from projections.clients.directory import ClientDirectory


class ClientFilter:
    """An admin works with the jobs of all clients, so the name of an admin limits nothing."""

    def __init__(self, directory: ClientDirectory) -> None:
        self._directory = directory

    async def of(self, request: Request) -> str | None:
        """The client whose jobs are shown, or None: all jobs."""
        client = request.header("client")
        if client is None or Role.ADMIN in await self._directory.roles_of(client):
            return None
        return client
