"""The parameters `in` and `out` of GET /event/{id}. See docs/reference/playback.md."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.kernel.errors import Malformed
from domain.kernel.stream_time import RequestedStreamTime, StreamPoint, requested_stream_time, stream_point

MOMENT = datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_an_absent_point_has_no_value() -> None:
    assert requested_stream_time(None, None) == RequestedStreamTime()
    assert RequestedStreamTime().in_point == StreamPoint(None, None, "00:00:00", False, False)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2031-01-02T03:04:05.000Z", MOMENT),
        ("2031-01-02T03:04:05Z", MOMENT),
        ("2031-01-02t03:04:05z", MOMENT),
        ("2031-01-02T03:04:05", MOMENT),
        ("2031-01-02T05:34:05+02:30", MOMENT),
        ("2031-01-02T05:34:05+0230", MOMENT),
        ("2031-01-01T22:04:05-05", MOMENT),
        ("20310102T030405Z", MOMENT),
        ("2031-01-02T03:04", MOMENT.replace(second=0)),
        ("2031-01-02", datetime(2031, 1, 2, tzinfo=UTC)),
        ("2031-01-02T03:04:05.6Z", MOMENT.replace(microsecond=600_000)),
        ("2031-01-02T03:04:05,678Z", MOMENT.replace(microsecond=678_000)),
        ("2031-01-02T03:04:05.6789999Z", MOMENT.replace(microsecond=678_000)),
        ("2032-02-29", datetime(2032, 2, 29, tzinfo=UTC)),
    ],
)
def test_a_date_time_is_absolute_and_kept_as_sent(text: str, moment: datetime) -> None:
    assert stream_point(text, field="in") == StreamPoint(text, moment, "00:00:00", True, True)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("00:01:30", "00:01:30"),
        ("00:00:00", "00:00:00"),
        ("99:59:59", "99:59:59"),
        ("00:01:30.5", "00:01:30.500"),
        ("00:01:30.050", "00:01:30.050"),
        ("00:01:30.000", "00:01:30"),
    ],
)
def test_a_time_is_a_distance_from_the_start(text: str, span: str) -> None:
    assert stream_point(text, field="in") == StreamPoint(text, None, span, True, False)


REFUSED = [
    *("", " ", "90", "90.5", "-1", "1e3", "20310102", "1924992245", "now", "null", "P1D", "PT90S"),
    *("01:30", "1:02:03", "00:60:00", "00:00:60", "-00:00:01", "00:01:30.", "00:01:30.1234", "00:01:30,5", " 00:01:30"),
    *("00:01:30\n", "٠٠:٠١:٣٠", "٢٠٣١-٠١-٠٢", "2031-13-01", "2031-02-30", "2031-01-02T24:01:00", "2031-01-02T03:04:61Z"),
    *("2031-01-02 03:04:05", "2031-01-02T03:04:05 02:00", "2031-01-02T03:04:05+25:00", "2031-01-02Z", "2031-W01-1"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2031-01-02T03", "2031-01-02T03:04:05Z; drop", "💥"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(Malformed) as refusal:
        requested_stream_time(text, None)
    assert [error.field for error in refusal.value.errors] == ["in"]


def test_both_faults_are_told_at_once() -> None:
    with pytest.raises(Malformed) as refusal:
        requested_stream_time("90", "soon")
    assert [error.field for error in refusal.value.errors] == ["in", "out"]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("00:01:30", "00:01:29"),
        ("00:01:30.001", "00:01:30"),
        ("2031-01-02", "2031-01-01"),
        ("2031-01-02T03:00:00Z", "2031-01-02T03:59:00+01:00"),
    ],
)
def test_an_end_before_the_start_is_refused_naming_out(start: str, end: str) -> None:
    with pytest.raises(Malformed) as refusal:
        requested_stream_time(start, end)
    assert [error.field for error in refusal.value.errors] == ["out"]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("00:01:30", "00:01:30"),
        ("00:01:30", "00:01:30.001"),
        ("2031-01-02", "2031-01-02T00:00:00Z"),
        ("2031-01-02", "00:00:01"),
        ("00:00:01", "1999-01-01"),
        (None, "00:00:00"),
        ("00:00:01", None),
    ],
)
def test_equal_open_and_incomparable_ends_are_accepted(start: str | None, end: str | None) -> None:
    wanted = requested_stream_time(start, end)
    assert (wanted.in_point.original, wanted.out_point.original) == (start, end)


@given(st.text(max_size=40) | st.from_regex(r"[0-9TZ:.,+-]{1,30}", fullmatch=True))
def test_every_text_is_read_or_refused(text: str) -> None:
    try:
        point = stream_point(text, field="in")
    except Malformed:
        return
    assert point.original == text
    assert point.is_absolute == (point.date_time is not None)


@given(st.datetimes(timezones=st.timezones()))
def test_every_moment_survives_its_text(moment: datetime) -> None:
    offset = moment.utcoffset()
    if offset is None or offset.seconds % 60 or not 2 < moment.year < 9998:
        return
    point = stream_point(moment.isoformat(), field="in")
    assert point.date_time == moment.astimezone(UTC).replace(microsecond=moment.microsecond // 1000 * 1000)
