"""The plan of a capture, and the segments of playlists that move on: without a process, and without an origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workers.job.streamed import BEGAN, playlist
from workers.job.workflows.capture import hls
from workers.job.workflows.capture.hls_track import HlsTrack
from workers.job.workflows.capture.plan import TOLERANCE, CaptureGap, CapturePlan, Used, plan
from workers.job.workflows.capture.segments import CapturedSegment, MediaResource, SourceFault

URL = "http://origin.example/live/i.m3u8"
NOON = BEGAN.timestamp()


def line(source: int, *, at: Sequence[float], lasts: float = 2.0) -> list[CapturedSegment]:
    return [CapturedSegment(source, "main", 0, number, MediaResource(f"{number}"), begin, lasts) for number, begin in enumerate(at)]


def spans(recording_plan: CapturePlan) -> list[tuple[int | None, float, float]]:
    return [
        (item.segment.source, item.segment.at, item.until) if isinstance(item, Used) else (None, item.begin, item.end)
        for item in recording_plan.items
    ]


# -- plans ----------------------------------------------------------------------------------------------------------------


def test_a_source_is_used_until_it_lacks_something() -> None:
    first, second = line(1, at=[0, 2, 6, 8]), line(2, at=[0, 2, 4, 6])
    recording_plan = plan({1: first, 2: second}, start=1, end=9)
    assert spans(recording_plan) == [(1, 0, 2), (1, 2, 4), (2, 4, 6), (2, 6, 8), (1, 8, 10)]
    assert recording_plan.complete


def test_a_segment_that_begins_earlier_ends_the_one_before() -> None:
    recording_plan = plan({1: line(1, at=[0, 2]), 2: line(2, at=[1, 3, 5])}, start=0, end=6)
    assert spans(recording_plan) == [(1, 0, 2), (1, 2, 3), (2, 3, 5), (2, 5, 7)]


def test_what_nobody_has_is_a_gap() -> None:
    assert spans(plan({1: line(1, at=[4])}, start=1, end=9)) == [(None, 1, 4), (1, 4, 6), (None, 6, 9)]
    assert spans(plan({}, start=1, end=9)) == [(None, 1, 9)]


def test_a_source_that_may_go_on_is_waited_for() -> None:
    """Another source is not used until then, although it is ahead."""
    sources = {1: line(1, at=[0, 2]), 2: line(2, at=[0, 2, 4, 6])}
    waits = plan(sources, start=0, end=8, waiting={1, 2})
    assert (spans(waits), waits.complete) == ([(1, 0, 2), (1, 2, 4)], False)
    assert [source for source, _, _ in spans(plan(sources, start=0, end=8, waiting={2}))] == [1, 1, 2, 2]


def test_a_gap_is_not_decided_while_a_source_may_fill_it() -> None:
    sources = {1: line(1, at=[0, 6]), 2: line(2, at=[0])}
    assert spans(plan(sources, start=0, end=8, waiting={2})) == [(1, 0, 2)]
    assert (None, 2, 6) in spans(plan(sources, start=0, end=8))


def test_a_segment_that_cannot_be_had_is_not_used() -> None:
    sources = {1: line(1, at=[0, 2]), 2: line(2, at=[0, 2])}
    assert spans(plan(sources, start=0, end=4, unusable={"1-main-0-1"})) == [(1, 0, 2), (2, 2, 4)]


def test_the_segment_after_the_end_is_the_tail() -> None:
    segments = line(1, at=[0, 2, 4])
    recording_plan = plan({1: segments}, start=0, end=4)
    assert recording_plan.tail == segments[2]
    assert plan({1: [*segments[:2], replace(segments[2], breaks=True)]}, start=0, end=4).tail is None


@given(
    st.lists(st.lists(st.tuples(st.just(0.0) | st.floats(0.5, 9), st.floats(0.2, 5)), max_size=8), max_size=3),
    st.floats(0, 20),
    st.floats(0.5, 20),
)
def test_a_plan_covers_its_time_in_order(sources: list[list[tuple[float, float]]], start: float, lasts: float) -> None:
    """The property holds for any list of sources, with pauses and durations of segments: every moment is in a segment or a gap, and
    a gap is a span for which no source has a segment."""
    listed: dict[int, list[CapturedSegment]] = {}
    for source, segments in enumerate(sources, 1):
        cursor = 0.0
        for number, (pause, length) in enumerate(segments):
            listed.setdefault(source, []).append(
                CapturedSegment(source, "main", 0, number, MediaResource(""), cursor + pause, length)
            )
            cursor += pause + length
    recording_plan = plan(listed, start=start, end=start + lasts)
    assert recording_plan.complete
    cursor = start
    for item in recording_plan.items:
        begin, end = (item.begin, item.end) if isinstance(item, CaptureGap) else (item.segment.at, item.segment.end)
        rounded = item.segment.lasts if isinstance(item, Used) else 0.0
        assert begin <= cursor + max(TOLERANCE, rounded / 2)
        cursor = max(cursor, end)
    assert cursor >= start + lasts - 0.01
    for gap in recording_plan.gaps:
        has = [min(segment.end, gap.end) - max(segment.at, gap.begin) for line in listed.values() for segment in line]
        assert max([0.0, *has]) <= 2 * TOLERANCE


# -- HLS ------------------------------------------------------------------------------------------------------------------


def update(track: HlsTrack, body: bytes) -> bool:
    parsed = hls.parse(body, URL)
    assert isinstance(parsed, hls.CapturedPlaylist)
    return track.update(parsed)


def test_a_program_date_time_dates_the_segments_around_it() -> None:
    track = HlsTrack(1, "main")
    update(track, playlist([0, 1, 2, 3], began=None, tags={2: f"#EXT-X-PROGRAM-DATE-TIME:{BEGAN.isoformat()}"}))
    assert track.clocked
    assert [segment.at - NOON for segment in track.segments] == [-2, -1, 0, 1]


def test_segments_that_were_missed_leave_their_time() -> None:
    track = HlsTrack(1, "main")
    assert update(track, playlist([0, 1], began=None))
    assert not update(track, playlist([0, 1], began=None))
    assert update(track, playlist([5, 6], began=None))
    assert [segment.at for segment in track.segments] == [0, 1, 5, 6]
    assert not track.segments[2].follows(track.segments[1])


@pytest.mark.parametrize(("jump", "back"), [(3600.0, 0.0), (-3600.0, 0.0), (-1800.0, 1800.0), (-2.5, 2.5), (3601.0, -3601.0)])
def test_time_is_counted_on_where_the_clock_of_a_playlist_jumps(jump: float, back: float) -> None:
    """The clock jumps within a playlist, between two, and in a run that continues an earlier one. `back`: it is corrected later."""

    def dated(numbers: range) -> bytes:
        def clock(number: int) -> float:
            return number + (jump if number >= 4 else 0.0) + (back if number >= 7 else 0.0)

        dates = [f"#EXT-X-PROGRAM-DATE-TIME:{(BEGAN + timedelta(seconds=clock(number))).isoformat()}" for number in numbers]
        return playlist(numbers, began=None, tags=dict(zip(numbers, dates, strict=True)))

    whole, live, later = HlsTrack(1, "main"), HlsTrack(1, "main"), HlsTrack(1, "main")
    update(whole, dated(range(10)))
    for first in range(7):
        update(live, dated(range(first, first + 4)))
    update(later, dated(range(6)))
    later.restore(later.segments, clocked=True)
    update(later, dated(range(5, 10)))
    for track in (whole, live, later):
        assert [segment.at - NOON for segment in track.segments] == pytest.approx(range(10), abs=0.001)
    assert [round(jump.seconds, 1) for jump in whole.jumps] == [jump, *([back] if back else [])]
    assert len(live.jumps) == len(whole.jumps)


def test_an_outage_is_no_jump_of_the_clock() -> None:
    """The dates continue later, and dates after a discontinuity do too."""
    for tag, jump in (("", 600.0), ("#EXT-X-DISCONTINUITY\n", 3600.0)):
        track = HlsTrack(1, "main")
        later = f"{tag}#EXT-X-PROGRAM-DATE-TIME:{(BEGAN + timedelta(seconds=1 + jump)).isoformat()}"
        update(track, playlist([0, 1, 2], began=None, tags={0: f"#EXT-X-PROGRAM-DATE-TIME:{BEGAN.isoformat()}", 1: later}))
        assert [segment.at - NOON for segment in track.segments] == [0, 1 + jump, 2 + jump]
        assert not track.jumps


def test_a_track_goes_on_from_what_an_earlier_run_knew() -> None:
    """The earlier run did not download one of the segments."""
    before, after = HlsTrack(1, "main"), HlsTrack(1, "main")
    update(before, playlist([0, 1, 2]))
    after.restore([before.segments[0], before.segments[2]], clocked=True)
    update(after, playlist([1, 2, 3]))
    assert [(segment.sequence, segment.at - NOON) for segment in after.segments] == [(0, 0), (1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("#EXTINF:-1,\na", "not a number of seconds"),
        ("#EXTINF:1e3,\na", "not a number of seconds"),
        ("#EXTINF:601,\na", "A duration of the playlist"),
        ("a", "has no duration"),
        ("#EXT-X-BYTERANGE:5\n#EXTINF:1,\na", "does not say where it begins"),
        ("#EXT-X-BYTERANGE:x\n#EXTINF:1,\na", "byte range in it cannot be read"),
        ("#EXT-X-MAP:BYTERANGE=1", "names no file"),
        ('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"\n#EXTINF:1,\na', "are encrypted"),
        ('#EXT-X-DEFINE:NAME="a",VALUE="b"\n#EXTINF:1,\n{$a}', "has variables"),
        ("", "neither a target duration nor a segment"),
        ("#EXT-X-STREAM-INF:BANDWIDTH=1", "lists no rendition"),
        ("\udcff", "not text in UTF-8"),
    ],
)
def test_a_playlist_that_would_be_captured_wrongly_is_refused(lines: str, reason: str) -> None:
    with pytest.raises(SourceFault, match=reason):
        hls.parse(f"#EXTM3U\n{lines}\n".encode(errors="surrogateescape"), URL)


def test_a_url_that_cannot_be_read_is_refused() -> None:
    parsed = hls.parse(b"#EXTM3U\n#EXTINF:1,\nhttp://[x/a.ts\n", URL)
    assert isinstance(parsed, hls.CapturedPlaylist)
    with pytest.raises(SourceFault, match="URL of the playlist"):
        HlsTrack(1, "main").update(parsed)


@given(st.binary(max_size=300) | st.text(alphabet='#EXT-INFMAP:=",\n0123456789.@abc', max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for text in (body, b"#EXTM3U\n" + body):
        try:
            parsed = hls.parse(text, URL)
            if isinstance(parsed, hls.CapturedPlaylist):
                HlsTrack(1, "main").update(parsed)
        except SourceFault:
            pass
