"""When a delivery that failed is tried again: the example schedule of the Standard Webhooks specification, within the bounds of
issue 5, "Delivery"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

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
"""How long to wait before the first, second, … try."""

JITTER: Final = 0.2
LONGEST_ASKED: Final = _HOUR
"""A receiver may ask for more patience than the schedule has, but for no more than this."""

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Schedule:
    """As many tries as there are delays."""

    delays: Sequence[float] = DELAYS

    @property
    def tries(self) -> int:
        return len(self.delays)

    def wait(self, tried: int, draw: float, *, asked: float = 0.0) -> float | None:
        """Seconds until the next try after so many; None: there is none. `draw` is from 0 to 1, `asked` what the receiver wants."""
        if tried >= self.tries:
            return None
        return max(self.delays[tried] * (1 - JITTER + 2 * JITTER * draw), asked)


def retry_after(value: str | None, now: datetime) -> float:
    """Seconds that a `Retry-After` header asks for, as a number or an HTTP date (RFC 9110, 10.2.3); 0 when it asks for nothing."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_ASKED)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return min(max((when - now).total_seconds(), 0.0), LONGEST_ASKED)
