"""Finds who sent a request that needs no key, and whether a caller may still do what a request began."""

from __future__ import annotations

from typing import Any

from api.http.auth import Authenticate, Caller, Permission, Sessions, sent_key
from api.http.errors import Forbidden, Unauthenticated
from domain.kernel.errors import Unavailable


class KnownCallers:
    """Reads the key or the session that comes with a request."""

    def __init__(self, authenticate: Authenticate, sessions: Sessions) -> None:
        self._authenticate = authenticate
        self._sessions = sessions

    async def find(self, request: Any) -> Caller | None:
        """None where there is no valid key and no session. A wrong key counts as none."""
        try:
            key = sent_key(request.headers)
            if key is not None:
                return await self._authenticate(key.decode("latin-1"))
            return await self._sessions.caller(request, changes=False)
        except (Unauthenticated, Forbidden):
            return None

    async def lasts(self, request: Any, roles: Permission) -> bool:
        """Whether the key or session still stands and has one of the roles. Without the database nothing is taken away."""
        try:
            caller = await self.find(request)
        except Unavailable:
            return True
        return caller is not None and (roles is None or not roles.isdisjoint(caller.roles))
