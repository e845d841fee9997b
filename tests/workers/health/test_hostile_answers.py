"""Answers of servers of publishing points give a state, a time, or a reason why there is none, in a time that their size bounds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.bounds import bounded
from tests.properties.test_origin_parsers import spoilt
from tests.workers.health.point_server import smil
from workers.adapters.point_status.state_pages import smil_page, status_page
from workers.adapters.point_status.strategies import LARGEST_MANIFEST, LARGEST_PAGE
from workers.media.errors import Unreadable
from workers.media.live_edge import newest_in_mpd, newest_in_playlist, variant
from workers.ports.points import PointSilent

PLAYLIST = b"#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2031-01-02T12:00:00Z\n#EXTINF:2.0,\na.ts\n"
TIMELINE = b'<SegmentTimeline><S t="1" d="2" r="3"/></SegmentTimeline>'
MPD = (
    b'<MPD type="dynamic" availabilityStartTime="2031-01-02T12:00:00Z"><Period start="PT0S">'
    b'<SegmentTemplate timescale="1" presentationTimeOffset="1">' + TIMELINE + b"</SegmentTemplate></Period></MPD>"
)
PAGES = (smil("started", "2031-01-02T12:00:00Z").encode(), b'{"state":"on","lastUpdated":"12"}', b"state=on lastUpdated=3")
HOSTILE = [
    *(piece * (LARGEST_PAGE // len(piece)) for piece in (b"state ", b'"state"', b"state=\t", b'{"a":')),
    b"state" + b" " * LARGEST_PAGE + b"x",
    b'{"state":' + b"9" * 100_000 + b"}",
    b"<smil>" + b"<a>" * (LARGEST_PAGE // 3),
    b"<smil " + b" ".join(b'xmlns:a%d="u"' % number for number in range(15_000)) + b"/>",
    b'<!DOCTYPE l [<!ENTITY a "aaaa">'
    + b"".join(b'<!ENTITY a%d "%s">' % (number + 1, b"&a%d;" % number * 10) for number in range(20))
    + b']><smil a="&a20;"/>',
    *(
        PLAYLIST + piece * (LARGEST_MANIFEST // len(piece))
        for piece in (b"#EXTINF:\n", b"#EXTINF:999999999\n", b"#EXTINF:" + b"\n" * 999)
    ),
    MPD.replace(b"<Period", b"<Period/>" * 100_000 + b"<Period"),
    MPD.replace(b"<SegmentTemplate", b"<SegmentTemplate/>" * 50_000 + b"<SegmentTemplate"),
    MPD.replace(b"<S ", b'<S d="999999999999999999" r="999999999999999999"/>' * 20_000 + b"<S "),
    MPD.replace(b"2031", b"9999").replace(b'd="2"', b'd="99999999"'),
]


def read(body: bytes) -> None:
    for page in (smil_page, status_page):
        with suppress(PointSilent, Unreadable):
            result = page(body)
            assert result.updated.isprintable()
            assert result.last_updated is None or result.last_updated.year >= 1970
    for manifest in (newest_in_mpd, newest_in_playlist):
        with suppress(PointSilent, Unreadable):
            manifest(body)
    with suppress(PointSilent, Unreadable):
        variant(body, "http://origin.test/master.m3u8")


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[-30:]))
def test_an_answer_that_is_to_waste_time_and_memory_wastes_little(body: bytes) -> None:
    bounded(lambda: read(body))


def test_a_manifest_of_many_periods_is_not_read() -> None:
    with pytest.raises(Unreadable, match="2000 periods"):
        newest_in_mpd(MPD.replace(b"<Period", b"<Period/>" * 2_000 + b"<Period"))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60) | st.sampled_from([*PAGES, PLAYLIST, MPD]).flatmap(spoilt))
def test_any_answer_is_a_state_or_none(body: bytes) -> None:
    read(body)


@pytest.mark.parametrize("message", [b"state=on lastUpdated=\0001", rb'{"state":"on","lastUpdated":"\u0000\ud8001"}'])
def test_a_time_is_text_that_can_be_stored(message: bytes) -> None:
    assert status_page(message).updated == "1"
