"""The response of a health check: docs/reference/api/health.md."""

from __future__ import annotations

from typing import Any, Final

from api.http.response import Response

FOUND: Final = 415
"""The status of a check that finds a fault, as the API requires. The body holds the findings and is not a problem document."""
_WORDS: Final = b"Expectation Failed"
"""The reason phrase of the status line, by which a client distinguishes a finding from a wrong content type."""
_HEADERS: Final = (("cache-control", "no-store"),)


def checked(shown: Any, *, has_findings: bool) -> Response:
    """Return the response of a check. `found` is True if there is something to report."""
    if has_findings:
        return Response(shown, FOUND, headers=_HEADERS, reason=_WORDS)
    return Response(shown, headers=_HEADERS)
