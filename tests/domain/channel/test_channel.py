"""The schema of a channel configuration: everything is optional, and what is present has the right type."""

from __future__ import annotations

import json

import pytest

from domain.channel.channel import ChannelDocument, StatusCheckStrategy, resource_names
from domain.kernel.json_document import checked, readable
from tests.domain.channel.texts_given import CHANNEL, Place, changed, faults, field

ENCODER: Place = ("encoders", 0)
SERVER: Place = (*ENCODER, "streamingServer")
POINT: Place = (*SERVER, "streamingServerSpecific", "primaryPublishingPoint")
OUTPUT: Place = (*ENCODER, "outputUrls", 0)
PLAYOUT: Place = ("playoutProfiles", 0)
RAMP: Place = ("rampServers", 0)


def keys(place: Place, *names: str) -> list[Place]:
    return [(*place, name) for name in names]


STRINGS = [
    *keys(ENCODER, "name", "type", "resource"),
    (*SERVER, "type"),
    *keys(POINT, "resource", "publishingPointUrl", "srvaApi", "srvaApiKey"),
    *keys(OUTPUT, "liveCdnPrimaryUrl", "liveCdnSecondaryUrl", "liveOriginPrimaryUrl", "liveOriginSecondaryUrl"),
    *keys(OUTPUT, "vodCdnPrimaryUrl", "vodCdnSecondaryUrl", "vodOriginPrimaryUrl", "vodOriginSecondaryUrl", "vodPrivateUrl"),
    *keys(PLAYOUT, "id", "name"),
    (*PLAYOUT, "outputUrls", 0, "liveCdnPrimaryUrl"),
    *keys(RAMP, "serverAddress", "apiKey", "location", "proxyPass", "playerAddress"),
]
FLAGS = [(*ENCODER, "supportsComposition"), (*RAMP, "proxyPassEmpty")]
OBJECTS = [*keys(ENCODER, "encoderSpecific", "settings", "streamingServer"), (*SERVER, "streamingServerSpecific"), POINT]
ARRAYS = [("encoders",), ("playoutProfiles",), ("rampServers",), (*ENCODER, "outputUrls"), (*PLAYOUT, "outputUrls")]
ENTRIES = [ENCODER, PLAYOUT, RAMP, OUTPUT, (*PLAYOUT, "outputUrls", 0)]
NAMED = [("statusCheckStrategy",), (*OUTPUT, "streamProtocol"), (*POINT, "dvrWindowLength")]


def given(place: Place, value: object) -> str:
    return changed(CHANNEL, place, to=value)


@pytest.mark.parametrize("text", ["{}", json.dumps(CHANNEL), '{"encoders": [{}], "playoutProfiles": [{}], "rampServers": [{}]}'])
def test_everything_is_optional(text: str) -> None:
    assert faults(ChannelDocument, text) == []


@pytest.mark.parametrize("place", [*STRINGS, *FLAGS, *OBJECTS, *ARRAYS, *NAMED], ids=field)
def test_null_counts_as_absent(place: Place) -> None:
    assert faults(ChannelDocument, given(place, None)) == []


@pytest.mark.parametrize(
    "place", [(), ENCODER, SERVER, (*SERVER, "streamingServerSpecific"), POINT, OUTPUT, PLAYOUT, RAMP], ids=field
)
def test_other_keys_are_allowed_everywhere(place: Place) -> None:
    assert faults(ChannelDocument, given((*place, "more"), {"any": [1]})) == []


