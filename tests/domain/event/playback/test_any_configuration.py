"""Any configuration gives a Video object that can be sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.channel.points import watched_points
from domain.event.playback import (
    PlayableEvent,
    PlaybackRequest,
    PlayerAddresses,
    StreamPlace,
    StreamSource,
    channel_configuration,
    flow_configuration,
    video,
)
from domain.kernel.stream_time import requested_stream_time
from tests.domain.event.playback.channel_and_flow_given import (
    BASE,
    EVENT_ID,
    PROFILE_ID,
    Frame,
    play,
)

# --- configurations that are not what they should be


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", '"x"', "7", '{"encoders": 7, "flows": {}, "rampServers": [1]}', "[" * 100_000, "1" * 5000],
)
def test_an_unreadable_configuration_is_empty(text: str) -> None:
    assert channel_configuration(text) == channel_configuration("{}")
    assert flow_configuration(text) == flow_configuration("{}")
    assert watched_points(text) == ()


def test_a_broken_encoder_keeps_its_index_and_hides_no_other() -> None:
    good = {"streamProtocol": "HLS", "liveCdnPrimaryUrl": "https://cdn/x"}
    answer = play(2, channel={"encoders": [7, {"outputUrls": [None, {**good, "streamProtocol": "RTMP"}, good]}]})
    assert [(stream.source.name, stream.url) for stream in answer.live_urls] == [("CDN_PRIMARY_INDEX_1", "https://cdn/x")]


def test_values_that_json_cannot_hold_are_replaced() -> None:
    text = '{"rampServers": [{"a": NaN, "b": 1e999, "c": "\\ud800", "d": [{"Password": "x"}]}]}'
    [server] = channel_configuration(text).ramp_servers
    assert server.settings == {"a": None, "b": None, "c": "?", "d": [{"Password": None}]}


KEYS = [
    *("encoders", "name", "streamingServer", "streamingServerSpecific", "primaryPublishingPoint", "publishingPointUrl"),
    *("outputUrls", "streamProtocol", "liveCdnPrimaryUrl", "liveOriginSecondaryUrl", "playoutProfiles", "id", "rampServers"),
    *("flows", "vodCdnPrimaryUrl", "vodPrivateUrl", "storageUrlPublic", "storageUrlPrivate", "apiKey"),
]
TEXTS = st.text(max_size=12) | st.sampled_from(["HLS", "DASH", "http://[x?y#z", str(PROFILE_ID), "\ud800", "{contentId}"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
STREAMS = st.fixed_dictionaries(
    {"streamProtocol": st.sampled_from(["HLS", "DASH", 4, "?"])},
    optional={key: st.text() | TEXTS for key in KEYS if key.endswith("Url")},
)
OUTPUTS = st.fixed_dictionaries({"outputUrls": st.lists(STREAMS | JSON_VALUES, max_size=3), "id": TEXTS | st.just(str(PROFILE_ID))})
CONFIGURATIONS = st.dictionaries(st.sampled_from(KEYS), JSON_VALUES, max_size=6) | st.fixed_dictionaries(
    {key: st.lists(OUTPUTS, max_size=3) for key in ("encoders", "playoutProfiles", "flows")}
)
REQUESTS = st.builds(
    PlaybackRequest,
    stream_time=st.sampled_from([requested_stream_time(None, None), requested_stream_time("00:00:01", "2031-01-02")]),
    audio_only=st.booleans(),
    auto_start=st.booleans(),
    view_unpublished=st.booleans(),
    stream_source=st.none() | st.builds(StreamSource, st.sampled_from(StreamPlace), st.integers(0, 2)),
    live_playout_profile_id=st.none() | st.just(PROFILE_ID),
)


@given(channel=CONFIGURATIONS, flow=CONFIGURATIONS, state=st.integers(0, 25), request=REQUESTS, title=st.text())
def test_any_configuration_gives_a_video(channel: object, flow: object, state: int, request: PlaybackRequest, title: str) -> None:
    answer = video(
        PlayableEvent(EVENT_ID, str(EVENT_ID), state, title, mp4_state=1, dvr_length=30),
        channel=channel_configuration(json.dumps(channel)),
        flow=flow_configuration(json.dumps(flow)),
        request=request,
        player=PlayerAddresses(BASE),
    )
    profiles = [stream for streams in answer.live_playout_profile_urls.values() for stream in streams]
    for stream in [*answer.current_state_urls, *answer.live_urls, *answer.vod_urls, *profiles]:
        assert not {"?", "#"} & set(stream.absolute_url_with_path_no_query)
        assert stream.url.startswith(stream.absolute_url_with_path_no_query)
        stream.url.encode("utf-8")
    assert [tag for tag, _ in Frame(answer.embed_code).tags] == ["iframe"]
    for point in watched_points(json.dumps(channel)):
        f"{point.name} {point.shown} {point.url} {point.key_place}".encode()
        assert point.fingerprint.bit_length() < 64
    json.dumps([server.settings for server in answer.ramp_servers], allow_nan=False, ensure_ascii=False).encode("utf-8")
