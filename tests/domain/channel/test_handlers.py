"""Use cases of channels, flows and infrastructure profiles over in-memory twins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from domain.channel.handlers import ConfigurationHandlers, ProfileHandlers
from domain.kernel.cause import Cause
from domain.kernel.errors import Conflict, Malformed, NotFound, PreconditionFailed
from domain.kernel.ports import Invocation, Outcome
from domain.record.handlers import RecordHandlers
from domain.record.kinds.channel import Channel
from domain.record.kinds.flow import Flow
from domain.record.kinds.infrastructure_profile import InfrastructureProfile
from tests.domain.channel.texts_given import FLOW, PROFILE, SRVA, without
from tests.domain.memory import Memory

KEY, OTHER = UUID(int=101), UUID(int=102)
ME = Invocation.by("me")
REGISTERED, AMENDED = "channel.registered", "channel.amended"


class Owners:
    """Another channel sends to the point `news`."""

    async def taken_points(self, text: str, *, channel: object) -> Sequence[str]:
        return ["news"] if "/news" in text else []


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def configurations(memory: Memory) -> ConfigurationHandlers:
    return ConfigurationHandlers(memory.executor, memory.vault, Owners())


@pytest.fixture
def profiles(memory: Memory) -> ProfileHandlers:
    return ProfileHandlers(RecordHandlers(memory.executor, memory.records))


def encoder(name: str, secret: Any) -> dict[str, Any]:
    return {"name": name, "encoderSpecific": {"password": secret}}


def channel(*encoders: dict[str, Any]) -> dict[str, Any]:
    return {"name": "Main", "configuration_json": json.dumps({"encoders": list(encoders)})}


async def secrets_of(memory: Memory, outcome: Outcome[Any]) -> dict[str, str | None]:
    """The decrypted secrets of a record, by the name of their encoder."""
    secrets = outcome.aggregate.details.secrets
    return {
        json.loads(path)[1]["name"]: await memory.vault.read(ref.reference, owner=outcome.aggregate.id)
        for path, ref in secrets.items()
    }


async def test_a_new_channel_keeps_its_secrets_apart_from_the_text(memory: Memory, configurations: ConfigurationHandlers) -> None:
    outcome = await configurations.register(Channel, channel(encoder("a", "k")), invocation=ME)
    assert json.loads(outcome.aggregate.details.configuration_json) == {"encoders": [encoder("a", None)]}
    assert await secrets_of(memory, outcome) == {"a": "k"}
    assert [secret.owner for secret in memory.log.vault.values()] == [outcome.aggregate.id]
    assert memory.topics == [REGISTERED]


async def test_without_a_key_each_is_a_new_record(configurations: ConfigurationHandlers) -> None:
    first, second = [await configurations.register(Channel, {"name": "Main"}, invocation=ME) for _ in range(2)]
    assert first.aggregate.key != second.aggregate.key
    assert first.aggregate.details.configuration_json == "{}"


async def test_with_a_key_the_record_is_new_or_changed(memory: Memory, configurations: ConfigurationHandlers) -> None:
    values = {"name": "One", "configuration_json": json.dumps(FLOW)}
    await configurations.register(Flow, values, key=KEY, invocation=ME)
    outcome = await configurations.register(Flow, {"name": "Two"}, key=KEY, invocation=ME)
    assert (outcome.aggregate.key, outcome.aggregate.details.name) == (str(KEY), "Two")
    assert memory.topics == ["flow.registered", "flow.amended"]
    assert len(memory.log.vault) == 2


async def test_null_and_absent_keep_a_secret_and_the_empty_text_clears_it(
    memory: Memory, configurations: ConfigurationHandlers
) -> None:
    await configurations.register(Channel, channel(encoder("a", "k"), encoder("b", "l")), key=KEY, invocation=ME)
    absent = {"name": "b", "encoderSpecific": {"more": 1}}
    outcome = await configurations.amend(Channel, KEY, values=channel(encoder("a", None), absent), invocation=ME)
    assert await secrets_of(memory, outcome) == {"a": "k", "b": "l"}
    named = await configurations.amend(Channel, KEY, values={"name": "Other"}, invocation=ME)
    assert await secrets_of(memory, named) == {"a": "k", "b": "l"}
    cleared = await configurations.amend(Channel, KEY, values=channel(encoder("a", ""), encoder("b", None)), invocation=ME)
    assert await secrets_of(memory, cleared) == {"b": "l"}
    assert len(memory.log.vault) == 1


async def test_the_same_secret_again_changes_nothing(memory: Memory, configurations: ConfigurationHandlers) -> None:
    for _ in range(2):
        outcome = await configurations.register(Channel, channel(encoder("a", "k")), key=KEY, invocation=ME)
    assert (outcome.position, outcome.aggregate.version) == (None, 1)
    assert memory.topics == [REGISTERED]
    assert await secrets_of(memory, outcome) == {"a": "k"}
    assert len(memory.log.vault) == 1


async def test_a_changed_secret_replaces_the_old_one(memory: Memory, configurations: ConfigurationHandlers) -> None:
    await configurations.register(Channel, channel(encoder("a", "k"), encoder("b", "l")), key=KEY, invocation=ME)
    stored = set(memory.log.vault)
    changed = await configurations.amend(Channel, KEY, values=channel(encoder("a", "new"), encoder("b", None)), invocation=ME)
    assert await secrets_of(memory, changed) == {"a": "new", "b": "l"}
    assert (len(memory.log.vault), len(stored & memory.log.vault.keys())) == (2, 1)
    assert memory.topics == [REGISTERED, AMENDED]


async def test_a_secret_goes_with_its_encoder_and_does_not_come_back(memory: Memory, configurations: ConfigurationHandlers) -> None:
    await configurations.register(Channel, channel(encoder("a", "k"), encoder("b", "l")), key=KEY, invocation=ME)
    stored = dict(memory.log.vault)
    moved = channel(encoder("b", None), encoder("c", None), encoder("a", None))
    assert await secrets_of(memory, await configurations.amend(Channel, KEY, values=moved, invocation=ME)) == {"a": "k", "b": "l"}
    assert memory.log.vault == stored
    for encoders in ([encoder("b", None)], [encoder("b", None), encoder("a", None)]):
        outcome = await configurations.amend(Channel, KEY, values=channel(*encoders), invocation=ME)
        assert await secrets_of(memory, outcome) == {"b": "l"}


async def test_a_required_key_of_a_flow_may_be_cleared_and_is_not_required_again(
    memory: Memory, configurations: ConfigurationHandlers
) -> None:
    values = {"name": "One", "configuration_json": json.dumps(FLOW)}
    await configurations.register(Flow, values, key=KEY, invocation=ME)
    empty = {point: {**settings, "srvaApiKey": ""} for point, settings in SRVA.items()}
    server = {"type": "SRVA", "streamingServerSpecific": empty}
    text = json.dumps({"flows": [{**FLOW["flows"][0], "streamingServer": server}]})
    cleared = await configurations.amend(Flow, KEY, values={"configuration_json": text}, invocation=ME)
    assert memory.log.vault == {}
    shown = cleared.aggregate.details.configuration_json
    again = await configurations.amend(Flow, KEY, values={"configuration_json": shown}, invocation=ME)
    assert (again.position, again.aggregate.version) == (None, 2)


async def test_the_same_secret_of_two_owners_has_two_fingerprints(memory: Memory, configurations: ConfigurationHandlers) -> None:
    outcomes = [await configurations.register(Channel, channel(encoder("a", "k")), invocation=ME) for _ in range(2)]
    fingerprints = {ref.fingerprint for outcome in outcomes for ref in outcome.aggregate.details.secrets.values()}
    assert len(fingerprints) == 2
    assert {secret.owner for secret in memory.log.vault.values()} == {outcome.aggregate.id for outcome in outcomes}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "configurationJson"),
        ('{"encoders": [{}, {"name": 1}]}', "configurationJson.encoders[1].name"),
        ('{"rampServers": [{"apiKey": 7}]}', "configurationJson.rampServers[0].apiKey"),
    ],
)
async def test_a_configuration_that_does_not_fit_the_schema_is_refused(
    memory: Memory, configurations: ConfigurationHandlers, text: str, field: str
) -> None:
    values = {"name": "Main", "configuration_json": text}
    for refused in (
        configurations.register(Channel, values, invocation=ME),
        configurations.amend(Channel, KEY, values=values, invocation=ME),
    ):
        with pytest.raises(Malformed) as malformed:
            await refused
        assert [error.field for error in malformed.value.errors] == [field]
    assert (memory.topics, memory.log.vault) == ([], {})


async def test_a_refused_change_stores_no_secret(memory: Memory, configurations: ConfigurationHandlers) -> None:
    await configurations.register(Channel, channel(encoder("a", "k")), key=KEY, invocation=ME)
    stored = dict(memory.log.vault)
    other = channel(encoder("a", "other"))
    with pytest.raises(PreconditionFailed):
        await configurations.amend(Channel, KEY, values=other, invocation=Invocation(Cause.by("me"), frozenset({9})))
    with pytest.raises(NotFound):
        await configurations.amend(Channel, OTHER, values=other, invocation=ME)
    assert (memory.topics, memory.log.vault) == ([REGISTERED], stored)


def profile(**values: Any) -> dict[str, Any]:
    return {"name": "Small", "configuration_json": json.dumps(PROFILE), **values}


async def test_a_profile_without_a_key_is_new_and_with_one_is_changed(memory: Memory, profiles: ProfileHandlers) -> None:
    made = await profiles.add_or_update(None, profile(), invocation=ME)
    changed = await profiles.add_or_update(made.aggregate.key, {"name": "Large"}, invocation=ME)
    assert changed.aggregate.details.name == "Large"
    assert memory.topics == ["infrastructure_profile.registered", "infrastructure_profile.amended"]
    with pytest.raises(NotFound):
        await profiles.add_or_update(OTHER, profile(), invocation=ME)


async def test_a_reference_of_another_profile_is_refused_at_its_field(memory: Memory, profiles: ProfileHandlers) -> None:
    await profiles.add_or_update(None, profile(reference_id="A"), invocation=ME)
    other = await profiles.add_or_update(None, profile(reference_id="a"), invocation=ME)
    for key in (None, other.aggregate.key):
        with pytest.raises(Malformed) as malformed:
            await profiles.add_or_update(key, profile(reference_id="A"), invocation=ME)
        assert [error.field for error in malformed.value.errors] == ["referenceId"]
    assert memory.topics == [f"{InfrastructureProfile.KIND}.registered"] * 2


async def test_a_profile_configuration_that_does_not_fit_the_schema_is_refused(memory: Memory, profiles: ProfileHandlers) -> None:
    text = without(PROFILE, ("request", "resources", 0, "name"))
    for key in (None, KEY):
        with pytest.raises(Malformed) as malformed:
            await profiles.add_or_update(key, profile(configuration_json=text), invocation=ME)
        assert [error.field for error in malformed.value.errors] == ["configurationJson.request.resources[0].name"]
    assert memory.topics == []


async def test_a_channel_does_not_send_to_the_point_of_another_unless_an_admin_says_so(
    configurations: ConfigurationHandlers,
) -> None:
    """Otherwise its encoder would get a token of that point."""
    taken = {"name": "One", "configuration_json": '{"encoders": [], "to": "/news"}'}
    with pytest.raises(Conflict, match="only an admin"):
        await configurations.register(Channel, taken, invocation=ME)
    added = await configurations.register(Channel, {"name": "One"}, invocation=ME)
    with pytest.raises(Conflict, match="only an admin"):
        await configurations.amend(Channel, added.aggregate.key, values=taken, invocation=ME)
    await configurations.amend(Channel, added.aggregate.key, values=taken, invocation=ME, shares=True)
    await configurations.amend(Channel, added.aggregate.key, values={"name": "Two"}, invocation=ME)
