"""The callers of requests that need no key, and checks that a caller may continue a long request."""

from __future__ import annotations

from typing import Any

from api.http.errors import Forbidden, Unauthenticated
from api.http.request import Caller
from api.kernel.authentication import Authenticate, Sessions, sent_key
from domain.kernel.errors import Unavailable


class KnownCallers:
    """Reads the key or the session of a request."""

    def __init__(self, authenticate: Authenticate, sessions: Sessions) -> None:
        self._authenticate = authenticate
        self._sessions = sessions

    async def find(self, request: Any) -> Caller | None:
        """Return the caller; None without a valid key or session. A wrong key counts as no key."""
        try:
            key = sent_key(request.fields)
            if key is not None:
                return await self._authenticate(key.decode("latin-1"))
            return await self._sessions.caller(request, changes=False)
        except (Unauthenticated, Forbidden):
            return None

    async def lasts(self, request: Any, roles: frozenset[str] | None) -> bool:
        """Return True if the key or session is still valid and has one of the roles. If the database is unavailable, permissions
        remain."""
        try:
            caller = await self.find(request)
        except Unavailable:
            return True
        return caller is not None and (roles is None or not roles.isdisjoint(caller.roles))
