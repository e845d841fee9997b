"""Dates in the headers of answers: RFC 9110, 5.6.7. The server that answers may be hostile."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def http_date(text: str) -> datetime | None:
    """Return the time in a header; None if it is not a date."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):  # the library raises each of these for some texts
        return None
