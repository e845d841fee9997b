"""HLS playlists as other programs write them: RFC 8216. Hostile ones are in test_hostile_playlists and test_origin_parsers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.bounds import bounded
from workers.media.errors import Unreadable
from workers.media.hls import UNKNOWN_DURATION, HlsPlaylist, InitSection, read, text_of
from workers.media.resources import ResourceRange


def media(*lines: str, newest: int | None = None) -> HlsPlaylist:
    return read("\n".join(["#EXTM3U", *lines]), most=1_000, newest=newest)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", " \r\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\ufeff\n\n"])
def test_lines_end_in_any_way_and_a_mark_of_utf_8_is_no_text(begin: str, end: str) -> None:
    text = end.join(
        ["#EXTM3U", "#EXT-X-TARGETDURATION:6", "# a comment, #EXT-X-ENDLIST", "#EXTINF:4.5,", "a.ts", "#EXT-X-ENDLIST", ""]
    )
    parsed = read(text_of((begin + text).encode()), most=10)
    assert (parsed.target, parsed.ended, [(entry.uri, entry.lasts) for entry in parsed.entries]) == (6.0, True, [("a.ts", 4.5)])


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_a_title_may_have_signs_that_unicode_ends_lines_with(sign: str) -> None:
    playlist = media(f"#EXTINF:4,One{sign}Two", "a.ts", f'#EXT-X-MEDIA:TYPE=AUDIO,NAME="a{sign}b",URI="x"')
    assert [entry.uri for entry in playlist.entries] == ["a.ts"]
    assert [rendition.name for rendition in playlist.renditions] == [f"a{sign}b"]


def test_a_range_goes_on_where_the_one_before_of_the_same_file_ended() -> None:
    playlist = media(
        *('#EXT-X-MAP:URI="a.mp4",BYTERANGE="700@0"', "#EXTINF:4,", "#EXT-X-BYTERANGE:100@700", "a.mp4"),
        *("#EXTINF:4,", "#EXT-X-BYTERANGE:50", "a.mp4", "#EXT-X-BYTERANGE: 30", "#EXTINF:4,", "a.mp4"),
        *('#EXT-X-MAP:URI="b.mp4"', "#EXT-X-BYTERANGE:9@5", "#EXTINF:4,", "b.mp4", "#EXTINF:4,", "whole.mp4"),
    )
    assert [entry.part for entry in playlist.entries] == [
        ResourceRange(700, 100),
        ResourceRange(800, 50),
        ResourceRange(850, 30),
        ResourceRange(5, 9),
        None,
    ]
    assert [entry.init for entry in playlist.entries] == [
        *[InitSection("a.mp4", ResourceRange(0, 700))] * 3,
        *[InitSection("b.mp4")] * 2,
    ]
    for lines in (
        ("#EXT-X-BYTERANGE:5", "a"),
        ("#EXT-X-BYTERANGE:5@0", "a", "#EXT-X-BYTERANGE:5", "b"),
        ("#EXT-X-BYTERANGE:-5@0", "a"),
    ):
        with pytest.raises(Unreadable):
            media(*lines)
    for given_range in ("", "5@", "@5", "-1@0", "5@0x1", "9" * 30):
        with pytest.raises(Unreadable):
            media(f'#EXT-X-MAP:URI="a",BYTERANGE="{given_range}"')


def test_attributes_may_have_commas_and_signs_in_quotes_and_tags_between_a_rendition_and_its_address() -> None:
    playlist = media(
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a,b=c",NAME="One, two = three",LANGUAGE="de",DEFAULT=YES,URI="s.m3u8?a=1,2"',
        '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="x",FORCED=YES,URI="t.m3u8",CHARACTERISTICS="public.easy-to-read,b"',
        '#EXT-X-STREAM-INF:BANDWIDTH=7,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=640x360,AUDIO="a,b=c"',
        "# a comment",
        "#EXT-X-SOMETHING:NEW",
        "v.m3u8",
    )
    assert playlist.master
    assert [(rendition.group, rendition.name, rendition.uri, rendition.default) for rendition in playlist.renditions[:1]] == [
        ("a,b=c", "One, two = three", "s.m3u8?a=1,2", True)
    ]
    assert (playlist.renditions[1].forced, playlist.renditions[1].characteristics) == (True, "public.easy-to-read,b")
    assert playlist.variants == [("v.m3u8", 7, 640, 360, "avc1.64001f,mp4a.40.2", "a,b=c")]


def test_what_a_segment_is_told_holds_for_it_alone() -> None:
    playlist = media(
        "#EXT-X-MEDIA-SEQUENCE:7",
        *("#EXT-X-DISCONTINUITY", "#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:05Z", "#EXT-X-GAP", "#EXTINF:4,", "a"),
        *("b", "#EXTINF:-1,", "c", "#EXTINF:1e3,", "d", "#EXTINF:.5,", "e", "#EXTINF: 4. ,", "f"),
    )
    assert [entry.sequence for entry in playlist.entries] == [7, 8, 9, 10, 11, 12]
    assert [(entry.breaks, entry.time, entry.absent) for entry in playlist.entries[:2]] == [(True, 5.0, True), (False, None, False)]
    assert [entry.lasts for entry in playlist.entries] == [
        4.0,
        UNKNOWN_DURATION,
        UNKNOWN_DURATION,
        UNKNOWN_DURATION,
        UNKNOWN_DURATION,
        4.0,
    ]


def test_only_the_newest_entries_are_read_and_all_are_counted() -> None:
    lines = [line for number in range(50) for line in (f"#EXTINF:{number}.5,", "#EXT-X-DISCONTINUITY", f"{number}.ts")]
    playlist = media("#EXT-X-MEDIA-SEQUENCE:100", '#EXT-X-MAP:URI="i"', *lines, newest=3)
    assert [(entry.sequence, entry.uri, entry.lasts) for entry in playlist.entries] == [
        (147, "47.ts", 47.5),
        (148, "48.ts", 48.5),
        (149, "49.ts", 49.5),
    ]
    assert playlist.entries[0].init == InitSection("i")


def test_a_playlist_is_encrypted_where_any_key_is() -> None:
    assert not media("#EXT-X-KEY:METHOD=NONE", "a").encrypted
    assert media("#EXT-X-KEY:METHOD=NONE", "a", '#EXT-X-KEY:METHOD=AES-128,URI="METHOD=NONE"', "b").encrypted
    assert media("#EXT-X-KEY", "b").encrypted


HOSTILE = {
    "10 MiB of empty lines": "\n" * 10_000_000,
    "10 MiB in one line": "#EXT-X-MEDIA:" + "A" * 10_000_000,
    "a million attributes": "#EXT-X-STREAM-INF:" + "A=1," * 1_000_000,
    "many lines of attributes": "\n".join(f'#EXT-X-MAP:URI="{number}"' for number in range(400_000)),
    "many keys": "\n".join(f'#EXT-X-KEY:METHOD=NONE,X="{number}"' for number in range(300_000)),
    "many segments": "#EXTINF:1,\na.ts\n" * 300_000,
    "many renditions": "#EXT-X-STREAM-INF:A=1\na\n" * 200_000,
    "a number without an end": "#EXT-X-MEDIA-SEQUENCE:" + "9" * 5_000_000,
    "variables": '#EXT-X-DEFINE:NAME="a",VALUE="{$a}{$a}"\n{$a}',
    "no playlist": "",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_waste_time_or_memory_is_refused(name: str) -> None:
    text = ("" if name == "no playlist" else "#EXTM3U\n") + HOSTILE[name]

    def refused() -> None:
        with pytest.raises(Unreadable):
            read(text, most=100_000)

    bounded(refused)


@given(st.text(max_size=300) | st.text(alphabet='#EXT-INFMAP:=",\n0123456789.@abc', max_size=300), st.none() | st.integers(1, 3))
def test_any_text_is_read_or_refused(text: str, newest: int | None) -> None:
    try:
        parsed = read(f"#EXTM3U\n{text}", most=100, newest=newest)
    except Unreadable:
        return
    assert len(parsed.entries) <= (100 if newest is None else newest)


@pytest.mark.parametrize("body", [b"\xff\xfe#\0E\0", b"#EXTM3U\n\xe4.ts", b"\x1f\x8b"])
def test_other_encodings_are_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        text_of(body)
