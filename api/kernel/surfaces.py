"""The surfaces whose errors are problem documents. The job engine and the key provider define their own."""

from __future__ import annotations

from typing import Final

from api.http.routing import Route
from api.http.surface import Surface

MEDIA: Final = Surface("media", prefix="/api", unknown_names="told", any_case=True)
AUDIT_LOG: Final = Surface("audit", prefix="/api/audit", unknown_names="refused", stored=False, any_case=True)
OPERATIONS: Final = Surface("operations")


class MediaRoute(Route):
    """A route of the media surface."""

    surface = MEDIA


class UnstoredMediaRoute(MediaRoute):
    """A route of the media surface whose responses no cache keeps, that of a browser neither."""

    stored = False


class AuditRoute(Route):
    """A route of the audit."""

    surface = AUDIT_LOG


class OperationsRoute(Route):
    """A route for operators and probes."""

    surface = OPERATIONS
