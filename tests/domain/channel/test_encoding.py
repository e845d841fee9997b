"""Plans of the encoders of a channel for an Event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.channel.channel import ChannelDocument
from domain.channel.encoder_settings import encode_settings
from domain.channel.encoding import EncoderPlan, encoder_plans
from domain.channel.secrets import opened, split
from domain.channel.streaming_options import MOST, encoder_options
from domain.event.facets import Streaming
from domain.kernel.errors import Malformed
from domain.kernel.json_document import readable

A, B = "http://origin.example/live/news", "http://origin.example/live/news-b"


def plans(*encoders: dict[str, Any], hosts: dict[str, dict[str, str]] | None = None, **values: Any) -> list[EncoderPlan]:
    channel = readable(ChannelDocument, {"encoders": list(encoders)})
    return list(encoder_plans(channel, Streaming(**values), hosts=hosts or {}))


def encoder(primary: object = A, secondary: object = B, **more: Any) -> dict[str, Any]:
    points = {
        "primaryPublishingPoint": {"publishingPointUrl": primary, "resource": "origin-1"},
        "secondaryPublishingPoint": {"publishingPointUrl": secondary, "dvrWindowLength": 30},
    }
    return {"name": "enc", "type": "FFmpeg", "streamingServer": {"streamingServerSpecific": points}, **more}


def test_an_encoder_sends_to_its_two_points() -> None:
    (plan,) = plans(encoder())
    assert (plan.index, plan.name, plan.type) == (0, "enc", "ffmpeg")
    assert [(point.encoder, point.index, point.url) for point in plan.points] == [(0, 0, A), (0, 1, B)]
    assert [point.dvr_length for point in plan.points] == [None, 30]
    assert "origin.example" not in repr(plan), "a URL may hold a key"


def test_what_cannot_be_read_hides_only_itself() -> None:
    first, second, third = plans({"type": 7}, encoder(primary=9), encoder(secondary=" "))
    assert (first.type, first.points) == ("", [])
    assert [(point.encoder, point.index) for point in second.points] == [(1, 1)]
    assert [(point.encoder, point.index) for point in third.points] == [(2, 0)]


def test_a_point_without_its_host_gets_no_order() -> None:
    document = encoder(primary="http://{ipAddress}/live", secondary="http://{DNS}/live")
    (plan,) = plans(document)
    assert (plan.points, plan.unresolved) == ([], [0, 1])
    (plan,) = plans(document, hosts={"origin-1": {"ipAddress": "192.0.2.7"}})
    assert [point.url for point in plan.points] == ["http://192.0.2.7/live"]
    assert plan.unresolved == [1]


def test_the_values_of_the_event_reach_the_encoder() -> None:
    (plan,) = plans(encoder(), dvr_length=120, max_bitrate=2_000_000, additional_streaming_options="-g 50 --archive")
    assert (plan.options.dvr_length, plan.options.max_bitrate, plan.options.archive) == (120, 2_000_000, True)
    assert plan.options.encode == {"-g": "50"}


def test_zero_is_no_limit() -> None:
    (plan,) = plans(encoder(), dvr_length=0, max_bitrate=0, min_bitrate=0)
    assert (plan.options.dvr_length, plan.options.max_bitrate, plan.options.min_bitrate) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "encode"),
    [
        ("-b:v 2M -maxrate=2.5M -bufsize 4000k", {"-b:v": "2000000", "-maxrate": "2500000", "-bufsize": "4000000"}),
        ("-preset slow -tune 'zerolatency' -profile:v high", {"-preset": "slow", "-tune": "zerolatency", "-profile:v": "high"}),
        ("-r 30000/1001 -g 60 -bf 0", {"-r": "30000/1001", "-g": "60", "-bf": "0"}),
    ],
)
def test_known_options_are_taken(text: str, encode: dict[str, str]) -> None:
    options = encoder_options(text)
    assert (options.encode, options.ignored) == (encode, ())


def test_options_of_the_streaming_server_are_taken() -> None:
    options = encoder_options("--dvr_window_length=30 --archive=0 --hls.minimum_fragment_length=96/25")
    assert (options.dvr_length, options.archive, options.segment_length) == (30, False, 3.84)


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        ("-i /etc/passwd", ("-i",)),
        ("-f segment -protocol_whitelist file,http", ("-f", "-protocol_whitelist")),
        ("-vf movie=/etc/passwd -filter_complex x -/vf /etc/passwd", ("-vf", "-filter_complex", "(a value without an option)")),
        ("-preset /etc/passwd", ("-preset",)),
        ("-b:v 2M;id -g -1 -r 0/1 -r 1/0", ("-b:v", "-g", "-r")),
        ("-b:v 999999M", ("-b:v",)),
        ("-g ４２", ("-g",)),
        ("--key=abc123 --key\n abc123", ("--key",)),
        ("-g '50", ("(quotation marks do not match)",)),
        ("/etc/passwd -y", ("(a value without an option)", "-y")),
        ("x" * 5_000, ("(too long)",)),
        ("--" + "a" * 60 + "\x1b[2J", ("--" + "a" * 38,)),
    ],
)
def test_other_options_are_left_out_and_named_without_their_values(text: str, ignored: tuple[str, ...]) -> None:
    options = encoder_options(text)
    assert options.encode == {}
    assert options.ignored == ignored
    assert "passwd" not in repr(options)
    assert "abc123" not in repr(options)


def test_not_more_options_than_there_are() -> None:
    assert len(encoder_options("-g 5 " * 800).encode) == 1
    assert len(encoder_options(" ".join(f"-x{number}" for number in range(400))).ignored) == 400 > MOST


def settings(specific: object, **values: Any) -> Any:
    (plan,) = plans(encoder(encoderSpecific=specific), **values)
    return encode_settings(plan)


def test_an_encoder_without_settings_shows_a_test_picture() -> None:
    configured = settings({})
    assert configured.source.type == "test"
    assert [(rendition.height, rendition.bitrate) for rendition in configured.renditions] == [(360, 1_000_000)]
    assert (configured.segment, configured.window, configured.delete_segments) == (2.0, 60, False)


def test_all_that_can_be_set() -> None:
    configured = settings(
        {
            "source": {"type": "File", "file": "a/b.mp4", "loop": True},
            "renditions": [{"height": 720, "bitrate": 3_000_000, "fps": 25}, {"height": 360}],
            "audioInputs": [{"id": "en", "name": "English", "index": 0, "language": "en"}],
            "keyFrameInterval": 4,
        },
        dvr_length=10**6,
        additional_streaming_options="-b:v 800k --archive=0",
    )
    assert (configured.source.file, configured.source.loop, configured.segment) == ("a/b.mp4", True, 4)
    assert [rendition.bitrate for rendition in configured.renditions] == [800_000, 800_000]
    assert configured.window == 7_200, "a playlist of a week is not sent every two seconds"
    assert configured.delete_segments, "no archive"


def test_limits_choose_among_renditions_and_never_leave_none() -> None:
    specific = {"renditions": [{"height": 720, "bitrate": 3_000_000}, {"height": 360, "bitrate": 800_000}]}
    assert [rendition.height for rendition in settings(specific, max_bitrate=1_000_000).renditions] == [360]
    configured = settings(specific, max_bitrate=3_000)
    assert [rendition.height for rendition in configured.renditions] == [720, 360]
    assert len(configured.notes) == 1


@pytest.mark.parametrize(
    "specific",
    [
        {"source": "test"},
        {"source": {"type": "satellite"}},
        {"source": {"type": "url", "url": ["http://user:secret@h"]}},
        {"renditions": [{"height": 361}]},
        {"renditions": [{"height": 360, "bitrate": 1}]},
        {"renditions": [{}] * 9},
        {"keyFrameInterval": 0},
        {"keyFrameInterval": "NaN secret"},
        {"audioInputs": [{"language": "en;secret"}]},
    ],
)
def test_wrong_settings_are_refused_by_the_name_of_their_member(specific: object) -> None:
    with pytest.raises(Malformed) as refusal:
        settings(specific)
    assert str(refusal.value).startswith("encoderSpecific.")
    assert "secret" not in str(refusal.value)


def test_secrets_come_back_to_their_places() -> None:
    text = json.dumps({"encoders": [{"name": "e", "encoderSpecific": {"apiKey": "k1"}}, {"rampServers": [{"apiKey": "k2"}]}]})
    parts = split(text)
    assert "k1" not in parts.text
    assert opened(parts.text, parts.sent) == json.loads(text)
    assert opened(parts.text, {}) == json.loads(parts.text)
    assert opened(parts.text, {'["encoders",{"name":"gone"},"apiKey"]': "k3", '["x",5]': "k4"}) == json.loads(parts.text)
    assert opened("{", parts.sent) is None
