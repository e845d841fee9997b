"""The schema of a profile configuration, and the comparison with a channel."""

from __future__ import annotations

import json

import pytest

from domain.channel.channel import resource_names
from domain.channel.profile import Comparison, ProfileDocument, compare, resources
from domain.kernel.json_document import checked
from tests.domain.channel.texts_given import PROFILE, RESOURCE, Place, changed, faults, field, without

REQUEST: Place = ("request",)
OPTIONS: Place = (*REQUEST, "options")
FIRST: Place = (*REQUEST, "resources", 0)
END: Place = ("workflow", "termination", 0)

REQUIRED = [REQUEST, ("workflow",), (*REQUEST, "resources"), (*FIRST, "name"), (*FIRST, "type")]
OPTIONAL = [
    *((*REQUEST, key) for key in ("infrastructureKey", "callbackUrls", "settings", "options")),
    *((*OPTIONS, key) for key in ("deploymentType", "allowUpdates", "isolationMode")),
    *((*FIRST, key) for key in RESOURCE if key not in ("name", "type")),
    ("workflow", "termination"),
    *((*END, key) for key in ("states", "type", "select")),
]
NULLABLE = [
    (*REQUEST, "infrastructureKey"),
    *((*OPTIONS, key) for key in ("allowUpdates", "isolationMode")),
    *((*FIRST, key) for key in RESOURCE if key not in ("name", "type")),
]
OTHERS = ("name", "type", "settings", "diskSize", "tags")
STRINGS = [
    (*REQUEST, "infrastructureKey"),
    (*REQUEST, "callbackUrls", 0),
    (*REQUEST, "settings", "zone"),
    (*FIRST, "name"),
    *((*FIRST, key) for key in RESOURCE if key not in OTHERS),
    (*END, "type"),
    (*END, "states", 0),
    (*END, "select", 0),
]
OBJECTS = [REQUEST, ("workflow",), OPTIONS, (*REQUEST, "settings"), FIRST, END, (*FIRST, "settings")]
ARRAYS = [(*REQUEST, "resources"), (*REQUEST, "callbackUrls"), ("workflow", "termination"), (*END, "states"), (*END, "select")]
KINDS = ["origin", "encoder", "router", "source", "convertor", "unspecified"]


def given(place: Place, value: object) -> str:
    return changed(PROFILE, place, to=value)


@pytest.mark.parametrize("text", [json.dumps(PROFILE), '{"request": {"resources": []}, "workflow": {}}'])
def test_a_configuration_with_everything_or_the_least_is_fine(text: str) -> None:
    assert faults(ProfileDocument, text) == []


@pytest.mark.parametrize("place", REQUIRED, ids=field)
def test_a_missing_required_member_is_named(place: Place) -> None:
    assert faults(ProfileDocument, without(PROFILE, place)) == [(field(place), "is required")]
    assert [path for path, _ in faults(ProfileDocument, given(place, None))] == [field(place)]


@pytest.mark.parametrize("place", OPTIONAL, ids=field)
def test_optional_members_may_be_absent_and_some_may_be_null(place: Place) -> None:
    assert faults(ProfileDocument, without(PROFILE, place)) == []
    assert (faults(ProfileDocument, given(place, None)) == []) == (place in NULLABLE)


@pytest.mark.parametrize("place", [(), REQUEST, OPTIONS, FIRST, ("workflow",), END, (*FIRST, "settings")], ids=field)
def test_other_keys_are_allowed_everywhere(place: Place) -> None:
    assert faults(ProfileDocument, given((*place, "more"), {"any": [1]})) == []


@pytest.mark.parametrize(
    ("places", "bad", "message"),
    [
        (STRINGS, [1, 1.5, True, [], {}], "must be a string"),
        (OBJECTS, ["x", 1, True, []], "must be an object"),
        (ARRAYS, ["x", 1, True, {}], "must be an array"),
        ([(*OPTIONS, "allowUpdates")], [1, "true", [], {}], "must be true or false"),
        ([(*OPTIONS, "deploymentType")], ["", "dynamic", 1, True, None, []], "must be one of template, static"),
        ([(*OPTIONS, "isolationMode")], ["", "byRoom", 1, True, []], "must be one of byInfrastructure, byEvent"),
        ([(*FIRST, "type")], ["", "converter", 1, True, None, []], f"must be one of {', '.join(KINDS)}"),
        ([(*FIRST, "diskSize")], [True, [], {}], "must be a string or a number"),
        (
            [(*FIRST, "tags")],
            ["x", 1, True, [1], [None], {"a": 1}, {"a": None}],
            "must be an array of strings or an object of strings",
        ),
    ],
)
def test_types(places: list[Place], bad: list[object], message: str) -> None:
    for place in places:
        for value in bad:
            assert faults(ProfileDocument, given(place, value)) == [(field(place), message)]


@pytest.mark.parametrize(
    ("place", "good"),
    [
        (FIRST, [{"name": "r", "type": kind} for kind in (*KINDS, "ORIGIN", "Unspecified")]),
        ((*OPTIONS, "deploymentType"), ["template", "static", "STATIC"]),
        ((*OPTIONS, "isolationMode"), ["byInfrastructure", "byEvent", "BYEVENT"]),
        ((*FIRST, "diskSize"), ["100 GB", 100, 1.5]),
        ((*FIRST, "tags"), [[], {}, ["a", "b"], {"a": "b"}]),
        ((*REQUEST, "settings"), [{}, {"a": ""}]),
    ],
)
def test_what_is_allowed(place: Place, good: list[object]) -> None:
    for value in good:
        assert faults(ProfileDocument, given(place, value)) == []


def test_an_enumeration_is_read_as_it_is_documented() -> None:
    text = given(OPTIONS, {"deploymentType": "STATIC", "isolationMode": "BYEVENT"})
    options = checked(ProfileDocument, text).request.options
    assert (options.deployment_type, options.isolation_mode, options.allow_updates) == ("static", "byEvent", None)


def test_two_resources_may_share_a_name() -> None:
    assert faults(ProfileDocument, given((*REQUEST, "resources"), [RESOURCE, RESOURCE])) == []


def test_resources_are_given_as_they_were_sent() -> None:
    sent = [{**RESOURCE, "type": "ORIGIN", "more": {"any": [1]}, "image": None}, {"type": "encoder", "name": "e"}]
    assert resources(given((*REQUEST, "resources"), sent)) == sent


def channel(*names: str) -> str:
    return json.dumps({"encoders": [{"resource": name} for name in names]})


def profile(*names: str) -> str:
    return given((*REQUEST, "resources"), [{"name": name, "type": "origin"} for name in names])


@pytest.mark.parametrize(
    ("used", "defined", "undefined", "unused", "valid", "optimal"),
    [
        ((), (), (), (), True, True),
        (("a", "b"), ("b", "a"), (), (), True, True),
        (("a",), ("c", "a", "b", "c"), (), ("c", "b"), True, False),
        (("z", "a", "y", "z"), ("a",), ("z", "y"), (), False, False),
        (("a",), ("A",), ("a",), ("A",), False, False),
        ((), ("a",), (), ("a",), True, False),
    ],
)
def test_a_channel_is_compared_with_a_profile(
    used: tuple[str, ...],
    defined: tuple[str, ...],
    undefined: tuple[str, ...],
    unused: tuple[str, ...],
    valid: bool,
    optimal: bool,
) -> None:
    comparison = compare(resource_names(channel(*used)), profile(*defined))
    assert comparison == Comparison(undefined, unused)
    assert (comparison.is_valid, comparison.is_optimal) == (valid, optimal)
