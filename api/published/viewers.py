"""Viewers: callers that may read unpublished media, by a key of a role that reads or a session of the console."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from api.http.errors import Forbidden, Unauthenticated
from api.http.request import Request
from api.kernel.auth import Role
from api.kernel.authentication import Sessions, sent_key
from projections.client.directory import ClientDirectory

_ROLES: Final = frozenset({Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN})


class Viewers:
    """Checks the key of a request, or the session of its cookie if it has no key."""

    def __init__(self, directory: ClientDirectory, sessions: Sessions | None = None) -> None:
        self._directory = directory
        self._sessions = sessions

    async def has(self, request: Request) -> bool:
        """Return True if the caller may read unpublished media. A wrong key counts as no key."""
        key = sent_key(request.fields)
        if key is not None:
            client = await self._directory.authenticate(key.decode("latin-1"))
            return client is not None and not _ROLES.isdisjoint(client.roles)
        caller = None
        if self._sessions is not None:
            with suppress(Unauthenticated, Forbidden):
                caller = await self._sessions.caller(request, changes=False)
        return caller is not None and not _ROLES.isdisjoint(caller.roles)
