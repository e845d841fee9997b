"""Cues are cut, collected from samples of MP4, and found again in a master playlist."""

from __future__ import annotations

import pytest

from domain.asset.values import CaptionKind
from workers.media.captions.cues import Cue, UnreadableCaptions, cut
from workers.media.captions.reading import MOST_BYTES
from workers.media.captions.samples import CaptionSample, read_samples
from workers.media.captions.tracks import TextTrack, in_playlist, listed_tracks

MASTER = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv.m3u8\n"


def box(kind: bytes, body: bytes) -> bytes:
    return (len(body) + 8).to_bytes(4, "big") + kind + body


def boxed(text: str) -> bytes:
    return box(b"vttc", box(b"sttg", b"line:10%") + box(b"payl", text.encode()))


def test_a_part_has_the_cues_that_are_shown_in_it() -> None:
    cues = [Cue(0, 1000, "before"), Cue(900, 2500, "over the begin"), Cue(3000, 3500, "within"), Cue(3900, 9000, "over the end")]
    assert cut(cues, begin=1.0, end=4.0, to=10.0) == [
        Cue(10_000, 11_500, "over the begin"),
        Cue(12_000, 12_500, "within"),
        Cue(12_900, 13_000, "over the end"),
    ]


def test_what_nobody_can_see_is_left_out() -> None:
    assert cut([Cue(0, 1010, "ten milliseconds"), Cue(2000, 2010, "as short as it was")], begin=1.0, end=4.0) == [
        Cue(1000, 1010, "as short as it was")
    ]


def test_cues_over_the_border_of_samples_are_one() -> None:
    samples = [
        CaptionSample(0, 1, box(b"vtte", b"")),
        CaptionSample(1, 1, boxed("<b>Hallo</b> <script>x</script>")),
        CaptionSample(2, 0.5, boxed("<b>Hallo</b> <script>x</script>")),
        CaptionSample(3, 1, boxed("Zwei")),
    ]
    assert list(read_samples(samples).cues) == [Cue(1000, 2500, "<b>Hallo</b>", "line:10%"), Cue(3000, 4000, "Zwei", "line:10%")]


def test_cues_of_the_same_time_stay_in_the_order_of_the_samples() -> None:
    samples = [CaptionSample(1, 1, boxed("- Zoe?") + boxed("- Adam!")), CaptionSample(2, 1, boxed("- Zoe?"))]
    assert [(cue.begin, cue.end, cue.text) for cue in read_samples(samples).cues] == [
        (1000, 3000, "- Zoe?"),
        (1000, 2000, "- Adam!"),
    ]


@pytest.mark.parametrize(
    "data", [b"\0\0\0\x08vttc", b"\xff\xff\xff\xffvttcx", b"<tt><a/>", b"\0" * 40, box(b"vttc", b"\0\0\0\x01payl")]
)
def test_samples_that_cannot_be_read_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableCaptions):
        read_samples([CaptionSample(0, 1, data)])


def test_a_track_without_end_is_refused() -> None:
    with pytest.raises(UnreadableCaptions, match="more than 5 MiB"):
        read_samples(CaptionSample(number, 1, boxed(f"{number} {'A' * 1000}")) for number in range(MOST_BYTES // 1000))


def test_tracks_are_found_again_where_they_were_put() -> None:
    tracks = [
        TextTrack(name="English", language="en-GB", kind=kind, stem=f"en-{kind.value}", folder="subtitles") for kind in CaptionKind
    ]
    listed = listed_tracks(in_playlist(MASTER, tracks, folder="subtitles"))
    assert [(entry.language, entry.kind, entry.file) for entry in listed] == [
        (track.language, track.kind, track.file) for track in tracks
    ]


@pytest.mark.parametrize(
    "uri", ["../../secret/a.m3u8", "../captions/../../a.m3u8", "https://host/a.m3u8", "a.m3u8", "../captions/a.vtt"]
)
def test_tracks_elsewhere_are_left_out(uri: str) -> None:
    assert listed_tracks(f'#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",LANGUAGE="en",NAME="x",URI="{uri}"\n') == []
