"""The meaning of refusals and lost connections of a target for a publication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from workers.ports.outbound import OutboundFailed, OutboundRefused, Reply
from workers.ports.targets import TargetFailed, TargetFault

SECONDS: Final = 30.0
"""The time limit in seconds for a request without a body, and for each piece of a body."""
_LONGEST_REST: Final = 3600.0
_LATER: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_FULL: Final = 507


@contextmanager
def translate_client_faults() -> Iterator[None]:
    """Translate faults of the guarded client, whose messages contain no secret, to `TargetFailed`."""
    try:
        yield
    except OutboundRefused as refused:
        raise TargetFailed("destination", f"The destination may not be called: {refused}") from None
    except OutboundFailed as failed:
        kind: TargetFault = "destination" if failed.kind == "tls" else "retry"
        raise TargetFailed(kind, f"The request to the destination failed: {failed}") from None


def refusal(reply: Reply, *, what: str, credentials: str) -> TargetFailed:
    """Return the failure for a refused request. `credentials` names the members of the configuration to check after a status 401 or
    403."""
    status = reply.status
    match status:
        case 401 | 403:
            return TargetFailed(
                "destination",
                f"{what}: it refuses the credentials with status {status}. Check {credentials} and their rights there.",
            )
        case _ if status in _LATER:
            return TargetFailed("retry", f"{what}: it answers with status {status}.", after=retry_after(reply))
        case _ if status == _FULL:
            return TargetFailed("destination", f"{what}: it has no space left (status {status}). Make room there.")
        case _ if 300 <= status < 400:
            return TargetFailed(
                "destination", f"{what}: it redirects (status {status}), which is not followed. Set the address it redirects to."
            )
        case 404 | 405 | 410 | 501:
            return TargetFailed("destination", f"{what}: it answers with status {status}. Check the address and the method.")
    return TargetFailed("publication", f"{what}: it refuses with status {status}.")


def retry_after(reply: Reply) -> float | None:
    """Return the header Retry-After in seconds, at most an hour; None if it is missing or a date."""
    value = reply.headers.get("retry-after", "")
    return min(float(value), _LONGEST_REST) if value.isascii() and value.isdigit() and len(value) < 9 else None
