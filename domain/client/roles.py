"""The roles of clients."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from domain.kernel.errors import Malformed


class Role(StrEnum):
    """A set of permissions of a client. The order of the members is the order in which roles are shown."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    KEYS = "keys"
    ADMIN = "admin"


def checked_roles(names: Iterable[str]) -> tuple[str, ...]:
    """Return the roles in their order, without duplicates. Raises `Malformed` for an empty list and for unknown names."""
    chosen = set(names)
    if not chosen:
        raise Malformed.at("roles", "at least one role is required")
    if unknown := chosen - set(Role):
        raise Malformed.at("roles", f"{min(unknown)} is not one of {', '.join(Role)}")
    return tuple(role.value for role in Role if role in chosen)
