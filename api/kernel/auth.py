"""Who may call: API keys, roles, and the check that stands before every route that is not open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from api.kernel.errors import Forbidden, Unauthenticated


class Role(StrEnum):
    """What a client may do, in the words that it is registered with."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    KEYS = "keys"
    ADMIN = "admin"


Permission = frozenset[Role] | None
"""The roles of which a caller needs one; `None` asks nothing, not even a key."""

OPEN: Final[Permission] = None
READ: Final[Permission] = frozenset({Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN})
WRITE: Final[Permission] = frozenset({Role.OPERATOR, Role.ADMIN})
AUDIT: Final[Permission] = frozenset({Role.AUDITOR, Role.ADMIN})
CONTENT_KEYS: Final[Permission] = frozenset({Role.KEYS, Role.OPERATOR, Role.ADMIN})
ADMIN: Final[Permission] = frozenset({Role.ADMIN})


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that a request came from. Holds no key."""

    name: str
    roles: frozenset[Role]


ANONYMOUS: Final = Caller("anonymous", frozenset())

Authenticate = Callable[[str], Awaitable[Caller | None]]
"""From an API key to its client; `None` for a key that is unknown, expired or revoked."""


class Gate:
    """Lets a request through to a protected route, or refuses with 401 (who are you?) or 403 (not you)."""

    __slots__ = ("_authenticate",)

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate

    async def admit(
        self,
        headers: Mapping[bytes, bytes],
        *,
        roles: frozenset[Role],
        client_required: bool = False,
        named: str | None = None,
        quoted: bool = False,
    ) -> Caller:
        """`named` is the client that the path names, if it must be the caller's own; another's key is as good as a wrong one, so
        that nobody learns which clients there are. `quoted`: the key may stand in single quotes."""
        key = headers.get(b"api-key") or headers.get(b"x-auth-key")
        if not key:
            raise Unauthenticated("This call needs an API key in the header API-KEY.")
        caller = await self._authenticate(_bare(key) if quoted else key.decode("latin-1"))
        if caller is None:
            raise Unauthenticated("The API key is not valid.")
        claimed = headers.get(b"client")
        if claimed is None:
            if client_required:
                raise Unauthenticated("This call needs the client's name in the header client.")
        elif claimed != caller.name.encode():
            raise Unauthenticated("The header client does not name the client that the API key belongs to.")
        if named is not None and named != caller.name:
            raise Unauthenticated("The API key is not one of the client that the path names.")
        if roles.isdisjoint(caller.roles):
            raise Forbidden(f"This call needs one of the roles {', '.join(sorted(roles))}.")
        return caller


def _bare(key: bytes) -> str:
    quoted = len(key) > 2 and key[:1] == key[-1:] == b"'"
    return (key[1:-1] if quoted else key).decode("latin-1")