@pytest.mark.parametrize(
    ("places", "bad", "message"),
    [
        (STRINGS, [1, 1.5, True, [], {}], "must be a string"),
        (FLAGS, [1, 0, "true", [], {}], "must be true or false"),
        (OBJECTS, ["x", 1, True, []], "must be an object"),
        (ENTRIES, [None, "x", 1, True, []], "must be an object"),
        (ARRAYS, ["x", 1, True, {}], "must be an array"),
        ([(*POINT, "dvrWindowLength")], ["30", 1.5, True, [], {}], "must be a whole number"),
        ([(*POINT, "dvrWindowLength")], [-1], "may not be negative"),
        ([(*OUTPUT, "streamProtocol")], ["RTMP", 5, True, []], "must be one of HLS, HSS, DASH, HDS, HLSe"),
        (
            [("statusCheckStrategy",)],
            ["SOME", "", 6, -1, 1.0, True, [], {}],
            "must be one of ALL, SRVA_ARCHIVE, SRVA_API, STATUS_PHP, NONE, SRVC_TIMESTAMP",
        ),
    ],
)
def test_types(places: list[Place], bad: list[object], message: str) -> None:
    for place in places:
        for value in bad:
            assert faults(ChannelDocument, given(place, value)) == [(field(place), message)]


@pytest.mark.parametrize("strategy", StatusCheckStrategy)
def test_a_strategy_goes_by_name_in_any_case_or_by_number(strategy: StatusCheckStrategy) -> None:
    for spelling in (strategy.name, strategy.name.lower(), strategy.value, str(strategy.value)):
        model = checked(ChannelDocument, json.dumps({"statusCheckStrategy": spelling}))
        assert model.status_check_strategy is strategy


def test_the_numbers_of_the_strategies() -> None:
    assert [(strategy.name, strategy.value) for strategy in StatusCheckStrategy] == [
        ("ALL", 0),
        ("SRVA_ARCHIVE", 1),
        ("SRVA_API", 2),
        ("STATUS_PHP", 3),
        ("NONE", 4),
        ("SRVC_TIMESTAMP", 5),
    ]


@pytest.mark.parametrize(
    "place",
    [
        *keys(POINT, "publishingPointUrl", "srvaApi", "statusUrl"),
        (*SERVER, "streamingServerSpecific", "apiUrl"),
        *keys(OUTPUT, "liveOriginPrimaryUrl", "vodPrivateUrl"),
        *keys(RAMP, "serverAddress", "proxyPass", "playerAddress"),
    ],
    ids=field,
)
def test_a_new_address_has_a_limit_and_a_stored_one_is_read(place: Place) -> None:
    longest, longer = (given(place, "https://a/" + "b" * (length - 10)) for length in (2048, 2049))
    assert faults(ChannelDocument, longest, is_new=True) == []
    assert faults(ChannelDocument, longer, is_new=True) == [(field(place), "must have at most 2048 characters")]
    assert faults(ChannelDocument, longer) == []
    assert "b" * 2039 in str(readable(ChannelDocument, json.loads(longer)))


def test_a_window_of_zero_seconds_is_accepted() -> None:
    assert faults(ChannelDocument, given((*POINT, "dvrWindowLength"), 0)) == []


def test_secrets_do_not_show_in_the_repr_of_a_model() -> None:
    shown = repr(checked(ChannelDocument, json.dumps(CHANNEL)))
    assert [secret for secret in ("first-key", "open sesame", "ramp-key") if secret in shown] == []


def test_resources_in_order_of_appearance_each_once() -> None:
    def encoder(name: str | None, *points: str | None) -> dict[str, object]:
        places = zip(("primaryPublishingPoint", "secondaryPublishingPoint"), points, strict=False)
        specific = {place: {"resource": point} for place, point in places}
        return {"resource": name, "streamingServer": {"streamingServerSpecific": specific}}

    encoders = [encoder("e2", "o1", "o2"), encoder("e1", "o2", "e1"), encoder(None, None, ""), {}, {"streamingServer": {}}]
    assert resource_names(json.dumps({"encoders": encoders})) == ("e2", "o1", "o2", "e1")
    assert resource_names(json.dumps(CHANNEL)) == ("encoder-1", "origin-1")
    assert resource_names("{}") == resource_names('{"encoders": null}') == ()
