"""Strict JSON, and errors that name the place and never what was sent."""

from __future__ import annotations

import json

import pytest
from pydantic import StrictStr

from domain.channel.channel import ChannelDocument
from domain.channel.flow import FlowDocument
from domain.kernel.errors import Malformed
from domain.kernel.json_document import Section, checked, readable
from tests.domain.channel.texts_given import faults


class Anything(Section):
    pass


NO_JSON = [
    "",
    " ",
    "{",
    "{}}",
    "{'a':1}",
    '{"a":1,}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":-Infinity}',
    "\ufeff{}",
    "\u00a0{}",
    "nul",
]


@pytest.mark.parametrize("text", [*NO_JSON, '{"a":"\0"}', '{"a":"\ud800"}', '{"a":"\\ud800"}', '{"a":' + "9" * 5000 + "}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    [(place, message)] = faults(Anything, text)
    assert place == "configurationJson"
    assert message.startswith("is not JSON: ")


@pytest.mark.parametrize("text", ["null", "1", '"{}"', "[]", "[{}]", "true"])
def test_it_must_be_an_object(text: str) -> None:
    assert faults(Anything, text) == [("configurationJson", "must be a JSON object")]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ('{"a":[1,1e400]}', ".a[1]", "is too large a number"),
        ('{"a":{"b":-1e400}}', ".a.b", "is too large a number"),
        ('{"a":["\\u0000"]}', ".a[0]", "may not have a NUL character"),
        ('{"a":{"\\u0000":1}}', ".a", "may not have a NUL character in a key"),
        ('{"\\u0000":1}', "", "may not have a NUL character in a key"),
    ],
)
def test_what_cannot_be_stored_is_refused_where_it_is(text: str, place: str, message: str) -> None:
    assert faults(Anything, text) == [(f"configurationJson{place}", message)]


def test_depth_and_number_of_values_are_limited() -> None:
    assert faults(Anything, '{"a":' + "[" * 190 + "]" * 190 + "}") == []
    [(_, message)] = faults(Anything, '{"a":' + "[" * 100_000 + "]" * 100_000 + "}")
    assert message.startswith("is not JSON: recursion limit exceeded")
    assert faults(Anything, '{"a":[' + "{}," * 15_000 + "1]}") == []
    assert faults(Anything, '{"a":[' + "{}," * 300_000 + "1]}") == [("configurationJson", "may not hold more than 20000 values")]


def test_a_long_text_of_few_values_is_fine() -> None:
    assert faults(ChannelDocument, json.dumps({"encoders": [{"name": "ü" * 500_000}]})) == []


def test_other_keys_are_nobodys_business_in_an_open_object() -> None:
    assert faults(Anything, '{"a": {"b": [1, null, "\\ud83d\\ude00"]}, "a": 2}') == []


def test_at_most_fifty_errors_are_told_each_with_a_short_field() -> None:
    text = json.dumps({"flows": [{"taskEngineSpecific": {"k" * 1000 + str(n): 1 for n in range(200)}}]})
    errors = faults(FlowDocument, text)
    assert 0 < len(errors) <= 50
    assert max(len(place) for place, _ in errors) == 200


def test_the_field_is_the_one_of_the_request() -> None:
    with pytest.raises(Malformed) as refusal:
        checked(FlowDocument, "{}", field="channel.configurationJson")
    assert refusal.value.errors[0].field == "channel.configurationJson.flows"


def test_no_message_repeats_what_was_sent() -> None:
    secret = "correct-horse-battery"
    for text in (secret, f'{{"flows": "{secret}"}}', f'{{"flows": [{{"type": "{secret}", "name": ["{secret}"]}}]}}'):
        with pytest.raises(Malformed) as refusal:
            checked(FlowDocument, text)
        assert secret not in str(refusal.value)
        assert refusal.value.__cause__ is None
        assert refusal.value.__context__ is None or refusal.value.__suppress_context__


class Part(Section):
    number: int | None = None
    name: StrictStr


class Whole(Section):
    part: Part
    all_parts: tuple[Part, ...] | None = None
    title: StrictStr | None = None


def test_a_document_is_read_without_its_faults() -> None:
    document = readable(Whole, {"part": {"number": 1, "name": 2}, "allParts": [3, {"name": "b"}, None], "title": "t", "more": 4})
    values: object = (document.part.number, document.part.name, document.title)
    assert values == (1, None, "t")
    assert document.all_parts is not None
    parts: list[tuple[object, object]] = [(part.number, part.name) for part in document.all_parts]
    assert parts == [(None, None), (None, "b"), (None, None)]


@pytest.mark.parametrize("data", [None, 1, "text", [], {}, {"part": [], "allParts": {}, "title": None}])
def test_of_anything_else_all_is_absent(data: object) -> None:
    document = readable(Whole, data)
    values: object = (document.part, document.all_parts, document.title)
    assert values == (None, None, None)
