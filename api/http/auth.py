"""Authentication by API key and authorization by role: the check before every route that is not open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from api.http.errors import BadRequest, Forbidden, Unauthenticated

_LONGEST_END_USER: Final = 128


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that a request came from. Holds no key. `end_user` is for whom it acts, where it may say so (`trusted`).
    `person`: it came with a session of a browser."""

    name: str
    roles: frozenset[str]
    trusted: bool = False
    end_user: str | None = None
    person: bool = False


ANONYMOUS: Final = Caller("anonymous", frozenset())

Authenticate = Callable[[str], Awaitable[Caller | None]]
"""Finds the client of an API key; `None` for a key that is unknown, expired or revoked."""


class Sessions(Protocol):
    """Sessions of browsers, which send a cookie in place of a key."""

    async def caller(self, request: Any, *, changes: bool) -> Caller | None:
        """The client of the request's session; None without a cookie. `changes`: the request is no mere read.

        Raises `Unauthenticated` for a session that has ended, and `Forbidden` where a page of another origin may have sent it."""
        ...


class Authorizer:
    """Lets a request through to a protected route, or raises 401 (no valid key) or 403 (no fitting role). `sessions`: a session
    does where there is no key; `changes`: as `Sessions.caller` takes it."""

    __slots__ = ("_authenticate", "_changes", "_sessions")

    def __init__(self, authenticate: Authenticate, *, sessions: Sessions | None = None, changes: bool = True) -> None:
        self._authenticate = authenticate
        self._sessions = sessions
        self._changes = changes

    async def admit(
        self,
        request: Any,
        *,
        roles: frozenset[str],
        client_required: bool = False,
        named: str | None = None,
        quoted: bool = False,
        bearer: bool = True,
    ) -> Caller:
        """`named` is the client that the path names, if it must be the caller's own. The key of another client is answered as a
        wrong one, so that a caller does not learn which clients exist. `quoted`: the key may be in single quotes.
        `bearer`: it may come in Authorization."""
        fields = request.fields
        key = sent_key(fields) if bearer else fields.get(b"api-key") or fields.get(b"x-auth-key")
        if key:
            caller = await self._authenticate(_unquoted(key) if quoted else key.decode("latin-1"))
            if caller is None:
                raise Unauthenticated("The API key is not valid.")
        else:
            caller = await self._of_session(request)
            client_required = False
        claimed = fields.get(b"client")
        if claimed is None:
            if client_required:
                raise Unauthenticated("This call needs the client's name in the header client.")
        elif claimed != caller.name.encode():
            raise Unauthenticated("The header client does not name the client that the API key belongs to.")
        if named is not None and named != caller.name:
            raise Unauthenticated("The API key is not one of the client that the path names.")
        if roles.isdisjoint(caller.roles):
            needed = sorted(roles)
            which = f"the role {needed[0]}" if len(needed) == 1 else f"one of the roles {', '.join(needed)}"
            raise Forbidden(f"This call needs {which}.")
        sent = fields.get(b"x-actor")
        return caller if sent is None else replace(caller, end_user=_end_user(sent, caller))

    async def _of_session(self, request: Any) -> Caller:
        caller = None if self._sessions is None else await self._sessions.caller(request, changes=self._changes)
        if caller is None:
            raise Unauthenticated("This call needs an API key: API-KEY: KEY, or Authorization: Bearer KEY.")
        return caller


def sent_key(headers: Mapping[bytes, bytes]) -> bytes | None:
    """The API key of a request; `None` where it brings none. Raises `Unauthenticated` for two that differ. Another scheme of
    Authorization than Bearer is none of ours: a proxy in front may have asked for it."""
    key = headers.get(b"api-key") or headers.get(b"x-auth-key")
    authorization = headers.get(b"authorization")
    if authorization is not None:
        scheme, _, bearer = authorization.partition(b" ")
        bearer = bearer.strip()
        if scheme.lower() == b"bearer" and bearer:
            if key and key != bearer:
                raise Unauthenticated("API-KEY and Authorization hold two different API keys; send one.")
            return bearer
    return key or None


def _end_user(sent: bytes, caller: Caller) -> str:
    """Silence would be worse: the log would say that the client itself had done it."""
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
