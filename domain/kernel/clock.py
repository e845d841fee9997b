"""The clock: the only place that reads the time. All other code gets the time as an argument."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the current time in UTC, truncated to milliseconds, which is the precision of stored and displayed times."""
    return to_milliseconds(datetime.now(UTC))


def to_milliseconds(moment: datetime) -> datetime:
    """Return the moment, truncated to milliseconds."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def iso(moment: datetime) -> str:
    """Return the moment in ISO 8601: UTC, three decimals, `Z`. Naive times are taken as UTC, because no other zone is stored."""
    text = moment.isoformat("T", "milliseconds")
    if text.endswith("+00:00"):  # whatever object stands for the zone; the usual case
        return f"{text[:-6]}Z"
    return f"{text}Z" if moment.tzinfo is None else iso(moment.astimezone(UTC))
