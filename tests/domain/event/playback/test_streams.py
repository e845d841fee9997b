"""The streams of the Video object and their URLs. See docs/reference/playback.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from domain.event.playback import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    StreamPlace,
    StreamProtocol,
    StreamSource,
    current_flow,
    flow_configuration,
    video,
)
from domain.event.values import EventDetails, EventState
from domain.kernel.errors import Malformed
from domain.kernel.stream_time import requested_stream_time
from tests.domain.event.playback.channel_and_flow_given import (
    ARRAYS,
    CHANNEL,
    EVENT_ID,
    FLOW,
    PROFILE_ID,
    live_at,
    play,
    urls,
)

# --- states and arrays


@pytest.mark.parametrize(
    ("state", "filled"),
    [
        (0, None),
        (1, None),
        (2, "live_urls"),
        *((state, None) for state in (3, 4, 5, 6, 7, 8, 9)),
        (10, "vod_urls"),
        (11, "vod_urls"),
        *((state, "remix_urls") for state in (12, 13, 14, 15)),
        (16, None),
        (17, "archiver_urls"),
        (18, "archiver_urls"),
        *((state, "vod_urls") for state in (20, 21)),
        *((state, None) for state in (19, 22, 23, 24, 25, 99, -1)),
    ],
)
def test_the_state_fills_its_own_array_and_the_current_urls(state: int, filled: str | None) -> None:
    answer = play(state)
    assert [name for name in ARRAYS if getattr(answer, name)] == ([filled] if filled else [])
    assert answer.current_state_urls == (getattr(answer, filled) if filled else ())
    assert answer.archiver_capture_publishing_point_urls == ()


RECORDED = (datetime(2031, 1, 2, 20, tzinfo=UTC), datetime(2031, 1, 2, 22, tzinfo=UTC))


@pytest.mark.parametrize(
    ("asked", "times"),
    [
        ((None, None), ("20:00:00", "22:00:00")),
        (("00:10:00", "00:20:00.500"), ("20:10:00", "20:20:00.500")),
        (("2031-01-02T21:00:00Z", None), ("21:00:00", "22:00:00")),
        (("2031-01-02T19:00:00Z", "2031-01-02T23:00:00Z"), ("20:00:00", "22:00:00")),
    ],
)
def test_a_recorded_stream_plays_between_its_times(asked: tuple[str | None, str | None], times: tuple[str, str]) -> None:
    answer = play(5, event={"recorded_part": RECORDED, "dvr_length": 30}, stream_time=requested_stream_time(*asked))
    assert (answer.live_urls, answer.current_state_urls) == ((), answer.vod_urls)
    begin, end = (time if "." in time else f"{time}.000" for time in times)
    assert {url.url.partition("?")[2] for url in answer.vod_urls} == {f"vbegin=2031-01-02T{begin}Z&vend=2031-01-02T{end}Z"}
    assert [url.source.name for url in answer.vod_urls] == [url.source.name for url in play(2).live_urls]


@pytest.mark.parametrize("state", [5, 6, 7])
def test_an_event_that_was_not_live_or_is_over_has_no_recorded_stream(state: int) -> None:
    answer = play(state, event={} if state == 5 else {"recorded_part": RECORDED})
    assert (answer.vod_urls, answer.live_urls, answer.current_state_urls) == ((), (), ())


def test_an_unpublished_stream_is_shown_only_with_view_unpublished() -> None:
    hidden = play(1, live_playout_profile_id=PROFILE_ID)
    assert (hidden.live_urls, hidden.current_state_urls, hidden.live_playout_profile_urls) == ((), (), {})
    assert "cdn" not in hidden.player_url + hidden.embed_code
    seen = play(1, view_unpublished=True)
    assert seen.live_urls == seen.current_state_urls == play(2).live_urls
    assert seen.live_playout_profile_urls


@pytest.mark.parametrize("state", [0, 10])
def test_view_unpublished_opens_no_other_state(state: int) -> None:
    assert play(state, view_unpublished=True).live_urls == ()


def test_an_event_without_channel_and_flow_has_an_empty_video() -> None:
    for state in range(26):
        answer = video(
            PlayableEvent(EVENT_ID, "c", state, mp4_state=1),
            channel=None,
            flow=None,
            request=PlaybackRequest(),
            player=PlayerAddresses(),
        )
        given = {"requested_stream_time", "requested_audio_only", "requested_auto_start"}
        assert not any(getattr(answer, member.name) for member in fields(answer) if member.name not in given)


@pytest.mark.parametrize(
    ("state", "special"),
    [(11, None), (13, "remixflow_id"), (18, "archiverflow_id"), (2, None)],
)
def test_the_current_flow_depends_on_the_state(state: int, special: str | None) -> None:
    flows = {"flow_id": UUID(int=1), "remixflow_id": UUID(int=2), "archiverflow_id": UUID(int=3)}
    details = EventDetails(state=EventState(state), **flows)
    assert current_flow(details) == flows[special or "flow_id"]
    if special is not None:
        assert current_flow(details.model_copy(update={special: None})) == flows["flow_id"]


# --- streams and their sources


def test_live_streams_come_in_the_order_of_encoder_stream_and_place() -> None:
    seen = [(stream.protocol.name, stream.source.name, stream.source.number, stream.url) for stream in play(2).live_urls]
    assert seen == [
        ("HLS", "CDN_PRIMARY_INDEX_0", 0, "https://cdn1/live.m3u8"),
        ("HLS", "CDN_SECONDARY_INDEX_0", 1, "https://cdn2/live.m3u8"),
        ("HLS", "ORIGIN_PRIMARY_INDEX_0", 2, "http://o1/live.isml/.m3u8"),
        ("HLS", "ORIGIN_SECONDARY_INDEX_0", 3, "http://o2/live.isml/.m3u8"),
        ("DASH", "CDN_PRIMARY_INDEX_0", 0, "https://cdn1/live.mpd"),
        ("HLSe", "CDN_PRIMARY_INDEX_1", 10, "https://cdn1/b.m3u8"),
    ]


@pytest.mark.parametrize(
    ("state", "sources"),
    [
        *((state, ["CDN_PRIMARY_INDEX_0", "ORIGIN_PRIMARY_INDEX_0"]) for state in (11, 14, 18, 20)),
        *((state, ["PRIVATE_INDEX_0", "CDN_PRIMARY_INDEX_0", "ORIGIN_PRIMARY_INDEX_0"]) for state in (10, 13, 17, 21)),
    ],
)
def test_the_private_url_is_first_in_a_private_state_and_absent_in_a_public_one(state: int, sources: list[str]) -> None:
    assert [stream.source.name for stream in play(state).current_state_urls] == sources


def test_only_the_first_flow_configuration_is_used_with_the_content_id() -> None:
    first = play(11).vod_urls[0]
    assert first.url == f"https://cdn/{EVENT_ID}/{EVENT_ID}.ism/Manifest"
    assert first.protocol is StreamProtocol.HSS


@pytest.mark.parametrize("name", ["CDN_PRIMARY_INDEX_0", "ORIGIN_SECONDARY_INDEX_0", "CDN_PRIMARY_INDEX_1"])
def test_a_stream_source_filters_every_array(name: str) -> None:
    answer = play(2, stream_source=StreamSource.read(name))
    assert {stream.source.name for stream in answer.live_urls} == {name}
    assert answer.current_state_urls == answer.live_urls
    assert bool(answer.live_playout_profile_urls[str(PROFILE_ID)]) == (name == "CDN_PRIMARY_INDEX_0")


def test_a_stream_source_that_is_not_configured_has_no_urls() -> None:
    assert play(2, stream_source=StreamSource(StreamPlace.CDN_PRIMARY, 7)).live_urls == ()
    assert play(11, stream_source=StreamSource(StreamPlace.PRIVATE)).vod_urls == ()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("CDN_PRIMARY_INDEX_0", 0),
        ("cdn_secondary_index_0", 1),
        ("ORIGIN_PRIMARY_INDEX_1", 12),
        ("PRIVATE_INDEX_0", 4),
        ("CDN_PRIMARY_INDEX_123", 1230),
        ("0", 0),
        ("13", 13),
    ],
)
def test_a_source_is_read_by_name_or_number(text: str, number: int) -> None:
    source = StreamSource.read(text)
    assert source.number == number
    assert StreamSource.read(source.name) == StreamSource.read(str(source.number)) == source


@pytest.mark.parametrize("text", ["", "5", "19", "-1", "1.0", "CDN_PRIMARY", "CDN_PRIMARY_INDEX_", "X_INDEX_0", "٣", "9" * 40])
def test_an_unknown_source_is_malformed(text: str) -> None:
    with pytest.raises(Malformed, match="streamSource"):
        StreamSource.read(text)


@pytest.mark.parametrize(
    ("value", "protocol"),
    [
        ("HLS", StreamProtocol.HLS),
        ("hlsE", StreamProtocol.HLSe),
        ("dash", StreamProtocol.DASH),
        (1, StreamProtocol.HSS),
        ("3", StreamProtocol.HDS),
        ("", None),
        ("RTMP", None),
        (5, None),
        (1.0, None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_protocols_are_read_by_name_or_number(value: object, protocol: StreamProtocol | None) -> None:
    assert StreamProtocol.read(value) is protocol


# --- playout profiles


def test_of_two_profiles_with_one_id_the_first_is_used() -> None:
    profiles = play(2).live_playout_profile_urls
    assert {key: urls(value) for key, value in profiles.items()} == {str(PROFILE_ID): ["https://cdn1/ll.m3u8"]}


@pytest.mark.parametrize("spelling", [str(PROFILE_ID), str(PROFILE_ID).upper(), f"{{{PROFILE_ID}}}", PROFILE_ID.hex])
def test_the_requested_profile_gives_current_urls_and_embed_codes(spelling: str) -> None:
    channel = {**CHANNEL, "playoutProfiles": [{**CHANNEL["playoutProfiles"][0], "id": spelling}]}
    answer = play(2, channel=channel, live_playout_profile_id=PROFILE_ID)
    assert urls(answer.current_state_urls) == ["https://cdn1/ll.m3u8"]
    assert answer.live_urls == play(2).live_urls
    for code in (answer.embed_code, answer.scriptable_embed_code, answer.website_embed_code):
        assert "src=https://cdn1/ll.m3u8" in code


@pytest.mark.parametrize(
    ("state", "options"),
    [
        (2, {"live_playout_profile_id": EVENT_ID}),
        (2, {"live_playout_profile_id": PROFILE_ID, "stream_source": StreamSource(StreamPlace.ORIGIN_PRIMARY)}),
        (11, {"live_playout_profile_id": PROFILE_ID}),
    ],
)
def test_without_a_matching_profile_the_urls_of_the_state_are_used(state: int, options: dict[str, Any]) -> None:
    answer = play(state, **options)
    assert answer.current_state_urls
    assert answer.current_state_urls == (answer.live_urls or answer.vod_urls)


# --- the query of stream URLs

AUDIO = "filter=type%3D%3D%22audio%22"


@pytest.mark.parametrize(
    ("start", "end", "audio", "query"),
    [
        ("2031-01-02T03:04:05+01:00", None, False, "vbegin=2031-01-02T02:04:05.000Z"),
        (None, "2031-01-02", False, "vend=2031-01-02T00:00:00.000Z"),
        ("00:01:30", "00:02:00.5", False, "vbegin=00:01:30&vend=00:02:00.500"),
        ("00:00:00", None, False, "vbegin=00:00:00"),
        (None, None, True, AUDIO),
        ("00:00:01", "2031-01-02", True, f"vbegin=00:00:01&vend=2031-01-02T00:00:00.000Z&{AUDIO}"),
        (None, None, False, ""),
    ],
)
@pytest.mark.parametrize("state", [2, 11, 14, 18])
def test_points_and_audio_only_are_in_every_stream_url(
    state: int, start: str | None, end: str | None, audio: bool, query: str
) -> None:
    time = requested_stream_time(start, end)
    answer = play(state, stream_time=time, audio_only=audio)
    profiles = [stream for streams in answer.live_playout_profile_urls.values() for stream in streams]
    assert {urlsplit(stream.url).query for stream in [*answer.current_state_urls, *profiles]} == {query}
    assert (answer.requested_stream_time, answer.requested_audio_only) == (time, audio)


@pytest.mark.parametrize(
    ("state", "numbers", "query"),
    [
        (2, (30, 5000, 200), "dvr_window_length=30&max_bitrate=5000&min_bitrate=200"),
        (2, (30, None, None), "dvr_window_length=30"),
        (2, (0, 0, 0), ""),
        (11, (30, 5000, 200), ""),
    ],
)
def test_limits_of_the_event_are_in_live_urls_only(state: int, numbers: Sequence[int | None], query: str) -> None:
    event = dict(zip(("dvr_length", "max_bitrate", "min_bitrate"), numbers, strict=True))
    assert {urlsplit(stream.url).query for stream in play(state, event=event).current_state_urls} == {query}


@pytest.mark.parametrize(
    ("configured", "shown"),
    [
        ("https://cdn/a.m3u8", f"https://cdn/a.m3u8?{AUDIO}"),
        ("https://cdn/a.m3u8?", f"https://cdn/a.m3u8?{AUDIO}"),
        ("https://cdn/a.m3u8?hls_fmp4&t=%20x", f"https://cdn/a.m3u8?hls_fmp4&t=%20x&{AUDIO}"),
        ("https://cdn/a.m3u8?filter=old&x=1", f"https://cdn/a.m3u8?x=1&{AUDIO}"),
        ("https://cdn/a.m3u8?x=a?b", f"https://cdn/a.m3u8?x=a?b&{AUDIO}"),
        ("https://cdn/a.m3u8#part", f"https://cdn/a.m3u8?{AUDIO}#part"),
        ("https://cdn/a.m3u8?x=1#f?y", f"https://cdn/a.m3u8?x=1&{AUDIO}#f?y"),
        ("https://cdn/a b/ü\"'<&>.m3u8", f"https://cdn/a b/ü\"'<&>.m3u8?{AUDIO}"),
        ("  https://cdn/a.m3u8\n", f"https://cdn/a.m3u8?{AUDIO}"),
        ("not a url", f"not a url?{AUDIO}"),
        ("http://[bad", f"http://[bad?{AUDIO}"),
        ("http://h:99999999/x", f"http://h:99999999/x?{AUDIO}"),
        ("?", f"?{AUDIO}"),
    ],
)
def test_a_configured_url_keeps_its_parameters(configured: str, shown: str) -> None:
    answer = live_at(configured, audio_only=True)
    assert urls(answer.live_urls) == [shown]
    assert urls(live_at(configured).live_urls) == [configured.strip()]


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://cdn/a.m3u8?x=1&y=2", "https://cdn/a.m3u8"),
        ("https://cdn/a.m3u8#f?x", "https://cdn/a.m3u8"),
        ("https://cdn/a.m3u8?x#f", "https://cdn/a.m3u8"),
        ("http://[bad?x", "http://[bad"),
        ("https://cdn", "https://cdn"),
    ],
)
def test_the_address_has_no_query_and_no_fragment(url: str, address: str) -> None:
    assert live_at(url).live_urls[0].absolute_url_with_path_no_query == address


@pytest.mark.parametrize("bad", ["", "  ", None, 7, True, [], {"url": "x"}])
def test_a_value_that_is_no_text_is_no_url(bad: Any) -> None:
    assert live_at(bad).live_urls == ()


def test_a_content_id_is_encoded_in_a_url() -> None:
    flow = flow_configuration(json.dumps(FLOW))
    event = PlayableEvent(EVENT_ID, "../a b?&#\\1", 11, mp4_state=1)
    answer = video(event, channel=None, flow=flow, request=PlaybackRequest(), player=PlayerAddresses())
    encoded = "..%2Fa%20b%3F%26%23%5C1"
    assert answer.vod_urls[0].url == f"https://cdn/{encoded}/{encoded}.ism/Manifest"
    assert answer.public_mp4_url == f"https://files.example/public/{encoded}/{encoded}.mp4"
