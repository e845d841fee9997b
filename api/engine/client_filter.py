"""The optional header `client` of open calls. They need no key, so it limits the answer and grants nothing."""

from __future__ import annotations

from api.http.auth import Sessions, sent_key
from api.http.errors import Forbidden, Unauthenticated
from api.http.proxies import share_of
from api.http.sse import Subscriber
from api.kernel.auth import Role
from api.kernel.request import Request
from projections.clients.directory import ClientDirectory


class ClientFilter:
    """An admin works with the jobs of all clients, so the name of an admin limits nothing."""

    def __init__(self, directory: ClientDirectory, sessions: Sessions) -> None:
        self._directory = directory
        self._sessions = sessions

    async def subscriber(self, request: Request) -> Subscriber:
        """Who asks for a stream. Streams need no key; who shows one, or a session, has a better seat."""
        address = (request.scope.get("client") or ("",))[0]
        return Subscriber(share_of(address), await self._is_known(request))

    async def _is_known(self, request: Request) -> bool:
        key = sent_key(request.headers)
        if key is not None:
            return await self._directory.authenticate(key.decode("latin-1")) is not None
        try:
            return await self._sessions.caller(request, changes=False) is not None
        except (Unauthenticated, Forbidden):
            return False

    async def exists(self, name: str) -> bool:
        return bool(await self._directory.roles_of(name))

    async def of(self, request: Request) -> str | None:
        """The client whose jobs are shown, or None: all jobs."""
        client = request.header("client")
        if client is None or Role.ADMIN in await self._directory.roles_of(client):
            return None
        return client
