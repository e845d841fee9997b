"""Records whose configuration holds secrets: what is kept of them, and which boxes the record holds on to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.channel.flow import required_secrets
from domain.channel.secrets import split
from domain.kernel.command import Command
from domain.kernel.encryption import SecretRef
from domain.kernel.errors import Malformed, NotFound
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.flow import Flow
from domain.record.record import RegisterRecord
from tests.domain.channel.texts_given import FLOW
from tests.domain.scenario import Fact, Scenario, fact, given

KEY = str(UUID(int=7))
REGISTERED, AMENDED, DELETED, RESTORED = Channel.EVENTS
TEXT = '{"encoders":[{"name":"a","password":null},{"name":"b","password":null}]}'
A, B = '["encoders",{"name":"a"},"password"]', '["encoders",{"name":"b"},"password"]'


def ref(number: int, mark: str = "") -> SecretRef:
    return SecretRef(reference=UUID(int=number), fingerprint=mark or f"mark {number}")


def brought(text: str = TEXT, required: list[str] | None = None, **sent: SecretRef | None) -> SentConfiguration:
    """`a` and `b` are the secrets of the encoders."""
    places = {"a": A, "b": B}
    separated = split(text)
    given_places = {places[name]: ref for name, ref in sent.items()}
    return SentConfiguration(text, given_places, separated.holders, separated.nulls, required or ())


def no_record(kind: type[Any], *since: Fact) -> Scenario[Any]:
    return given(kind, KEY, *since)


def a_channel(*since: Fact, **secrets: SecretRef) -> Scenario[Any]:
    stored = {{"a": A, "b": B}[name]: ref for name, ref in secrets.items()}
    return given(Channel, KEY, fact(REGISTERED, name="One", configuration_json=TEXT, secrets=stored), *since)


def amend(**changes: Any) -> Command[Any]:
    return Channel.amend.on(KEY, changes)


def holds(record: Any) -> set[int]:
    assert record is not None
    return {secret.int for secret in record.secrets()}


def test_the_text_is_kept_without_its_secrets_and_the_secrets_by_reference() -> None:
    command = RegisterRecord(KEY, Channel, {"name": "One", "configuration_json": brought(a=ref(1), b=None)})
    channel = no_record(Channel).when(command).then(fact(REGISTERED, name="One", configuration_json=TEXT, secrets={A: ref(1)}))
    assert holds(channel) == {1}


def test_without_a_configuration_there_are_no_secrets() -> None:
    channel = no_record(Channel).when(RegisterRecord(KEY, Channel, {"name": "One"})).then(fact(REGISTERED, name="One"))
    assert (channel.details.configuration_json, holds(channel)) == ("{}", set())


def test_what_is_not_sent_is_kept() -> None:
    both = a_channel(a=ref(1), b=ref(2))
    assert holds(both.when(amend(configuration_json=brought())).then_nothing()) == {1, 2}
    assert holds(both.when(amend(name="Two")).then(fact(AMENDED, name="Two"))) == {1, 2}


def test_the_same_secret_stays_where_it_lies() -> None:
    again = amend(configuration_json=brought(a=ref(9, mark="mark 1")))
    assert holds(a_channel(a=ref(1)).when(again).then_nothing()) == {1}


def test_a_new_secret_replaces_the_old_and_null_clears_it() -> None:
    both = a_channel(a=ref(1), b=ref(2))
    other = both.when(amend(configuration_json=brought(a=ref(3)))).then(fact(AMENDED, secrets={A: ref(3), B: ref(2)}))
    assert holds(other) == {3, 2}
    cleared = both.when(amend(configuration_json=brought(a=None))).then(fact(AMENDED, secrets={B: ref(2)}))
    assert holds(cleared) == {2}


def test_a_secret_goes_with_its_holder_and_moves_with_it() -> None:
    both = a_channel(a=ref(1), b=ref(2))
    moved = json.dumps({"encoders": [{"name": "b"}, {"name": "new"}, {"name": "a"}]})
    assert holds(both.when(amend(configuration_json=brought(moved))).then(fact(AMENDED, configuration_json=moved))) == {1, 2}
    less = json.dumps({"encoders": [{"name": "b"}]})
    happened = fact(AMENDED, configuration_json=less, secrets={B: ref(2)})
    assert holds(both.when(amend(configuration_json=brought(less))).then(happened)) == {2}


def renamed(*names: str, password: bool = True) -> SentConfiguration:
    """Encoders of these names, each with null for its password, or without one."""
    return brought(json.dumps({"encoders": [{"name": name} | ({"password": None} if password else {}) for name in names]}))


def place(name: str) -> str:
    return f'["encoders",{{"name":"{name}"}},"password"]'


@pytest.mark.parametrize("names", [("a", "new"), ("new", "a")])
def test_a_renamed_entry_keeps_its_secret(names: tuple[str, ...]) -> None:
    both = a_channel(a=ref(1), b=ref(2))
    text = renamed(*names)
    happened = fact(AMENDED, configuration_json=text.text, secrets={A: ref(1), place("new"): ref(2)})
    assert holds(both.when(amend(configuration_json=text)).then(happened)) == {1, 2}


@pytest.mark.parametrize(
    ("text", "remaining"),
    [
        (renamed("a", "new", password=False), {1}),  # says nothing of a secret: it may be another encoder
        (renamed("new", "newer"), set()),  # nobody can say which is which
        (renamed("a", "b", "new"), {1, 2}),
        (renamed("a"), {1}),
        (renamed("a", "new", "newer"), {1}),
    ],
)
def test_nobody_else_is_given_a_secret(text: SentConfiguration, remaining: set[int]) -> None:
    after = a_channel(a=ref(1), b=ref(2)).when(amend(configuration_json=text)).after
    assert holds(after) == remaining


def test_a_deleted_record_holds_no_secrets_and_comes_back_without_them() -> None:
    gone = a_channel(a=ref(1)).when(Channel.delete.on(KEY)).then(fact(DELETED))
    assert holds(gone) == set()
    command = RegisterRecord(KEY, Channel, {"name": "One", "configuration_json": brought()})
    back = a_channel(fact(DELETED), a=ref(1)).when(command)
    assert holds(back.then(fact(RESTORED, name="One", configuration_json=TEXT, secrets={}))) == set()


def test_what_a_new_record_needs_is_named() -> None:
    for history in ((), (fact(Flow.EVENTS[0], name="x", configuration_json="{}"), fact(Flow.EVENTS[2]))):
        refused = no_record(Flow, *history).when(RegisterRecord(KEY, Flow, {})).then_refused(Malformed)
        assert [error.field for error in refused.errors] == ["name", "configurationJson"]
    no_record(Flow).when(Flow.amend.on(KEY, {})).then_refused(NotFound)


@pytest.mark.parametrize("missing", [[A], [A, B]])
def test_a_required_secret_must_come_with_its_holder(missing: list[str]) -> None:
    values = {"name": "One", "configuration_json": brought(required=missing)}
    refused = no_record(Channel).when(RegisterRecord(KEY, Channel, values)).then_refused(Malformed)
    assert [error.field for error in refused.errors] == [
        f"configurationJson.encoders[{index}].password" for index in range(len(missing))
    ]
    for present in (brought(required=[A], a=ref(1)), brought(required=[A], a=None)):
        no_record(Channel).when(RegisterRecord(KEY, Channel, {"name": "One", "configuration_json": present})).then(
            fact(REGISTERED, name="One", configuration_json=TEXT, secrets={A: ref(1)} if present.sent[A] else {})
        )


def test_a_required_secret_is_not_asked_for_again() -> None:
    a_channel(a=ref(1)).when(amend(configuration_json=brought(required=[A]))).then_nothing()
    a_channel().when(amend(configuration_json=brought(required=[A]))).then_nothing()
    more = json.dumps({"encoders": [7, {"name": "c"}, {"name": "a"}]})
    refused = a_channel().when(amend(configuration_json=brought(more, [A, place("c")]))).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["configurationJson.encoders[1].password"]
    text = renamed("a", "c")
    command = amend(configuration_json=replace(text, required=[A, place("c")]))
    a_channel().when(command).then(fact(AMENDED, configuration_json=text.text))


def test_a_flow_needs_the_keys_of_its_publishing_points_and_a_channel_none() -> None:
    text = json.dumps(FLOW)
    assert list(Flow.required_secrets(text)) == required_secrets(text) != []
    assert list(Channel.required_secrets(text)) == []


AT = '{"rampServers":[{"serverAddress":"%s","apiKey":null}]}'
RAMP = '["rampServers",{"serverAddress":"%s"},"apiKey"]'


def at(host: str, secret: SecretRef | None = None) -> SentConfiguration:
    """The configuration of a channel with one ramp server."""
    separated = split(AT % host)
    return SentConfiguration(AT % host, {RAMP % host: secret} if secret else {}, separated.holders, separated.nulls)


def test_a_secret_does_not_go_to_another_address() -> None:
    was = fact(REGISTERED, name="One", configuration_json=AT % "a.test/1", secrets={RAMP % "a.test/1": ref(1)})
    channel: Scenario[Any] = given(Channel, KEY, was)
    assert holds(channel.when(amend(configuration_json=at("a.test/2"))).after) == {1}
    refused = channel.when(amend(configuration_json=at("b.test/1"))).then_refused(Malformed)
    assert [error.field for error in refused.errors] == ["configurationJson.rampServers[0].apiKey"]
    assert holds(channel.when(amend(configuration_json=at("b.test/1", ref(2)))).after) == {2}
