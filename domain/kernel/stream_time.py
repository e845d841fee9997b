"""The start and end of playback: the parameters `in` and `out` of `GET /event/{id}`. See docs/reference/playback.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from domain.kernel.clock import to_milliseconds
from domain.kernel.errors import FieldError, Malformed

NO_TIME: Final = "00:00:00"

_TIME = re.compile(r"(?P<clock>\d\d:[0-5]\d:[0-5]\d)(?:\.(?P<fraction>\d{1,3}))?", re.ASCII)
_OFFSET = r"(?:Z|[+-]\d\d(?::?\d\d)?)?"
_EXTENDED = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?" + _OFFSET + ")?"
_BASIC = r"\d{8}T\d{4}(?:\d\d(?:[.,]\d+)?)?" + _OFFSET  # never without its `T`: eight digits alone are a number
_DATE_TIME = re.compile(f"{_EXTENDED}|{_BASIC}", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StreamPoint:
    """A point of a stream: a time in UTC (`date_time`) or a time from the start of the stream (`time_span`).

    `time_span` is `hh:mm:ss`, with `.fff` only if there are milliseconds.
    """

    original: str | None = None
    date_time: datetime | None = None
    time_span: str = NO_TIME
    has_value: bool = False
    is_absolute: bool = False

    def is_before(self, other: StreamPoint) -> bool:
        """Return True if this point is before the other. Points of different kinds cannot be compared; the result is then False.

        Spans have a fixed width before the fraction, so their texts sort like the times.
        """
        if self.date_time is not None and other.date_time is not None:
            return self.date_time < other.date_time
        return self.is_span and other.is_span and self.time_span < other.time_span

    @property
    def seconds(self) -> float:
        """The time from the start of the stream, in seconds; 0 for a time in UTC."""
        hours, minutes, seconds = self.time_span.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds)

    @property
    def is_span(self) -> bool:
        return self.has_value and not self.is_absolute


@dataclass(frozen=True, slots=True)
class RequestedStreamTime:
    """The member `requestedStreamTime` of the Video object."""

    in_point: StreamPoint = StreamPoint()
    out_point: StreamPoint = StreamPoint()


def requested_stream_time(start: str | None, end: str | None) -> RequestedStreamTime:
    """Parse `in` and `out`. Raises `Malformed` with the errors of both."""
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
    """Parse one value. None means that the parameter is absent; an empty text is malformed."""
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
    """Return the time in UTC, truncated to milliseconds; None if the text is not a valid time. A text without an offset is taken as
    UTC, and a date as midnight."""
    if not _DATE_TIME.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text.upper())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # such as February 30, or a time that is outside the years 1 to 9999 in UTC
        return None
    return to_milliseconds(moment)
