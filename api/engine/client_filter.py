"""Who asks for jobs. The calls are open: the header `client` limits the answer and grants nothing, and a key shows it in full."""

from __future__ import annotations

from functools import partial

from api.http.auth import Caller
from api.http.proxies import share_of
from api.http.sse import Subscriber
from api.kernel.auth import READ, Role
from api.kernel.known_callers import KnownCallers
from api.kernel.request import Request
from projections.clients.directory import ClientDirectory


class ClientFilter:
    """An admin works with the jobs of all clients, so the name of an admin limits nothing."""

    def __init__(self, directory: ClientDirectory, callers: KnownCallers) -> None:
        self._directory = directory
        self._callers = callers

    async def subscriber(self, request: Request) -> Subscriber:
        """Who asks for a stream. Streams need no key; who shows one, or a session, has a better seat, as long as it stands."""
        share = share_of((request.scope.get("client") or ("",))[0])
        caller = await self._callers.find(request)
        if caller is None:
            return Subscriber(share, has_key=False)
        roles = READ if _sees_all(caller) else None
        return Subscriber(share, has_key=True, client=caller.name, lasts=partial(self._callers.lasts, request, roles))

    async def sees_all(self, request: Request) -> bool:
        """Whether the caller may read what is protected, and so sees addresses and machines too. A wrong key counts as none."""
        caller = await self._callers.find(request)
        return caller is not None and _sees_all(caller)

    async def exists(self, name: str) -> bool:
        return bool(await self._directory.roles_of(name))

    async def of(self, request: Request) -> str | None:
        """The client whose jobs are shown, or None: all jobs."""
        client = request.header("client")
        if client is None or Role.ADMIN in await self._directory.roles_of(client):
            return None
        return client


def _sees_all(caller: Caller) -> bool:
    return READ is not None and not READ.isdisjoint(caller.roles)
