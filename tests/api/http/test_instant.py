"""Date-times on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import TypeAdapter, ValidationError

from api.http.response import encode
from api.kernel.wire import Instant, Wire
from domain.kernel.clock import iso

INSTANT: TypeAdapter[datetime] = TypeAdapter(Instant)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2031-01-02T03:04:05.678Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04:05.678999Z", "2031-01-02T03:04:05.678Z"),
        ("2031-01-02T03:04:05.123456789+05:30", "2031-01-01T21:34:05.123Z"),
        ("2031-01-02t03:04:05z", "2031-01-02T03:04:05.000Z"),
        ("2031-01-02 03:04", "2031-01-02T03:04:00.000Z"),
        ("2031-01-02", "2031-01-02T00:00:00.000Z"),
        ("20310102T030405Z", "2031-01-02T03:04:05.000Z"),
        ("2031-01-02T24:00:00Z", "2031-01-03T00:00:00.000Z"),
        ("20310102T24", "2031-01-03T00:00:00.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("2031-01-02T03:04:05-23:59", "2031-01-03T03:03:05.000Z"),
    ],
)
def test_understood(text: str, shown: str) -> None:
    assert iso(INSTANT.validate_python(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1700000000",
        "2031-01-02x03:04",
        "2031-01-02T",
        "2031-13-01",
        "2031-02-29",
        "2031-01-02T24:00:01Z",
        "2031-01-02T25:00Z",
        "2031-01-02T03:04:60Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:59-05:00",
        "9999-12-31T24:00:00Z",
        "10000-01-01T00:00:00Z",
        "2031-01-02T03:04:05+24:00",
        "2031-01-02T03:04:05." + "0" * 10_000,
        1700000000,
        1.5,
        True,
        None,
        [],
    ],
)
def test_refused(text: object) -> None:
    with pytest.raises(ValidationError):
        INSTANT.validate_python(text)


def test_shown_in_utc_with_three_decimals() -> None:
    class Shown(Wire):
        shown_at: Instant
        gone_at: Instant | None = None

    moment = datetime(2031, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    assert encode(Shown(shown_at=moment)) == b'{"shownAt":"2031-01-02T01:00:00.000Z","goneAt":null}'
    assert iso(datetime(31, 1, 2, tzinfo=UTC)) == "0031-01-02T00:00:00.000Z"
