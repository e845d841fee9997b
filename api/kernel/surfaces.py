"""The surfaces whose errors are problem documents. The job engine and the key provider bring their own."""

from __future__ import annotations

from typing import Final

from api.http.surface import Surface

MEDIA: Final = Surface("media", prefix="/api")
AUDIT_LOG: Final = Surface("audit", prefix="/api/audit")
OPERATIONS: Final = Surface("operations")
