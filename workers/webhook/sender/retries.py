"""The schedule of retries of failed deliveries: the example schedule of the Standard Webhooks specification.

See docs/explanation/delivery.md#how-a-delivery-is-tried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from workers.kernel.http_dates import http_date

_SECOND, _MINUTE, _HOUR = 1.0, 60.0, 3600.0
DELAYS: Final = (
    0.0,
    5 * _SECOND,
    5 * _MINUTE,
    30 * _MINUTE,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    14 * _HOUR,
    20 * _HOUR,
    24 * _HOUR,
)
"""Seconds to wait before the first, second, … attempt."""

JITTER: Final = 0.2
LONGEST_REQUESTED: Final = _HOUR
"""The longest `Retry-After` that is respected, in seconds."""

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """A schedule of attempts. A delivery has as many attempts as there are delays."""

    delays: Sequence[float] = DELAYS

    @property
    def tries(self) -> int:
        return len(self.delays)

    def wait(self, attempts_made: int, draw: float, *, requested_wait: float = 0.0) -> float | None:
        """Return the seconds until the next attempt; None if there is none. `draw` is random, from 0 to 1; `requested_wait` comes
        from the receiver."""
        if attempts_made >= self.tries:
            return None
        return max(self.delays[attempts_made] * (1 - JITTER + 2 * JITTER * draw), requested_wait)


def retry_after(value: str | None, now: datetime) -> float:
    """Return the seconds of a `Retry-After` header, a number or an HTTP date (RFC 9110, 10.2.3); 0 without a valid value."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_REQUESTED)
    when = http_date(text)
    return 0.0 if when is None else min(max((when - now).total_seconds(), 0.0), LONGEST_REQUESTED)
