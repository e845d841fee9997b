"""Permissions of routes: the roles that may call them, and access to the resources of a client."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from api.http.errors import Forbidden
from api.http.request import Caller, Request
from api.http.routing import Permission, requires
from api.kernel.shell_access import PREFIX
from domain.client.roles import Role as Role
from domain.kernel.errors import Malformed
from projections.client.directory import ClientRow

READ: Final[Permission] = requires(Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN)
WRITE: Final[Permission] = requires(Role.OPERATOR, Role.ADMIN)
AUDIT: Final[Permission] = requires(Role.AUDITOR, Role.ADMIN)
CONTENT_KEYS: Final[Permission] = requires(Role.KEYS, Role.OPERATOR, Role.ADMIN)
ADMIN: Final[Permission] = requires(Role.ADMIN)


def check_owner(request: Request, client: str, *, what: str) -> None:
    """Raise `Forbidden` unless the caller is this client or an admin."""
    if client != request.caller.name and Role.ADMIN not in request.caller.roles:
        raise Forbidden(f"The {what} belongs to another client.")


def owner_of(request: Request, client: str | None) -> str:
    """Return the client that owns a new job or publication: the caller, which a request may also name. A person at the machine of
    the product is no client, and may name any."""
    if client is None:
        return request.caller.name
    if client != request.caller.name and not request.caller.name.startswith(PREFIX):
        raise Malformed.at("client", "must be the client of the header")
    return client


def caller_of(client: ClientRow) -> Caller:
    """Return the caller for a client."""
    return _caller(client.name, client.roles, client.trust_actor)


@lru_cache(maxsize=1024)
def _caller(name: str, roles: tuple[str, ...], trust_actor: bool) -> Caller:
    return Caller(name, frozenset(map(Role, roles)), trust_actor)
