"""The response of a health check: docs/reference/api/health.md."""

from __future__ import annotations

from typing import Any, Final

from api.http.response import Response

FOUND: Final = 415
"""The status that the API has for a check which finds something. Its body is what was found, not a problem."""
_WORDS: Final = b"Expectation Failed"
"""By these words of the status line a client tells it from a wrong content type."""
_HEADERS: Final = (("cache-control", "no-store"),)


def checked(shown: Any, *, found: bool) -> Response:
    """`found`: there is something to report."""
    if found:
        return Response(FOUND, shown, headers=_HEADERS, reason=_WORDS)
    return Response(200, shown, headers=_HEADERS)
