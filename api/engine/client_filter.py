"""The client of an open call. The header `client` filters the answer and grants nothing; a key makes the answer unmasked."""

from __future__ import annotations

from functools import partial

from api.guards.proxies import share_of
from api.http.request import Caller
from api.kernel.auth import READ, Role
from api.kernel.callers import KnownCallers
from api.kernel.request import Request
from api.kernel.subscribers import Subscriber
from projections.client.directory import ClientDirectory


class ClientFilter:
    """Filters jobs by the client of the header. An admin works with the jobs of all clients, so the name of an admin filters
    nothing."""

    def __init__(self, directory: ClientDirectory, callers: KnownCallers) -> None:
        self._directory = directory
        self._callers = callers

    async def subscriber(self, request: Request) -> Subscriber:
        """Return the subscriber of a stream. Streams need no key; a caller with a key or a session has a better seat while the key
        or session is valid."""
        share = share_of((request.scope.get("client") or ("",))[0])
        caller = await self._callers.find(request)
        if caller is None:
            return Subscriber(share, has_key=False)
        roles = READ.roles if _sees_all(caller) else None
        return Subscriber(share, has_key=True, client=caller.name, lasts=partial(self._callers.lasts, request, roles))

    async def sees_all(self, request: Request) -> bool:
        """Return True if the caller may read protected data, which include addresses and machines. A wrong key counts as no key."""
        caller = await self._callers.find(request)
        return caller is not None and _sees_all(caller)

    async def exists(self, name: str) -> bool:
        return bool(await self._directory.roles_of(name))

    async def of(self, request: Request) -> str | None:
        """Return the client whose jobs are shown; None for all jobs."""
        client = request.header("client")
        if client is None or Role.ADMIN in await self._directory.roles_of(client):
            return None
        return client


def _sees_all(caller: Caller) -> bool:
    return not READ.roles.isdisjoint(caller.roles)
