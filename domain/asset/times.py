"""Times of a request: relative to the start of the stream, or date-times if the stream carries timecode."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from domain.kernel.errors import Malformed, Refused
from domain.kernel.stream_time import StreamPoint, stream_point

_LONGEST: Final = timedelta(hours=100)
"""The first time that `hh:mm:ss.fff` cannot express."""


def asked_time(text: str, *, field: str, absolute: bool = True) -> StreamPoint:
    """Parse a time of a request. Raises `Malformed`. Without `absolute` a date-time is refused too."""
    point = stream_point(text, field=field)
    if point.is_absolute and not absolute:
        raise Malformed.at(field, "must be a time hh:mm:ss[.fff] from the start of the stream")
    return point


def check_span(start: StreamPoint, end: StreamPoint, *, field: str) -> None:
    """Check that the end is after the start, for two date-times or two times from the start. A mixed pair can be compared only when
    the start of the stream is known."""
    if start.is_absolute == end.is_absolute and not start.is_before(end):
        raise Malformed.at(field, "must be after the start")


def from_start(point: StreamPoint, start_of_stream: datetime | None) -> timedelta:
    """Return the time relative to the start of the stream. Raises `Refused` for a date-time if the stream carries no timecode, and
    for one before its start."""
    if point.date_time is None:
        hours, minutes, seconds = point.time_span.split(":")
        return timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
    if start_of_stream is None:
        raise Refused("the stream carries no timecode: send times hh:mm:ss[.fff] from its start")
    since = point.date_time - start_of_stream
    if since < timedelta(0):
        raise Refused(f"{point.original} is before the start of the stream")
    if since >= _LONGEST:
        raise Refused(f"{point.original} is past the end of the stream")
    return since


def written(since: timedelta) -> str:
    """Format a duration as `hh:mm:ss.fff`."""
    milliseconds = since // timedelta(milliseconds=1)
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milliseconds:03}"
