"""The publishing points of a channel, as a prober asks them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.channel.channel import StatusCheckStrategy
from domain.channel.hosts import hosts_in
from domain.channel.points import WatchedPoint, watched_points
from domain.channel.secrets import split


def channel(*encoders: Any, **members: Any) -> str:
    return json.dumps({**members, "encoders": list(encoders)})


def encoder(*points: Any, **members: Any) -> dict[str, Any]:
    places = ("primaryPublishingPoint", "secondaryPublishingPoint")
    return {**members, "streamingServer": {"streamingServerSpecific": dict(zip(places, points, strict=False))}}


def at(url: str, **members: Any) -> dict[str, Any]:
    return {"publishingPointUrl": url, **members}


def only(text: str) -> WatchedPoint:
    [point] = watched_points(text)
    return point


def test_points_have_the_places_of_the_configuration() -> None:
    text = channel(encoder(at("http://a"), at("http://b"), name="one"), 7, encoder({}, at("http://c")), encoder(at(" "), None))
    assert [(point.name, point.encoder, point.index, point.url) for point in watched_points(text)] == [
        ("one", 0, 0, "http://a"),
        ("one", 0, 1, "http://b"),
        ("", 2, 1, "http://c"),
    ]


@pytest.mark.parametrize(
    ("given", "strategy"),
    [
        ({}, StatusCheckStrategy.ALL),
        ({"statusCheckStrategy": None}, StatusCheckStrategy.ALL),
        ({"statusCheckStrategy": 3}, StatusCheckStrategy.STATUS_PHP),
        ({"statusCheckStrategy": "srvc_timestamp"}, StatusCheckStrategy.SRVC_TIMESTAMP),
        ({"statusCheckStrategy": "?"}, StatusCheckStrategy.ALL),
    ],
)
def test_the_strategy_is_the_channels(given: dict[str, Any], strategy: StatusCheckStrategy) -> None:
    assert only(channel(encoder(at("http://a")), **given)).strategy is strategy


def test_an_address_is_shown_without_user_info_query_and_secrets() -> None:
    point = only(channel(encoder(at("http://user:s3cret@o/live.isml?token=s3cret"))))
    assert point.shown == "http://o/live.isml"
    assert "s3cret" not in repr(point)


def test_the_place_of_the_key_is_that_of_the_stored_secret() -> None:
    text = channel(encoder(at("http://a"), at("http://b", srvaApi="http://b", SRVAAPIKEY="k"), name="one"), encoder(at("http://c")))
    secrets = split(text).sent
    assert [point.key_place in secrets for point in watched_points(text)] == [False, True, False]


def test_manifests_are_those_of_the_origin_of_the_same_point() -> None:
    outputs = [
        {"streamProtocol": "DASH", "liveOriginPrimaryUrl": "http://a/d.mpd", "liveCdnPrimaryUrl": "http://cdn/d.mpd"},
        {"streamProtocol": "HSS", "liveOriginPrimaryUrl": "http://a/Manifest"},
        {"streamProtocol": "HLS", "liveOriginPrimaryUrl": "http://a/h.m3u8", "liveOriginSecondaryUrl": "http://b/{contentId}.m3u8"},
        {"streamProtocol": "HLS", "liveOriginPrimaryUrl": "http://a/other.m3u8"},
    ]
    points = watched_points(channel(encoder(at("http://a"), at("http://b"), outputUrls=outputs)))
    assert [list(point.manifests) for point in points] == [["http://a/h.m3u8", "http://a/d.mpd"], []]


def test_a_placeholder_of_a_host_is_not_resolved() -> None:
    assert [point.resolved for point in watched_points(channel(encoder(at("http://{dns}/a"), at("http://a/b"))))] == [False, True]


def test_the_resource_of_a_point_fills_its_placeholders() -> None:
    outputs = [{"streamProtocol": "HLS", "liveOriginPrimaryUrl": "http://{DNS}/a.m3u8"}]
    addresses = {"srvaApi": "http://{internalIpAddress}:8080/api", "statusUrl": "http://{internalDns}/status"}
    point = only(channel(encoder(at("http://{dns}/a", resource="origin-1", **addresses), outputUrls=outputs)))
    some = point.at({"origin-1": {"dns": "o.example"}, "origin-2": {"internalDns": "no"}})
    assert (some.url, some.shown, some.resolved) == ("http://o.example/a", "http://o.example/a", False)
    assert list(some.manifests) == ["http://o.example/a.m3u8"]
    full = point.at({"origin-1": {"dns": "o.example", "internalIpAddress": "10.0.0.7", "internalDns": "o.internal"}})
    assert (full.srva_api, full.status_url, full.resolved) == ("http://10.0.0.7:8080/api", "http://o.internal/status", True)
    assert len({point.fingerprint, some.fingerprint, full.fingerprint}) == 3
    assert (point.shown, point.at({"origin-2": {"dns": "o"}})) == ("http://{dns}/a", point)


def test_the_key_of_a_point_does_not_go_to_a_host_that_a_profile_lists() -> None:
    resources = [{"name": "origin-1", "dns": "o.example", "ipAddress": "192.0.2.7"}]
    made, listed = hosts_in(resources), hosts_in(resources, static=True)
    point = only(channel(encoder(at("http://{dns}/a", resource="origin-1", srvaApi="https://{dns}/api"))))
    fixed = only(channel(encoder(at("http://{dns}/a", resource="origin-1", srvaApi="https://a.example/api"))))
    assert point.at(made).key_place == point.key_place != ""
    assert (point.at(listed).srva_api, point.at(listed).key_place) == ("https://o.example/api", "")
    assert fixed.at(listed).key_place == fixed.key_place != ""


def test_the_fingerprint_is_that_of_what_is_asked() -> None:
    same = [channel(encoder(at("http://a")), name="x"), channel(encoder(at(" http://a "), name="other"))]
    others = [
        channel(encoder(at("http://b"))),
        channel(encoder(at("http://a", srvaApi="http://a"))),
        channel(encoder(at("http://a", statusUrl="http://a"))),
        channel(encoder(at("http://a")), statusCheckStrategy=2),
        channel(encoder(at("http://a"), outputUrls=[{"streamProtocol": "HLS", "liveOriginPrimaryUrl": "http://a/x"}])),
    ]
    assert len({only(text).fingerprint for text in same}) == 1
    assert len({only(text).fingerprint for text in same + others}) == 1 + len(others)
