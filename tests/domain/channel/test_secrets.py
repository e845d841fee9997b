"""Secrets of a configuration: separated from the text, identified by their object, kept and deleted with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.channel.secrets import WRITE_ONLY, after_renaming, entries_of, merge_secrets, path_of, split
from domain.kernel.errors import Malformed
from tests.domain.channel.texts_given import CHANNEL, FLOW, spelled


@pytest.mark.parametrize(
    ("text", "masked", "sent"),
    [
        ("{}", "{}", {}),
        ('{"apiKey":"k"}', '{"apiKey":null}', {'["apiKey"]': "k"}),
        ('{"apiKey":""}', '{"apiKey":null}', {'["apiKey"]': ""}),
        ('{"apiKey":null}', '{"apiKey":null}', {}),
        (' {\t"apiKey" \n:\r "k" , "n" : 1.50e+2 } ', ' {\t"apiKey" \n:\r null , "n" : 1.50e+2 } ', {'["apiKey"]': "k"}),
        ('{"PASSWORD":"k"}', '{"PASSWORD":null}', {'["password"]': "k"}),
        ('{"api\\u004bey":"k"}', '{"api\\u004bey":null}', {'["apiKey"]': "k"}),
        ('{"apiKey":"\\"}\\\\","b":"x"}', '{"apiKey":null,"b":"x"}', {'["apiKey"]': '"}\\'}),
        ('{"apiKey":"\\ud83d\\ude00ü"}', '{"apiKey":null}', {'["apiKey"]': "😀ü"}),
        ('{"a":"\\"apiKey\\":\\"k\\""}', '{"a":"\\"apiKey\\":\\"k\\""}', {}),
        ('{"a":"apiKey","b":["apiKey","k"]}', '{"a":"apiKey","b":["apiKey","k"]}', {}),
        ('{"a":[[{"password":"k"}]]}', '{"a":[[{"password":null}]]}', {'["a",0,0,"password"]': "k"}),
        ('{"a":{"srvaApiKey":"k"},"b":1}', '{"a":{"srvaApiKey":null},"b":1}', {'["a","srvaApiKey"]': "k"}),
        ('{"apiKeys":"k","xpassword":"k"}', '{"apiKeys":"k","xpassword":"k"}', {}),
    ],
)
def test_the_text_stays_character_for_character_but_for_the_secrets(text: str, masked: str, sent: dict[str, str]) -> None:
    separated = split(text)
    assert separated.text == masked
    assert separated.sent == sent


@pytest.mark.parametrize(
    ("text", "masked", "sent"),
    [
        ('{"apiKey":"1","apiKey":"2"}', '{"apiKey":null,"apiKey":null}', {'["apiKey"]': "2"}),
        ('{"apiKey":"1","APIKEY":"2","apiKey":"3"}', '{"apiKey":null,"APIKEY":null,"apiKey":null}', {'["apiKey"]': "3"}),
        ('{"apiKey":"1","apikey":null}', '{"apiKey":null,"apikey":null}', {}),
        ('{"a":{"apiKey":"1"},"a":{}}', '{"a":{"apiKey":null},"a":{}}', {}),
        ('{"a":{"apiKey":"1"},"a":{"apiKey":"2"}}', '{"a":{"apiKey":null},"a":{"apiKey":null}}', {'["a","apiKey"]': "2"}),
    ],
)
def test_of_a_repeated_key_all_are_masked_and_the_last_counts(text: str, masked: str, sent: dict[str, str]) -> None:
    separated = split(text)
    assert separated.text == masked
    assert separated.sent == sent


@pytest.mark.parametrize("value", ["1", "true", '["secret-text"]', '{"a":"secret-text"}', "1.5"])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"apiKey":%s}', "configurationJson.apiKey"),
        ('{"a":[{"name":"n"},{"name":"m","password" : %s}]}', "configurationJson.a[1].password"),
        ('{"a":{"srvaApiKey":%s},"a":1}', "configurationJson"),
        ('{"apiKey":%s,"apiKey":"x"}', "configurationJson"),
    ],
)
def test_a_secret_is_a_string(text: str, place: str, value: str) -> None:
    with pytest.raises(Malformed) as refusal:
        split(text % value)
    [error] = refusal.value.errors
    assert error.field == place
    assert error.message.startswith(("must be a string", "must have a string wherever it has "))
    assert "secret-text" not in str(refusal.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"apiKey":"k"', '{"a":"\\u0000"}', "{'apiKey':'k'}"])
def test_what_is_no_json_object_is_refused_here_too(text: str) -> None:
    with pytest.raises(Malformed):
        split(text, field="configurationJson")


def test_plaintext_does_not_show() -> None:
    separated = split(json.dumps(CHANNEL))
    assert sorted(separated.sent.values()) == ["first-key", "open sesame", "ramp-key"]
    assert [secret for secret in separated.sent.values() if secret in repr(separated) or secret in separated.text] == []


def test_the_paths_of_a_channel_and_a_flow() -> None:
    assert {spelled(path): secret for path, secret in split(json.dumps(CHANNEL)).sent.items()} == {
        "encoders[enc-1].settings.password": "open sesame",
        "encoders[enc-1].streamingServer.streamingServerSpecific.primaryPublishingPoint.srvaApiKey": "first-key",
        "rampServers[http://ramp].apiKey": "ramp-key",
    }
    assert [spelled(path).rsplit(".", 2)[0] for path in split(json.dumps(FLOW)).sent] == [
        "flows[main].streamingServer.streamingServerSpecific"
    ] * 2


def test_holders_are_all_objects() -> None:
    text = '{"a":{"b":[{"name":"n","c":{}},[{}],1]},"d":{},"d":[]}'
    assert split(text).holders.keys() == {"[]", '["a"]', '["a","b",{"name":"n"}]', '["a","b",{"name":"n"},"c"]', '["a","b",1,0]'}


@pytest.mark.parametrize(
    ("entries", "steps"),
    [
        ([{"name": "a"}, {"name": "b"}], [{"name": "a"}, {"name": "b"}]),
        ([{"name": "a"}, {"name": "a"}, {"name": "b"}], [0, 1, {"name": "b"}]),
        ([{"name": "a", "id": "1"}, {"name": "a", "id": "2"}], [{"id": "1"}, {"id": "2"}]),
        ([{"id": "1"}, {"name": "1"}, {"serverAddress": "1"}], [{"id": "1"}, {"name": "1"}, {"serverAddress": "1"}]),
        ([{"name": 1}, {"name": ""}, {"name": None, "id": "x"}, {}], [0, 1, {"id": "x"}, 3]),
        ([{"name": "n" * 500, "serverAddress": "s"}, {"name": "n" * 500}], [{"serverAddress": "s"}, 1]),
        ([{"name": '"]'}, {"name": "ü"}], [{"name": '"]'}, {"name": "ü"}]),
        ([{"Name": "a"}, {"name": "x", "NAME": "a"}], [0, {"name": "x"}]),
    ],
)
def test_an_entry_goes_by_a_name_of_its_own_or_else_by_its_index(entries: list[Any], steps: list[Any]) -> None:
    text = json.dumps({"list": [{**entry, "apiKey": "k"} for entry in entries]})
    assert list(split(text).sent) == [path_of(("list", step, "apiKey")) for step in steps]


def test_a_path_is_short_enough_for_an_index_entry() -> None:
    name = {"name": "n" * 190}
    assert len(next(iter(split(json.dumps({"list": [{**name, "apiKey": "k"}]})).sent))) < 600
    with pytest.raises(Malformed) as refusal:
        split(json.dumps({"k" * 700: {"apiKey": "secret"}}))
    assert refusal.value.errors[0].message == "the names above a key or password are too long"
    assert split(json.dumps({"k" * 700: {"apiKey": None}, "b": {}})).holders.keys() == {"[]", '["b"]'}


def stored_after(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """Return the secrets that are stored after both texts were written."""
    first, second = split(json.dumps(old)), split(json.dumps(new))
    stored = merge_secrets({}, {path: text or None for path, text in first.sent.items()}, holders=first.holders)
    after = merge_secrets(stored, {path: text or None for path, text in second.sent.items()}, holders=second.holders)
    return {spelled(path): text for path, text in after.items()}


A, B = {"name": "a", "apiKey": "of a"}, {"name": "b", "apiKey": "of b"}
ASKED_A, ASKED_B = {"name": "a", "apiKey": None}, {"name": "b"}


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ([A, B], [ASKED_A, ASKED_B], {"list[a].apiKey": "of a", "list[b].apiKey": "of b"}),
        ([A, B], [ASKED_B, {"name": "new"}, ASKED_A], {"list[a].apiKey": "of a", "list[b].apiKey": "of b"}),
        ([A, B], [ASKED_B], {"list[b].apiKey": "of b"}),
        ([A, B], [{"name": "a", "apiKey": ""}, ASKED_B], {"list[b].apiKey": "of b"}),
        ([A, B], [{"name": "a", "APIKEY": "new"}, ASKED_B], {"list[a].apiKey": "new", "list[b].apiKey": "of b"}),
        ([A], [{"name": "renamed"}], {}),
        ([A], [], {}),
        ([A], [5], {}),
        ([{"apiKey": "x"}], [{}], {"list[0].apiKey": "x"}),
        ([{"apiKey": "x"}], [{"name": "a"}, {}], {}),
    ],
)
def test_a_secret_is_kept_replaced_cleared_or_dropped_with_its_owner(old: Any, new: Any, after: dict[str, str]) -> None:
    assert stored_after({"list": old}, {"list": new}) == after


def test_what_a_get_shows_can_be_sent_back() -> None:
    for document in (CHANNEL, FLOW):
        first = split(json.dumps(document))
        again = split(first.text)
        assert again.sent == {}
        assert again.text == first.text
        assert merge_secrets(first.sent, again.sent, holders=again.holders) == first.sent


SECRET_KEYS = ["apiKey", "srvaApiKey", "password", "APIKEY", "Password"]
plain_keys = st.sampled_from(["a", "name", "id", 'q"', "ü\\", "apiKeys", ":"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
secrets_sent = st.text(max_size=8).map(lambda text: f'§{text}\\"secret§') | st.just("") | st.none()


def objects(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(plain_keys, below, max_size=3)
    hidden = st.dictionaries(st.sampled_from(SECRET_KEYS), secrets_sent, max_size=1)
    return st.builds(lambda shown, secret: shown | secret, members, hidden)


values = st.recursive(scalars, lambda below: objects(below) | st.lists(below, max_size=3), max_leaves=12)


def nulled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key.casefold() in WRITE_ONLY else nulled(item) for key, item in value.items()}
    return [nulled(item) for item in value] if isinstance(value, list) else value


@given(objects(values), st.booleans(), st.sampled_from([None, 2]))
def test_the_masked_text_is_the_same_value_without_any_secret(
    document: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent).replace("\\u0000", "0")
    separated = split(text)
    assert json.loads(separated.text) == nulled(json.loads(text))
    for secret in separated.sent.values():
        assert len(secret) < 8 or secret not in separated.text
        assert len(secret) < 8 or json.dumps(secret, ensure_ascii=ascii_only) not in separated.text
    assert "secret§" not in separated.text
    assert "secret\\u00a7" not in separated.text
    again = split(separated.text)
    assert again.text == separated.text
    assert merge_secrets(separated.sent, again.sent, holders=again.holders) == separated.sent


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ('{"a":[{"name":"x","b":[{"name":"y"}]}]}', '{"a":[{"name":"z","b":[{"name":"y"}]}]}', "a[z].b[y].apiKey"),
        ('{"a":[{"name":"x","b":[{"name":"y"}]}]}', '{"a":[{"name":"z","b":[{"name":"w"}]}]}', "a[z].b[w].apiKey"),
        ('{"a":[{"name":"x","b":[{"name":"y"}]}]}', '{"a":[{"name":"x","b":[]}]}', "a[x].b[y].apiKey"),
        ('{"a":[{"name":"x","b":[{"name":"y"}]}]}', '{"a":[{"name":"v"},{"name":"w"}]}', "a[x].b[y].apiKey"),
        ('{"a":[{"name":"x","b":[{"name":"y"}]},{"name":"v"}]}', '{"a":[{"name":"v"},{"name":"w"}]}', "a[w].b[y].apiKey"),
    ],
)
def test_an_entry_that_alone_was_renamed_is_followed_at_every_depth(old: str, new: str, moved: str) -> None:
    path = '["a",{"name":"x"},"b",{"name":"y"},"apiKey"]'
    entries = [entries_of(split(text).holders) for text in (old, new)]
    assert spelled(after_renaming(path, old=entries[0], new=entries[1])) == moved


def test_secrets_that_are_null_are_known() -> None:
    assert split('{"apiKey":null,"a":[{"name":"x","PASSWORD":null,"n":null}]}').nulls == {
        '["apiKey"]',
        '["a",{"name":"x"},"password"]',
    }


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('"srvaApi":"https://a.test/x"', '"srvaApi":"https://A.test:443/y"', True),
        ('"srvaApi":"https://a.test"', '"srvaApi":"http://a.test"', False),
        ('"srvaApi":"https://a.test"', '"srvaApi":"https://b.test"', False),
        ('"serverAddress":"a.test/x"', '"serverAddress":"a.test/y"', True),
        ('"serverAddress":"a.test"', '"serverAddress":"b.test"', False),
        ('"serverAddress":"a.test"', '"serverAddress":null', False),
        ('"ip":"10.0.0.1","port":80', '"ip":"10.0.0.1","port":81', False),
        ('"anything":"https://a.test"', '"anything":"https://b.test"', False),
        ('"name":"a"', '"name":"b"', True),
        ('"apiKey":"a"', '"apiKey":"b"', True),
    ],
)
def test_the_origins_beside_a_secret(first: str, second: str, same: bool) -> None:
    matches = [split(f"{{{text}}}").holders["[]"] for text in (first, second)]
    assert (matches[0] == matches[1]) is same
