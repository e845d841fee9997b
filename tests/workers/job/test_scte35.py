"""Splices in their binary form, read by another implementation (threefive), and as players find them in playlists and manifests."""

from __future__ import annotations

from base64 import b64decode
from re import findall
from typing import Any
from xml.etree import ElementTree

import pytest
import threefive
from hypothesis import given
from hypothesis import strategies as st

from workers.job.context import StepFailed
from workers.job.workflows.vod.breaks import SCHEME, Break, cue_flags, cues, in_manifest, in_playlist
from workers.media.scte35 import Splice, crc32

WRAP = 2**33 / 90_000
INSERTED = Break(event=1, at=6.0, until=6.0, shift=0.0, duration=30.0)
REPLACED = Break(event=2, at=8.0, until=10.0, shift=30.0, duration=2.0)
MEDIA = "#EXTM3U\n#EXT-X-MAP:URI=v.mp4\n{}#EXT-X-ENDLIST\n"
CUE = "#EXT-X-PLACEMENT-OPPORTUNITY\n"


def read(section: bytes) -> Any:
    cue = threefive.Cue(section)
    assert cue.decode()
    return cue


@pytest.mark.parametrize(
    ("splice", "section"),
    [
        (Splice(1, True, 9.24, 0.0, 30.0), "FC302500000000000000FFF01405000000017FEFFE000CB0707E002932E00001000000004D86F955"),
        (Splice(1, False, 39.24, 30.0), "FC30200001FFD6CD2000FFF00F05000000017F4FFE0035E3500001000000008FC52F46"),
    ],
)
def test_a_splice_has_a_golden_form(splice: Splice, section: str) -> None:
    assert splice.section().hex().upper() == section
    assert crc32(splice.section()) == 0, "of a section with its own CRC"


def test_a_broken_section_is_noticed() -> None:
    section = bytearray(Splice(7, True, 12.5).section())
    section[17] ^= 1
    assert crc32(bytes(section)) != 0


@given(
    event=st.integers(0, 2**32 - 1),
    out=st.booleans(),
    at=st.floats(0, WRAP - 1),
    shift=st.floats(0, 10_000),
    duration=st.none() | st.floats(0, 90_000),
)
def test_another_implementation_reads_what_was_written(
    event: int, out: bool, at: float, shift: float, duration: float | None
) -> None:
    cue = read(Splice(event, out, at, shift, duration).section())
    command = cue.command
    assert (command.splice_event_id, command.out_of_network_indicator) == (event, out)
    assert command.pts_time == pytest.approx(at, abs=1e-5)
    assert command.break_duration == (None if duration is None else pytest.approx(duration, abs=1e-5))
    apart = (command.pts_time + cue.info_section.pts_adjustment - (at - shift)) % WRAP
    assert min(apart, WRAP - apart) < 1e-4, "in the media it is earlier by what was inserted"
    assert not command.splice_event_cancel_indicator
    assert not command.break_auto_return


