"""A sender on a real database and receivers on real sockets. Rows are inserted into the table directly, as the fan-out does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from random import Random
from typing import Any
from uuid import UUID

import psycopg
from aiohttp import web

from api.wiring.core import Core
from domain.kernel.encryption import SecretCipher
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from domain.webhook.callback import Callback
from domain.webhook.endpoint import SIGNING, encode_secret
from projections.consumers.leases import ShardLeases
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.keys import CHANNEL, DeliverySource, shard_of
from tests.support.clock import HandClock
from tests.support.waiting import pauses
from workers.adapters.outbound_http import GuardedClient
from workers.webhook.sender.sender import Sender

PATIENCE = 60.0
LOOPBACK = (ip_network("127.0.0.0/8"),)
QUICK = (0.0, *(0.01,) * 9)
"""The delays of ten attempts within a tenth of a second."""


@dataclass
class Got:
    """A received request."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Receiver:
    """A receiver that answers 200, unless `answer` says otherwise. `in_progress` is the number of current requests."""

    answer: Callable[[Got], Any] = lambda _: None
    got: list[Got] = field(default_factory=list)
    in_progress: int = 0
    most: int = 0

    async def __aenter__(self) -> Receiver:
        application = web.Application()
        application.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        self.in_progress += 1
        self.most = max(self.most, self.in_progress)
        try:
            got = Got(request.path, request.headers, await request.read(), request.query_string)
            self.got.append(got)
            answer = self.answer(got)
            if asyncio.iscoroutine(answer):
                answer = await answer
            return answer or web.Response()
        finally:
            self.in_progress -= 1

    @property
    def bodies(self) -> list[str]:
        return [got.body.decode() for got in self.got]


async def until(condition: Callable[[], Any], *, what: str = "") -> None:
    async with asyncio.timeout(PATIENCE):
        for pause in pauses():
            result = condition()
            if asyncio.iscoroutine(result):
                result = await result
            if result:
                return
            await asyncio.sleep(pause)


@dataclass
class Sending:
    """Webhooks, their deliveries, and senders for them."""

    core: Core
    url: str
    clock: HandClock

    def __post_init__(self) -> None:
        self.vault = Vault(self.core.database, SecretCipher(bytes(32)))
        self.records = RecordQueries(self.core.database, [Webhook, Callback])
        self.disabled: list[tuple[UUID, str]] = []

    async def webhook(self, url: str, secret: bytes = bytes(32), *, neighbour: UUID | None = None, **values: Any) -> UUID:
        """Register a webhook, in the shard of `neighbour` if it is given."""
        key = new_id()
        while neighbour is not None and shard_of(key) != shard_of(neighbour):
            key = new_id()
        box = self.vault.encrypt(encode_secret(secret), owner=f"webhook:{key}")
        given = {"webhook_url": url, "secrets": {SIGNING: box.ref}, **values}
        await self.core.executor.execute(
            RegisterRecord(key, Webhook, given, new=True, sealed=[box]), invocation=Invocation.by("test")
        )
        return key

    async def disable(self, webhook: UUID, reason: str) -> None:
        self.disabled.append((webhook, reason))
        await self.amend(webhook, disabled_at=self.clock())

    async def amend(self, webhook: UUID, **changes: Any) -> None:
        await self.core.executor.execute(Webhook.amend.on(webhook, changes), invocation=Invocation.by("test"))

    def put(self, webhook: UUID, *rows: tuple[int, str], source: DeliverySource = DeliverySource.NOTIFICATIONS) -> None:
        """Insert rows (position, ordering key), which the payload names too."""
        with psycopg.connect(self.url) as connection:
            self.insert(connection, webhook, *rows, source=source)

    def insert(
        self,
        connection: psycopg.Connection,
        webhook: UUID,
        /,
        *rows: tuple[int, str],
        source: DeliverySource = DeliverySource.NOTIFICATIONS,
    ) -> None:
        """Insert rows as `put` does, in a transaction that the caller commits."""
        for position, ordering_key in rows:
            payload = f'{{"lane":"{ordering_key}","position":{position}}}'
            connection.execute(
                "INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at) "
                "VALUES (%s, %s, %s, %s, %s, %s, now(), now())",
                (webhook, position, ordering_key, int(source), shard_of(webhook), payload),
            )
        connection.execute("SELECT pg_notify(%s, '')", (CHANNEL,))

    def resend(self, webhook: UUID, condition: str = "true") -> None:
        """Resend as the API does: pending, due now, sender notified."""
        with psycopg.connect(self.url) as connection:
            connection.execute(
                f"WITH taken AS (DELETE FROM finished_deliveries WHERE webhook = %s AND {condition} RETURNING *) "
                "INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at) "
                "SELECT webhook, position, ordering_key, source, shard, payload, now(), created_at FROM taken",
                (webhook,),
            )
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(webhook)))

    def due(self, webhook: UUID) -> None:
        """Make all retries due now."""
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE pending_deliveries SET due_at = now() WHERE webhook = %s", (webhook,))
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, str(webhook)))

    def rows(self, question: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(question, parameters).fetchall()

    def states(self, webhook: UUID) -> list[tuple[Any, ...]]:
        """Return (position, state, attempts, error), in order."""
        return self.rows(
            "SELECT position, state, attempts, error FROM deliveries WHERE webhook = %s ORDER BY position, ordering_key", webhook
        )

    async def finished(self, webhook: UUID, count: int) -> None:
        question = "SELECT count(*) FROM deliveries WHERE webhook = %s AND state <> 0"
        await until(lambda: self.rows(question, webhook)[0][0] == count)

    @asynccontextmanager
    async def sender(self, *, delays: Sequence[float] = QUICK, lease: float = 5.0, **options: Any) -> AsyncIterator[Sender]:
        outbound = GuardedClient(LOOPBACK)
        sender = Sender(
            self.core.database,
            outbound,
            records=self.records,
            vault=self.vault,
            leases=ShardLeases(
                self.core.database,
                "deliveries",
                shards=16,
                member=UUID(bytes=os.urandom(16)),
                host="test",
                lease=lease,
                reads_log=False,
            ),
            disable=self.disable,
            version="0.0.0",
            clock=self.clock,
            rng=Random(1),
            delays=delays,
            **options,
        )
        try:
            await sender.start()
            yield sender
        finally:
            await sender.stop()
            await outbound.close()
