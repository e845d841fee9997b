"""Permissions of routes: which roles may call them."""

from __future__ import annotations

from typing import Final

from api.http.auth import Permission
from domain.client.roles import Role as Role

READ: Final[Permission] = frozenset({Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN})
WRITE: Final[Permission] = frozenset({Role.OPERATOR, Role.ADMIN})
AUDIT: Final[Permission] = frozenset({Role.AUDITOR, Role.ADMIN})
CONTENT_KEYS: Final[Permission] = frozenset({Role.KEYS, Role.OPERATOR, Role.ADMIN})
ADMIN: Final[Permission] = frozenset({Role.ADMIN})
