"""The schema of a flow configuration: required members, closed objects and enumerations."""

from __future__ import annotations

import json

import pytest

from domain.channel.flow import FlowDocument, first_flow, required_secrets
from domain.channel.secrets import split
from domain.kernel.errors import Malformed
from domain.kernel.json_document import checked
from tests.domain.channel.texts_given import FLOW, SRVA, STREAM, Place, changed, faults, field, without

FIRST: Place = ("flows", 0)
ENGINE: Place = (*FIRST, "taskEngineSpecific")
SERVER: Place = (*FIRST, "streamingServer")
SETTINGS: Place = (*SERVER, "streamingServerSpecific")
PRIMARY: Place = (*SETTINGS, "primaryPublishingPoint")
SECONDARY: Place = (*SETTINGS, "secondaryPublishingPoint")
OUTPUT: Place = (*FIRST, "outputUrls", 0)

OBJECTS = [ENGINE, SERVER, SETTINGS, PRIMARY, SECONDARY, OUTPUT, FIRST]
CLOSED = [ENGINE, SETTINGS, PRIMARY, SECONDARY, OUTPUT]
ARRAYS = [("flows",), (*FIRST, "outputUrls"), (*ENGINE, "callbackUrls")]
REQUIRED = [
    ("flows",),
    *((*FIRST, key) for key in ("name", "type", "ismUrl", "taskEngineSpecific", "streamingServer", "outputUrls")),
    *((*ENGINE, key) for key in ("apiUrl", "flowGuiUrl")),
    *((*SERVER, key) for key in ("type", "streamingServerSpecific")),
    PRIMARY,
    SECONDARY,
    (*PRIMARY, "srvaApi"),
    (*SECONDARY, "srvaApi"),
    *((*OUTPUT, key) for key in ("streamProtocol", "vodCdnPrimaryUrl", "vodOriginPrimaryUrl")),
]
OPTIONAL = [
    (*ENGINE, "callbackUrls"),
    *((*FIRST, key) for key in ("storageUrlPublic", "storageUrlPrivate", "captureOnStop", "instantVod")),
    *((*OUTPUT, key) for key in ("vodCdnSecondaryUrl", "vodOriginSecondaryUrl", "vodPrivateUrl")),
    *((*point, "srvaApiKey") for point in (PRIMARY, SECONDARY)),
]
STRINGS = [
    *((*FIRST, key) for key in ("name", "ismUrl", "storageUrlPublic", "storageUrlPrivate")),
    *((*ENGINE, key) for key in ("apiUrl", "flowGuiUrl")),
    (*ENGINE, "callbackUrls", 0),
    *((*point, "srvaApi") for point in (PRIMARY, SECONDARY)),
    *((*OUTPUT, key) for key in STREAM if key != "streamProtocol"),
]
PROTOCOLS = "must be one of HLS, HSS, DASH, HDS, HLSe"


def given(place: Place, value: object) -> str:
    return changed(FLOW, place, to=value)


def test_a_whole_configuration_is_fine() -> None:
    assert faults(FlowDocument, json.dumps(FLOW)) == []


@pytest.mark.parametrize("place", REQUIRED, ids=field)
def test_what_is_required_is_missed_by_name(place: Place) -> None:
    assert faults(FlowDocument, without(FLOW, place)) == [(field(place), "is required")]
    assert [path for path, _ in faults(FlowDocument, given(place, None))] == [field(place)]


@pytest.mark.parametrize("place", OPTIONAL, ids=field)
def test_all_else_may_be_absent(place: Place) -> None:
    assert faults(FlowDocument, without(FLOW, place)) == []


@pytest.mark.parametrize("place", CLOSED, ids=field)
@pytest.mark.parametrize("key", ["more", "API_URL", "srva_api", "vod_private_url", ""])
def test_a_closed_object_names_the_key_that_it_may_not_have(place: Place, key: str) -> None:
    assert faults(FlowDocument, given((*place, key), "x")) == [(field((*place, key)), "may not have other keys")]


@pytest.mark.parametrize("place", [(*ENGINE, "ApiUrl"), (*PRIMARY, "SrvaApiKey"), (*OUTPUT, "streamprotocol")], ids=field)
def test_keys_are_matched_in_exact_case(place: Place) -> None:
    assert faults(FlowDocument, given(place, "x")) == [(field(place), "may not have other keys")]


@pytest.mark.parametrize("place", [("more",), (*FIRST, "more"), (*SERVER, "more")], ids=field)
def test_an_open_object_may_have_more(place: Place) -> None:
    assert faults(FlowDocument, given(place, {"any": [1]})) == []


@pytest.mark.parametrize("place", STRINGS, ids=field)
@pytest.mark.parametrize("value", [1, 1.5, True, None, [], {}, ["x"]], ids=str)
def test_strings_are_strings(place: Place, value: object) -> None:
    assert faults(FlowDocument, given(place, value)) == [(field(place), "must be a string")]


@pytest.mark.parametrize("place", [PRIMARY, SECONDARY], ids=field)
def test_a_key_is_a_string_or_null(place: Place) -> None:
    assert faults(FlowDocument, given((*place, "srvaApiKey"), None)) == []
    assert faults(FlowDocument, given((*place, "srvaApiKey"), 5)) == [(field((*place, "srvaApiKey")), "must be a string")]


