"""Findings of the sender about a webhook are executed as commands, and the roles that exist."""

from __future__ import annotations

from api.wiring.core import Core
from domain.kernel.encryption import SecretCipher
from domain.webhook.aggregate import Webhook
from domain.webhook.handlers import WebhookHandlers
from projections.event.queries import EventQueries
from projections.log_store.log_store import Logbook
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from tests.projections.log.helpers import rows
from tests.support.feeding import do, record
from workers.webhook.sender.disabling import Disabling

TOPICS = (
    "SELECT topic, state::text FROM (SELECT topic, convert_from(state, 'utf8') AS state, position FROM events) e ORDER BY position"
)


def disabling(inner: Core) -> Disabling:
    records, vault = RecordQueries(inner.database, [Webhook]), Vault(inner.database, SecretCipher(bytes(32)))
    handlers = WebhookHandlers(inner.executor, records, events=EventQueries(inner.database), vault=vault, random=bytes)
    return Disabling(handlers, Logbook(inner.database, inner.clock, machine="here"), clock=inner.clock)


async def test_a_webhook_is_disabled_by_a_command_and_operators_are_told_once(inner: Core, database_url: str) -> None:
    key = await record(inner, Webhook, 1, webhook_url="https://receiver.example/")
    await disabling(inner).disable(key, "its endpoint answered 410 Gone")
    await disabling(inner).disable(key, "its endpoint answered 410 Gone")
    assert [topic for topic, _ in rows(database_url, TOPICS)] == ["webhook.registered", "webhook.amended"]
    assert '"disabled_at":"2031-01-02T12:00:00Z"' in rows(database_url, TOPICS)[1][1]
    assert rows(database_url, "SELECT level, subject, message FROM logbook") == [
        (4, str(key), f"The webhook {key} was disabled: its endpoint answered 410 Gone")
    ]


async def test_one_that_was_deleted_meanwhile_is_left_alone(inner: Core, database_url: str) -> None:
    key = await record(inner, Webhook, 1, webhook_url="https://receiver.example/")
    await do(inner, Webhook.delete.on(key))
    await disabling(inner).disable(key, "five days of nothing but failure")
    assert [topic for topic, _ in rows(database_url, TOPICS)] == ["webhook.registered", "webhook.deleted"]
    assert rows(database_url, "SELECT FROM logbook") == []