def test_a_playlist_tells_what_is_inserted_and_what_is_replaced() -> None:
    """Dates after an insertion are later by its duration, those after a replacement are not."""
    segments = f"#EXTINF:6.000,\nv.mp4\n{CUE}#EXTINF:2.000,\nv.mp4\n{CUE}#EXTINF:2.000,\nv.mp4\n{CUE}#EXTINF:2.000,\nv.mp4\n"
    lines = in_playlist(MEDIA.format(segments), [INSERTED, REPLACED], duration=12.0).splitlines()
    tags = [line.partition(",SCTE35")[0] for line in lines if line.startswith(("#EXTINF", "#EXT-X-CUE", "#EXT-X-D", "#EXT-X-PROG"))]
    first = 'ID="1",START-DATE="1970-01-01T00:00:06.000Z"'
    second = 'ID="2",START-DATE="1970-01-01T00:00:38.000Z"'
    assert tags == [
        "#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:00.000Z",
        "#EXTINF:6.000,",
        f"#EXT-X-DATERANGE:{first},PLANNED-DURATION=30.000",
        "#EXT-X-CUE-OUT:30.000",
        f'#EXT-X-DATERANGE:{first},END-DATE="1970-01-01T00:00:36.000Z",DURATION=30.000',
        "#EXT-X-CUE-IN",
        "#EXT-X-DISCONTINUITY",
        "#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:36.000Z",
        "#EXTINF:2.000,",
        f"#EXT-X-DATERANGE:{second},PLANNED-DURATION=2.000",
        "#EXT-X-CUE-OUT:2.000",
        "#EXTINF:2.000,",
        f'#EXT-X-DATERANGE:{second},END-DATE="1970-01-01T00:00:40.000Z",DURATION=2.000',
        "#EXT-X-CUE-IN",
        "#EXTINF:2.000,",
    ]
    codes = [read(bytes.fromhex(code)) for code in findall(r"SCTE35-(?:OUT|IN)=0x(\w+)", "\n".join(lines))]
    assert [(code.command.splice_event_id, code.command.out_of_network_indicator) for code in codes] == [
        (1, True),
        (1, False),
        (2, True),
        (2, False),
    ]
    assert [code.command.pts_time for code in codes] == [6.0, 36.0, 38.0, 40.0]
    media = [(code.command.pts_time + code.info_section.pts_adjustment) % WRAP for code in codes]
    assert media == pytest.approx([6.0, 6.0, 8.0, 10.0], abs=1e-4)


def test_a_break_may_be_before_all_and_after_all() -> None:
    first, last = Break(1, 0.0, 0.0, 0.0, 10.0), Break(2, 4.0, 4.0, 10.0, 5.0)
    assert cue_flags([first, last], duration=4.0) == ()
    lines = in_playlist(MEDIA.format("#EXTINF:4.000,\nv.mp4\n"), [first, last], duration=4.0).splitlines()
    dates = [line for line in lines if line.startswith("#EXT-X-PROGRAM-DATE-TIME")]
    assert dates == ["#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:10.000Z"]
    assert "#EXT-X-DISCONTINUITY" not in lines
    assert lines.index("v.mp4") < lines.index("#EXT-X-CUE-OUT:5.000") < lines.index("#EXT-X-ENDLIST")


def test_cues_that_the_packager_left_out_are_noticed() -> None:
    assert cues([INSERTED, REPLACED], duration=12.0) == [6.0, 8.0, 10.0]
    with pytest.raises(StepFailed, match="begin a segment"):
        in_playlist(MEDIA.format(CUE), [INSERTED, REPLACED], duration=12.0)


def test_a_manifest_has_one_period_with_the_events() -> None:
    track = '<AdaptationSet><Representation id="0" bandwidth="{}"><BaseURL>v.mp4</BaseURL></Representation></AdaptationSet>'
    periods = "".join(f'<Period id="{n}" duration="PT6S">{track.format(rate)}</Period>' for n, rate in enumerate((5, 9, 7)))
    mpd = f'<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT9S">{periods}</MPD>'
    made = ElementTree.fromstring(in_manifest(mpd.encode(), [INSERTED, REPLACED], duration=12.0))
    name = "{urn:mpeg:dash:schema:mpd:2011}"
    [period] = made.findall(f"{name}Period")
    assert (made.get("mediaPresentationDuration"), period.get("duration")) == ("PT12.0S", None)
    assert [element.get("bandwidth") for element in period.iter(f"{name}Representation")] == ["9"]
    stream = period[0]
    assert (stream.get("schemeIdUri"), stream.get("timescale")) == (SCHEME, "90000")
    events = [(int(element.get("presentationTime", "")) / 90_000, element.get("duration")) for element in stream]
    assert events == [(6.0, None), (6.0, None), (8.0, "180000"), (10.0, None)]
    codes = [read(b64decode(element.text or "")) for element in stream.iter("{http://www.scte.org/schemas/35/2016}Binary")]
    assert [code.command.splice_event_id for code in codes] == [1, 1, 2, 2]