@pytest.mark.parametrize("place", OBJECTS, ids=field)
@pytest.mark.parametrize("value", [None, "x", 1, True, []], ids=str)
def test_objects_are_objects(place: Place, value: object) -> None:
    assert faults(FlowDocument, given(place, value)) == [(field(place), "must be an object")]


@pytest.mark.parametrize("place", ARRAYS, ids=field)
@pytest.mark.parametrize("value", [None, "x", 1, {}], ids=str)
def test_arrays_are_arrays(place: Place, value: object) -> None:
    assert faults(FlowDocument, given(place, value)) == [(field(place), "must be an array")]


def test_there_is_at_least_one_flow() -> None:
    assert faults(FlowDocument, '{"flows": []}') == [("configurationJson.flows", "may not be empty")]
    assert faults(FlowDocument, '{"flows": [1, null]}') == [(f"configurationJson.flows[{n}]", "must be an object") for n in (0, 1)]
    assert faults(FlowDocument, given((*FIRST, "outputUrls"), [])) == []


@pytest.mark.parametrize(
    ("place", "good", "bad", "message"),
    [
        ((*FIRST, "type"), ["TaskEngine", "taskengine"], ["Task", "", 0, None, ["TaskEngine"]], "must be TaskEngine"),
        ((*SERVER, "type"), ["SRVA", "srva"], ["SRVB", "", 0, None, {}], "must be SRVA"),
        (
            (*OUTPUT, "streamProtocol"),
            ["HLS", "hls", "HSS", "dash", "HDS", "HLSe", "HLSE", 0, 1, 2, 3, 4, "4"],
            ["RTMP", "", " HLS", 5, -1, 1.0, True, False, None, [], {}],
            PROTOCOLS,
        ),
    ],
)
def test_enumerations(place: Place, good: list[object], bad: list[object], message: str) -> None:
    for value in good:
        assert faults(FlowDocument, given(place, value)) == []
    for value in bad:
        assert faults(FlowDocument, given(place, value)) == [(field(place), message)]


@pytest.mark.parametrize("settings", [{}, {"not set": ""}, {"not set": "x"}], ids=str)
def test_srvb_settings_are_empty_or_have_one_text(settings: dict[str, str]) -> None:
    text = given(SETTINGS, settings)
    assert faults(FlowDocument, text) == []
    assert required_secrets(text) == []


@pytest.mark.parametrize("value", [1, None, [], {}], ids=str)
def test_the_text_of_srvb_settings_is_a_string(value: object) -> None:
    assert faults(FlowDocument, given(SETTINGS, {"not set": value})) == [(field((*SETTINGS, "not set")), "must be a string")]


def test_mixed_settings_are_checked_as_srva_settings() -> None:
    assert faults(FlowDocument, given(SETTINGS, SRVA | {"not set": "x"})) == [
        (field((*SETTINGS, "not set")), "may not have other keys")
    ]
    assert faults(FlowDocument, given(SETTINGS, {"SRVA": {}})) == [
        (field(PRIMARY), "is required"),
        (field(SECONDARY), "is required"),
        (field((*SETTINGS, "SRVA")), "may not have other keys"),
    ]


def test_the_second_flow_is_checked_as_the_first() -> None:
    text = json.dumps(
        {"flows": [FLOW["flows"][0], {**FLOW["flows"][0], "outputUrls": [STREAM, {**STREAM, "streamProtocol": "x"}]}]}
    )
    assert faults(FlowDocument, text) == [("configurationJson.flows[1].outputUrls[1].streamProtocol", PROTOCOLS)]


def test_keys_do_not_show_in_the_repr_or_the_dump_of_a_model() -> None:
    model = checked(FlowDocument, json.dumps(FLOW))
    assert "first-key" not in repr(model)
    assert "first-key" not in model.model_dump_json()


def test_both_keys_of_every_flow_with_srva_settings_are_required() -> None:
    flow = FLOW["flows"][0]
    other = {**flow, "name": "other", "streamingServer": {"type": "SRVA", "streamingServerSpecific": {}}}
    text = json.dumps({"flows": [other, flow, {**flow, "name": "twin"}, {**flow, "name": "twin"}]})
    separated = split(text)
    assert required_secrets(text) == [path for path in separated.sent if path.endswith('"srvaApiKey"]')] == list(separated.sent)
    assert len(separated.sent) == 6
    assert required_secrets(separated.text) == required_secrets(text)


@pytest.mark.parametrize("text", ["", "{}", '{"flows": [{}]}', '{"flows": [{"streamingServer": null}]}'])
def test_nothing_is_read_from_a_text_that_is_no_flow_configuration(text: str) -> None:
    for read in (required_secrets, first_flow):
        with pytest.raises(Malformed):
            read(text)


@pytest.mark.parametrize("flag", ["captureOnStop", "instantVod"])
@pytest.mark.parametrize("value", [None, 1, "true", []])
def test_a_flag_is_true_or_false(value: object, flag: str) -> None:
    place = (*FIRST, flag)
    assert [path for path, _ in faults(FlowDocument, given(place, value))] == [field(place)]
    assert faults(FlowDocument, given(place, True)) == []
