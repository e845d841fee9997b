"""Playlists that an origin of somebody else sends to an encoder, a push or a capture: they are read or refused, in time and memory
that their size bounds."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.bounds import bounded
from tests.properties.test_origin_parsers import spoilt
from workers.adapters.encoders.hls_reading import NotRead, best_variant, media_playlist, playlist_of, sounds_in
from workers.job.workflows.capture import dash, hls
from workers.job.workflows.capture.segments import SourceFault
from workers.media import dash as manifests
from workers.media.errors import Unreadable
from workers.media.hls import attributes

URL = "http://origin.test/live/v0.m3u8"
MASTER = b'#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",URI="a.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nv.m3u8\n'
MEDIA = b"""#EXTM3U
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:17
#EXT-X-MAP:URI="v.mp4",BYTERANGE="10@0"
#EXT-X-PROGRAM-DATE-TIME:2031-01-02T12:00:00.000Z
#EXTINF:2.000,
#EXT-X-BYTERANGE:100@10
http://[::1]/a.m4s
"""
REFUSED: dict[str, str] = {
    "capitals": "#EXT-X-STREAM-INF:" + "A" * 2_000_000 + "\nv0.m3u8",
    "capitals in pairs": "#EXT-X-MEDIA:" + "A=" * 1_000_000,
    "capitals in a header": "#EXT-X-MAP:" + "A" * 2_000_000,
    "a long address": "#EXTINF:1,\n" + "a" * 2_000_000,
    "many segments": "a\n" * 1_000_000,
    "a number that is none": "#EXT-X-MEDIA-SEQUENCE:²\na.m4s",
    "a negative number": "#EXT-X-MEDIA-SEQUENCE:-1\na.m4s",
    "a number without an end": "#EXT-X-MEDIA-SEQUENCE:" + "9" * 5_000 + "\na.m4s",
    "an address that is none": "#EXTINF:1,\nhttp://[",
    "a rendition that is none": "#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://[\n",
    "a sound that is none": '#EXT-X-MEDIA:TYPE=AUDIO,URI="http://["',
}


def read_playlist(text: str) -> None:
    playlist = playlist_of(text)
    best_variant(playlist, URL)
    sounds_in(playlist, URL)
    media_playlist(playlist, URL)


@pytest.mark.parametrize("name", REFUSED)
def test_a_playlist_that_cannot_be_read_is_refused_at_once(name: str) -> None:
    def refused() -> None:
        with pytest.raises(NotRead):
            read_playlist(f"#EXTM3U\n{REFUSED[name]}\n")

    bounded(refused)


def test_tags_that_are_not_read_may_be_long_and_numbers_odd() -> None:
    text = f"#EXTM3U\n#EXT-X-DATERANGE:SCTE35-OUT=0x{'F' * 50_000}\n#EXT-X-TARGETDURATION:²\n#EXTINF:nan,\na.m4s"
    playlist = media_playlist(playlist_of(text), URL)
    assert (len(playlist.segments), playlist.target) == (1, 2.0)
    rates = [f"#EXT-X-STREAM-INF:BANDWIDTH={rate}\n{name}.m3u8" for name, rate in (("a", "²"), ("b", 7), ("c", "9" * 5_000))]
    best = best_variant(playlist_of("#EXTM3U\n" + "\n".join(rates)), URL)
    assert best is not None
    assert best.url == "http://origin.test/live/b.m3u8"


@pytest.mark.parametrize(
    "line",
    [
        "#EXT-X-MAP:" + "A" * 8_000_000,
        *(f"#EXT-X-MAP:{(piece * 16_000)[:16_000]}" for piece in ("A", "A=", 'A="', 'A=",', "A=1 ", ' A="x"y,', "\t")),
    ],
    ids=lambda line: f"{len(line)}-{line[11:19]}",
)
def test_a_line_is_read_in_a_time_that_its_length_bounds(line: str) -> None:
    def read() -> None:
        for _ in range(10):
            with suppress(Unreadable):
                attributes(line)

    bounded(read)


def test_attributes_are_read_as_encoders_write_them() -> None:
    line = '#EXT-X-MEDIA:TYPE=AUDIO, NAME="a, b",URI="a=1.m3u8?B=2",no=thing,BROKEN="x"y,DEFAULT=YES ,LAST='
    assert attributes(line) == {"TYPE": "AUDIO", "NAME": "a, b", "URI": "a=1.m3u8?B=2", "DEFAULT": "YES", "LAST": ""}


def test_a_capture_refuses_what_would_hold_it_up() -> None:
    def refused() -> None:
        for text in ("#EXT-X-MAP:" + "A" * 7_000_000, "#EXTINF:1,\n" + "a" * 100_000, "#EXTINF:1e308,\na", "#EXTINF:nan,\na"):
            with pytest.raises(SourceFault):
                hls.parse(f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n{text}".encode(), URL)

    bounded(refused)


@pytest.mark.parametrize(
    ("media", "periods", "why"), [("$Time$.m4s", 1_000, "more than 1000 segments"), ("$Time$" + "a" * 1_000_000, 1, "too long")]
)
def test_a_manifest_lists_so_many_segments_at_most_over_all_periods(
    media: str, periods: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A period of this manifest lists 600 segments in one line."""
    monkeypatch.setattr(manifests, "MOST_ENTRIES", 1_000)
    line = '<SegmentTimeline><S d="1" r="599"/></SegmentTimeline>'
    template = f'<SegmentTemplate media="{media}">{line}</SegmentTemplate>'
    adaptation_set = f'<AdaptationSet contentType="video"><Representation>{template}</Representation></AdaptationSet>'
    period = f'<Period start="PT0S" duration="PT9H">{adaptation_set}</Period>'
    with pytest.raises(SourceFault, match=why):
        dash.parse(f"<MPD>{period * periods}</MPD>".encode(), URL, now=0.0)


@pytest.mark.parametrize("date_time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_of_day_that_durations_cannot_be_added_to_is_none(date_time: str) -> None:
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-PROGRAM-DATE-TIME:{date_time}\n#EXTINF:9,\na.ts"
    parsed = hls.parse(text.encode(), URL)
    assert isinstance(parsed, hls.CapturedPlaylist)
    assert parsed.entries[0].time is None


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60) | spoilt(MEDIA) | spoilt(MASTER))
def test_any_text_is_a_playlist_or_not(data: bytes) -> None:
    with suppress(NotRead):
        read_playlist(data.decode(errors="replace"))
    with suppress(SourceFault):
        hls.parse(data, URL)
