"""What the sender finds out about a webhook comes back as a command; which roles there are; what is kept for how long."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg

from api.wiring.core import Core
from domain.kernel.encryption import SecretCipher
from domain.records.record import DeleteRecord
from domain.webhook.aggregate import Webhook
from domain.webhook.handlers import WebhookHandlers
from projections.deliveries.store import DeliveryStore
from projections.logbook.logbook import Logbook
from projections.media_event.queries import EventQueries
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from tests.conftest import NOON, HandClock
from tests.projections.feeding import do, record
from tests.projections.log.helpers import rows, until
from workers.deliveries.disabling import Disabling
from workers.deliveries.retention import KEPT, Retention

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
    await do(inner, DeleteRecord(key, Webhook))
    await disabling(inner).disable(key, "five days of nothing but failure")
    assert [topic for topic, _ in rows(database_url, TOPICS)] == ["webhook.registered", "webhook.deleted"]
    assert rows(database_url, "SELECT FROM logbook") == []


async def test_deliveries_that_are_done_are_kept_for_thirty_days(inner: Core, database_url: str, clock: HandClock) -> None:
    old, fresh = NOON - KEPT - timedelta(seconds=1), NOON - KEPT
    with psycopg.connect(database_url, autocommit=True) as connection:
        for position, (state, finished) in enumerate([(1, old), (2, old), (1, fresh), (0, None)], start=1):
            connection.execute(
                "INSERT INTO deliveries (webhook, position, ordering_key, source, shard, payload, state, due_at, created_at, "
                "finished_at) VALUES (%s, %s, 'a', 0, 0, '{}', %s, %s, %s, %s)",
                (UUID(int=1), position, state, old, old, finished),
            )
            connection.execute(
                "INSERT INTO delivery_attempts (webhook, position, ordering_key, started_at, seconds) VALUES (%s, %s, 'a', %s, 0)",
                (UUID(int=1), position, old),
            )
    retention = Retention(DeliveryStore(inner.database, member=UUID(int=1)), clock=clock)
    await retention.start()
    await until(lambda: rows(database_url, "SELECT position FROM deliveries ORDER BY 1") == [(3,), (4,)])
    await until(lambda: rows(database_url, "SELECT position FROM delivery_attempts ORDER BY 1") == [(3,), (4,)])
    await retention.stop()
