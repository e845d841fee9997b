"""The optional header `client` of open calls. They need no key, so it limits the answer and grants nothing."""

from __future__ import annotations

from api.http.auth import sent_key
from api.http.sse import Subscriber
from api.kernel.auth import Role
from api.kernel.request import Request
from projections.clients.directory import ClientDirectory


class ClientFilter:
    """An admin works with the jobs of all clients, so the name of an admin limits nothing."""

    def __init__(self, directory: ClientDirectory) -> None:
        self._directory = directory

    async def subscriber(self, request: Request) -> Subscriber:
        """Who asks for a stream. Streams need no key; who shows one has a better seat."""
        key = sent_key(request.headers)
        has_key = key is not None and await self._directory.authenticate(key.decode("latin-1")) is not None
        return Subscriber((request.scope.get("client") or ("",))[0], has_key)

    async def exists(self, name: str) -> bool:
        return bool(await self._directory.roles_of(name))

    async def of(self, request: Request) -> str | None:
        """The client whose jobs are shown, or None: all jobs."""
        client = request.header("client")
        if client is None or Role.ADMIN in await self._directory.roles_of(client):
            return None
        return client
