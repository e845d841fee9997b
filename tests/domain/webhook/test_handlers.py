"""Use cases of webhooks over in-memory twins."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.errors import Conflict, Malformed, NotFound, PreconditionFailed
from domain.kernel.idempotency import IdempotencyKey
from domain.kernel.ports import Invocation
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from domain.webhook.details import WebhookFamily
from domain.webhook.endpoint import encode_secret
from domain.webhook.handlers import WebhookChanges, WebhookHandlers
from tests.domain.memory import Memory
from tests.domain.scenario import NOW, fact

KEY, EVENT, OTHER_EVENT, MISSING = (UUID(int=number) for number in range(1, 5))
ME = Invocation.by("me")
URL = "https://hooks.test/a"
REGISTERED, AMENDED, *_ = Webhook.EVENTS
SYSTEM_WIDE, OF_EVENT = WebhookFamily.SYSTEM_WIDE, WebhookFamily.EVENT
SECRET = encode_secret(bytes(32))
TOKEN = json.dumps({"headers": [{"name": "X-Token", "value": "swordfish"}]})


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def handlers(memory: Memory) -> WebhookHandlers:
    return WebhookHandlers(memory.executor, memory.records, events=memory.events, vault=memory.vault, random=bytes)


def changes(password: str | None = None, **values: Any) -> WebhookChanges:
    return WebhookChanges(values, password)


def event(key: UUID) -> AddOrUpdateEvent:
    return AddOrUpdateEvent(key, {"title": "Final"})


async def given_webhook(memory: Memory, **values: Any) -> None:
    """Add a webhook whose signing secret is in the vault."""
    signing = memory.vault.encrypt("old", owner=Webhook.stream(KEY))
    fields = {"webhook_url": URL, **values, "secrets": {"signing": signing.ref}}
    await memory.given(event(EVENT), event(OTHER_EVENT), RegisterRecord(KEY, Webhook, fields, sealed=[signing]))


async def secrets_of(memory: Memory, webhook: Any) -> dict[str, str | None]:
    return {name: await memory.vault.read(ref.reference, owner=webhook.id) for name, ref in webhook.details.secrets.items()}


async def test_a_new_webhook_gets_a_secret_and_its_credentials_are_only_in_the_vault(
    memory: Memory, handlers: WebhookHandlers
) -> None:
    added = await handlers.add(changes("hunter2", webhook_url=URL, username="u", additional_properties_json=TOKEN), invocation=ME)
    webhook = added.aggregate
    assert (added.secrets, added.result) == ({"secret": SECRET}, {"added": True})
    assert await secrets_of(memory, webhook) == {"signing": SECRET, "password": "hunter2", "header:x-token": "swordfish"}
    assert webhook.details.additional_properties_json == TOKEN.replace('"swordfish"', "null")
    assert memory.topics == ["webhook.registered"]
    assert not any(secret in repr(memory.happened) for secret in (SECRET, "hunter2", "swordfish"))
    assert "swordfish" not in repr(changes("hunter2", additional_properties_json=TOKEN))
    assert "hunter2" not in repr(changes("hunter2"))


async def test_a_webhook_of_an_event_needs_the_event(memory: Memory, handlers: WebhookHandlers) -> None:
    await memory.given(event(EVENT), event(OTHER_EVENT), MediaEvent.delete.on(OTHER_EVENT))
    for missing in (MISSING, OTHER_EVENT):
        with pytest.raises(NotFound):
            await handlers.add(changes(webhook_url=URL, event_id=missing), invocation=ME)
    assert memory.topics == []
    added = await handlers.add(changes(webhook_url=URL, event_id=EVENT), invocation=ME)
    assert added.aggregate.details.family is OF_EVENT


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "webhookUrl"),
        ({"webhook_url": "ftp://a"}, "webhookUrl"),
        ({"webhook_url": URL, "username": "a:b"}, "username"),
        ({"webhook_url": URL, "password": "a\nb"}, "password"),
        ({"webhook_url": URL, "use_http_basic_authentication": True}, "username"),
        ({"webhook_url": URL, "additional_properties_json": "{}"}, "additionalPropertiesJson.headers"),
    ],
)
async def test_bad_input_is_reported_before_a_missing_event(
    memory: Memory, handlers: WebhookHandlers, wrong: dict[str, Any], field: str
) -> None:
    with pytest.raises(Malformed) as refused:
        await handlers.add(changes(**wrong, event_id=MISSING), invocation=ME)
    assert [error.field for error in refused.value.errors] == [field]
    assert memory.topics == []


async def test_fields_that_are_not_set_stay_as_they_are(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory, username="u")
    updated = await handlers.update(KEY, changes(use_json_body=False), family=SYSTEM_WIDE, invocation=ME)
    assert (updated.result, updated.secrets) == ({}, {})
    assert memory.happened == [fact(AMENDED, use_json_body=False)]
    again = await handlers.update(KEY, changes(use_json_body=False, username="u"), family=SYSTEM_WIDE, invocation=ME)
    assert again.position is None


@pytest.mark.parametrize(
    ("about", "family"),
    [({}, SYSTEM_WIDE), ({"event_id": EVENT}, OF_EVENT)],
)
async def test_a_webhook_of_another_family_counts_as_missing(
    memory: Memory, handlers: WebhookHandlers, about: dict[str, Any], family: WebhookFamily
) -> None:
    await given_webhook(memory, **about)
    for other in set(WebhookFamily) - {family}:
        with pytest.raises(NotFound):
            await handlers.update(KEY, changes(disabled_at=NOW), family=other, invocation=ME)
    with pytest.raises(NotFound):
        await handlers.update(MISSING, changes(disabled_at=NOW), family=family, invocation=ME)
    assert memory.topics == []
    await handlers.update(KEY, changes(disabled_at=NOW), family=family, invocation=ME)
    assert memory.happened == [fact(AMENDED, disabled_at=NOW)]


async def test_a_webhook_moves_to_another_event_and_none_keeps_its_event(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory, event_id=EVENT)
    await handlers.update(KEY, changes(event_id=None), family=OF_EVENT, invocation=ME)
    assert memory.topics == []
    with pytest.raises(NotFound):
        await handlers.update(KEY, changes(event_id=MISSING), family=OF_EVENT, invocation=ME)
    await handlers.update(KEY, changes(event_id=OTHER_EVENT), family=OF_EVENT, invocation=ME)
    assert memory.happened == [fact(AMENDED, event_id=OTHER_EVENT)]


async def test_the_event_of_a_webhook_may_be_deleted(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory, event_id=EVENT)
    await memory.executor.execute(MediaEvent.delete.on(EVENT), invocation=ME)
    updated = await handlers.update(KEY, changes(event_id=EVENT, username="u"), family=OF_EVENT, invocation=ME)
    assert updated.aggregate.details.username == "u"


async def test_credentials_are_replaced_kept_and_cleared(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory)
    for password, stored in (("one", "one"), (None, "one"), ("two", "two"), ("", None)):
        updated = await handlers.update(KEY, changes(password), family=SYSTEM_WIDE, invocation=ME)
        assert (await secrets_of(memory, updated.aggregate)).get("password") == stored


async def test_a_change_is_checked_against_what_is_stored_when_it_is_appended(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory, event_id=EVENT, username="u")
    memory.meanwhile(Webhook.amend.on(KEY, {"username": None}))
    with pytest.raises(Malformed):
        await handlers.update(KEY, changes(use_http_basic_authentication=True), family=OF_EVENT, invocation=ME)
    memory.meanwhile(Webhook.delete.on(KEY))
    with pytest.raises(NotFound):
        await handlers.update(KEY, changes(use_json_body=False), family=OF_EVENT, invocation=ME)


async def test_another_version_is_refused(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory)
    stale = Invocation(ME.cause, if_match=frozenset({7}))
    with pytest.raises(PreconditionFailed):
        await handlers.update(KEY, changes(use_json_body=False), family=SYSTEM_WIDE, invocation=stale)
    assert memory.topics == []


async def test_after_a_rotation_both_secrets_are_stored(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory)
    rotated = await handlers.rotate_secret(KEY, invocation=ME)
    assert rotated.secrets == {"secret": SECRET}
    assert await secrets_of(memory, rotated.aggregate) == {"signing": SECRET, "previous": "old"}
    with pytest.raises(NotFound):
        await handlers.rotate_secret(MISSING, invocation=ME)


async def test_a_repeat_is_worded_without_the_secret(memory: Memory, handlers: WebhookHandlers) -> None:
    first = Invocation(ME.cause, idempotency=IdempotencyKey("me", "a", b"", 200, ""))
    added = await handlers.add(changes(webhook_url=URL), invocation=first)
    repeat = memory.outcome("me", "a")
    assert (repeat.secrets, repeat.result) == ({}, {"added": True})
    assert repeat.aggregate.details == added.aggregate.details


async def test_a_webhook_is_disabled_once(memory: Memory, handlers: WebhookHandlers) -> None:
    await given_webhook(memory)
    outcome = await handlers.disable(KEY, at=NOW, invocation=ME)
    assert outcome.aggregate.details.disabled_at == NOW
    with pytest.raises(Conflict):
        await handlers.disable(KEY, at=NOW, invocation=ME)
    await memory.given(Webhook.delete.on(KEY))
    with pytest.raises(Conflict):
        await handlers.disable(KEY, at=NOW, invocation=ME)
