"""Who asks for jobs. The calls are open: the header `client` limits the answer and grants nothing, and a key shows it in full."""

from __future__ import annotations

from collections.abc import Collection

from api.http.auth import Sessions, sent_key
from api.http.errors import Forbidden, Unauthenticated
from api.http.proxies import share_of
from api.http.sse import Subscriber
from api.kernel.auth import READ, Role
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
        return Subscriber(share_of(address), await self._roles(request) is not None)

    async def sees_all(self, request: Request) -> bool:
        """Whether the caller may read what is protected, and so sees addresses and machines too. A wrong key counts as none."""
        roles = await self._roles(request)
        return roles is not None and READ is not None and not READ.isdisjoint(roles)

    async def _roles(self, request: Request) -> Collection[str] | None:
        """The roles of the caller's key or session; None without a valid one."""
        try:
            key = sent_key(request.headers)
            if key is not None:
                client = await self._directory.authenticate(key.decode("latin-1"))
                return None if client is None else client.roles
            caller = await self._sessions.caller(request, changes=False)
        except (Unauthenticated, Forbidden):
            return None
        return None if caller is None else caller.roles

    async def exists(self, name: str) -> bool:
        return bool(await self._directory.roles_of(name))

    async def of(self, request: Request) -> str | None:
        """The client whose jobs are shown, or None: all jobs."""
        client = request.header("client")
        if client is None or Role.ADMIN in await self._directory.roles_of(client):
            return None
        return client
