"""Where a caller wants a stream to begin and to end: the `in` and `out` of `GET /event/{id}`.

Document 2 shows the answer (Video object, `requestedStreamTime`); decisions.md ("Events", "Everywhere") settles the reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from domain.kernel.errors import FieldError, Malformed

NO_TIME: Final = "00:00:00"

_TIME = re.compile(r"(?P<clock>\d\d:[0-5]\d:[0-5]\d)(?:\.(?P<fraction>\d{1,3}))?", re.ASCII)
_OFFSET = r"(?:Z|[+-]\d\d(?::?\d\d)?)?"
_EXTENDED = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?" + _OFFSET + ")?"
_BASIC = r"\d{8}T\d{4}(?:\d\d(?:[.,]\d+)?)?" + _OFFSET  # never without its `T`: eight digits alone are a number
_DATE_TIME = re.compile(f"{_EXTENDED}|{_BASIC}", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StreamPoint:
    """One end of the wanted stretch: a moment (`date_time`, UTC), or a distance from the stream's start (`time_span`).

    The members mirror the wire's; `time_span` is `hh:mm:ss`, with `.fff` only when there are milliseconds to keep.
    """

    original: str | None = None
    date_time: datetime | None = None
    time_span: str = NO_TIME
    has_value: bool = False
    is_absolute: bool = False

    def is_before(self, other: StreamPoint) -> bool:
        """Points of different kinds cannot be compared, so neither is before the other. Spans have a fixed width up to their
        fraction, so their texts sort as the times do."""
        if self.date_time is not None and other.date_time is not None:
            return self.date_time < other.date_time
        return self.is_span and other.is_span and self.time_span < other.time_span

    @property
    def is_span(self) -> bool:
        return self.has_value and not self.is_absolute


@dataclass(frozen=True, slots=True)
class RequestedStreamTime:
    """Document 2, Video object: `requestedStreamTime`."""

    in_point: StreamPoint = StreamPoint()
    out_point: StreamPoint = StreamPoint()


def requested_stream_time(start: str | None, end: str | None) -> RequestedStreamTime:
    """Read `in` and `out` as sent; everything wrong with either is told at once."""
    points: dict[str, StreamPoint] = {}
    errors: list[FieldError] = []
    for field, text in (("in", start), ("out", end)):
        try:
            points[field] = stream_point(text, field=field)
        except Malformed as refusal:
            errors.extend(refusal.errors)
    if errors:
        raise Malformed(*errors)
    if points["out"].is_before(points["in"]):
        raise Malformed.at("out", "is before `in`")
    return RequestedStreamTime(points["in"], points["out"])


def stream_point(text: str | None, *, field: str) -> StreamPoint:
    """One value as sent; `None` is an absent one. An empty value is not absent: it is neither a time nor a date-time."""
    if text is None:
        return StreamPoint()
    if time := _TIME.fullmatch(text):
        return StreamPoint(text, time_span=_time_span(time), has_value=True)
    moment = _moment(text)
    if moment is None:
        raise Malformed.at(field, "is neither an ISO 8601 date-time nor a time hh:mm:ss[.fff]")
    return StreamPoint(text, moment, has_value=True, is_absolute=True)


def _time_span(time: re.Match[str]) -> str:
    milliseconds = (time["fraction"] or "").ljust(3, "0")
    return time["clock"] if milliseconds == "000" else f"{time['clock']}.{milliseconds}"


def _moment(text: str) -> datetime | None:
    """UTC, cut to milliseconds. Without an offset it is UTC already; a bare date is midnight. None: no such moment."""
    if not _DATE_TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the 30th of February; an offset that leads out of the years 1 to 9999
        return None
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
