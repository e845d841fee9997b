"""Times and durations of ISO 8601, as manifests and state pages of others write them."""

from __future__ import annotations

from datetime import UTC, datetime
from re import compile as regex
from typing import Final

_DURATION: Final = regex(r"P(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,18})?)S)?)?")


def moment_of(text: str) -> datetime | None:
    """In UTC; without an offset it is taken for UTC, as players do. None: it cannot be read."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds_of(text: str) -> float | None:
    """A duration. Years and months have no length, and are not supported. None: it cannot be read."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (float(one or 0) for one in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds
