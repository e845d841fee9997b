"""Permissions of routes: the roles of which a caller needs one, as a dependency that FastAPI knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Security, params
from fastapi.security import APIKeyHeader, SecurityScopes

from api.http.auth import Caller
from api.http.errors import Forbidden
from api.http.request import Request

API_KEY: Final = APIKeyHeader(
    name="API-KEY",
    scheme_name="API-KEY",
    description="An API key of a client. X-Auth-Key, and Authorization: Bearer, are accepted in its place; where API-KEY and "
    "X-Auth-Key are both there, API-KEY counts. The client must have a role that may make the call.",
    auto_error=False,
)


async def authorized(request: Request, scopes: SecurityScopes, _: Annotated[str | None, Security(API_KEY)] = None) -> Caller:
    """Return the caller of a request. A dependency for `Security`, whose scopes are the roles of which the caller needs one.

    The route has checked the key before it read the body, since 401 and 403 come before all errors of bodies."""
    if scopes.scopes and request.caller.roles.isdisjoint(scopes.scopes):
        raise Forbidden(f"This call needs one of the roles {', '.join(sorted(scopes.scopes))}.")
    return request.caller


async def anyone() -> None:
    """Let every request through: the dependency of routes that need no API key."""


@dataclass(frozen=True)
class Permission(params.Security):
    """The dependency of a route that says who may call it."""

    @property
    def roles(self) -> frozenset[str]:
        """The roles of which a caller needs one. Without roles the route needs no key."""
        return frozenset(self.scopes or ())


def requires(*roles: str) -> Permission:
    """Return the permission of routes for callers that have one of the roles."""
    if not roles:
        raise TypeError("a permission names at least one role; a route that needs no key is OPEN")
    return Permission(authorized, scopes=sorted(roles))


OPEN: Final = Permission(anyone)
"""The permission of routes that need no API key."""
