"""Times and durations of ISO 8601, as manifests and status pages of other products write them."""

from __future__ import annotations

from datetime import UTC, datetime
from re import compile as regex
from typing import Final

_DURATION: Final = regex(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,18})?)S)?)?")


def moment_of(text: str) -> datetime | None:
    """Return a date-time in UTC, or None if the text cannot be read. A text without an offset is taken as UTC, as players do."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds_of(text: str) -> float | None:
    """Return a duration in seconds, or None if the text cannot be read. Years and months have no fixed length and are not
    supported."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds
