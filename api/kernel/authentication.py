"""Authentication by an API key or a session of a browser, and authorization by role, for every route that is not open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from api.http.errors import BadRequest, Forbidden, Unauthenticated
from api.http.request import Caller, Request
from api.http.routing import Route

_LONGEST_END_USER: Final = 128

Authenticate = Callable[[str], Awaitable[Caller | None]]
"""Returns the client of an API key; `None` for a key that is unknown, expired or revoked."""


class Sessions(Protocol):
    """Sessions of browsers, which send a cookie in place of a key."""

    async def caller(self, request: Any, *, changes: bool) -> Caller | None:
        """Return the client of the request's session, or None without a cookie. `changes` is False for a mere read.

        Raises `Unauthenticated` for a session that has ended, and `Forbidden` where a page of another origin may have sent it."""
        ...


class Authorizer:
    """Returns the caller of a request to a protected route, or raises 401 (no valid key) or 403 (no role that the route needs)."""

    def __init__(self, authenticate: Authenticate, *, sessions: Sessions | None = None) -> None:
        self._authenticate = authenticate
        self._sessions = sessions

    async def __call__(self, request: Request, route: Route) -> Caller:
        """Return the caller. The key of a client that the path does not name is answered as a wrong one, so that a caller does not
        learn which clients exist."""
        fields, surface = request.fields, route.surface
        key = sent_key(fields) if surface.bearer_keys else fields.get(b"api-key") or fields.get(b"x-auth-key")
        if key:
            caller = await self._authenticate(_unquoted(key) if surface.quoted_keys else key.decode("latin-1"))
            if caller is None:
                raise Unauthenticated("The API key is not valid.")
        else:
            caller = await self._of_session(request, route)
        claimed = fields.get(b"client")
        if claimed is None:
            if surface.client_required and key:
                raise Unauthenticated("This call needs the client's name in the header client.")
        elif claimed != caller.name.encode():
            raise Unauthenticated("The header client does not name the client that the API key belongs to.")
        if surface.caller_in_path and request.path_params.get(surface.caller_in_path, caller.name) != caller.name:
            raise Unauthenticated("The API key is not one of the client that the path names.")
        if route.roles.isdisjoint(caller.roles):
            needed = sorted(route.roles)
            which = f"the role {needed[0]}" if len(needed) == 1 else f"one of the roles {', '.join(needed)}"
            raise Forbidden(f"This call needs {which}.")
        sent = fields.get(b"x-actor")
        return caller if sent is None else replace(caller, end_user=_end_user(sent, caller))

    async def _of_session(self, request: Request, route: Route) -> Caller:
        sessions = self._sessions if route.surface.sessions else None
        caller = None if sessions is None else await sessions.caller(request, changes=route.changes)
        if caller is None:
            raise Unauthenticated("This call needs an API key: API-KEY: KEY, or Authorization: Bearer KEY.")
        return caller


def sent_key(headers: Mapping[bytes, bytes]) -> bytes | None:
    """Return the API key of a request, or None. Raises `Unauthenticated` for two that differ. A proxy in front may have asked for
    another scheme of Authorization than Bearer, which is ignored."""
    key = headers.get(b"api-key") or headers.get(b"x-auth-key")
    scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
    bearer = bearer.strip()
    if scheme.lower() == b"bearer" and bearer:
        if key and key != bearer:
            raise Unauthenticated("API-KEY and Authorization hold two different API keys; send one.")
        return bearer
    return key or None


def _end_user(sent: bytes, caller: Caller) -> str:
    """Return the end user of X-Actor. A header that is wrong is refused, since the log would name the client itself instead."""
    if not caller.trusted:
        raise Forbidden("The header X-Actor is for clients that are trusted with it.")
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        text = ""
    if not 0 < len(text) <= _LONGEST_END_USER or not text.isprintable() or text != text.strip():
        raise BadRequest.at("X-Actor", "must be 1 to 128 printable characters, in UTF-8")
    return text


def _unquoted(key: bytes) -> str:
    quoted = len(key) > 2 and key[:1] == key[-1:] == b"'"
    return (key[1:-1] if quoted else key).decode("latin-1")
