"""The surfaces whose errors are problem documents. The job engine and the key provider define their own."""

from __future__ import annotations

from typing import Final

from api.http.surface import Surface

MEDIA: Final = Surface("media", prefix="/api", unknown_names="told", any_case=True)
AUDIT_LOG: Final = Surface("audit", prefix="/api/audit", unknown_names="refused", stored=False, any_case=True)
OPERATIONS: Final = Surface("operations")
