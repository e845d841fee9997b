"""The webhook sender, which records every attempt, compared with a bare aiohttp client that sends the same signed bodies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_network
from random import Random
from uuid import UUID

import aiohttp
import psycopg
import uvloop

from api.cli.run.limits import tune_garbage_collector
from api.wiring.core import Core, core
from bench.ground import Ground, in_turns
from bench.report import Result, Table, Target, middle
from domain.kernel.clock import system_clock
from domain.kernel.encryption import SecretCipher
from domain.kernel.ids import new_id
from domain.kernel.ports import Invocation
from domain.record.record import RegisterRecord
from domain.webhook.aggregate import Webhook
from domain.webhook.endpoint import SIGNING, encode_secret
from projections.consumers.leases import ShardLeases
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.keys import SHARDS, delivery_id, shard_of
from projections.webhook.store import CONSUMER
from workers.adapters.outbound_http import GuardedClient
from workers.webhook.sender.attempt import signatures
from workers.webhook.sender.sender import Sender

_WEBHOOKS = 10
_EVENTS = 200
_BARE = 50
_SECRET = bytes(32)
_MASTER_KEY = b"a master key for benchmarks only"
_PAYLOAD = (
    '{"eventId":"%s","referenceId":"match-0012345","externalId":"ext-0012345","state":"LIVE_PUBLISHED","stateChanged":true,'
    '"metadataChanged":false,"thumbnailChanged":false,"isForced":false,"audioChanged":false,"mp4State":"NONE",'
    '"mp4StateChanged":false,"chapterPointsChanged":false,"assetsChanged":false,"provisionState":null,'
    '"provisionStateChanged":false,"capturingLive2VodFlagChanged":false,"action":"Updated"}'
)
_PUT = """
INSERT INTO pending_deliveries (webhook, position, ordering_key, source, shard, payload, due_at, created_at)
SELECT w.webhook, p, l.ordering_key, 0, w.shard, format(%s, l.ordering_key), clock_timestamp(), clock_timestamp()
FROM generate_series(1, %s::bigint / %s) AS p, unnest(%s::uuid[], %s::smallint[]) AS w (webhook, shard),
LATERAL (SELECT md5((p %% %s)::text)::uuid::text AS ordering_key) l
"""


def deliveries(ground: Ground) -> Result:
    """(h) deliveries to a receiver on loopback, signed, guarded and recorded."""
    result = Result("deliveries")
    many = 6_000 if ground.effort.quick else 30_000
    url = ground.database("bench_deliveries")
    with receiver() as port:
        webhooks = uvloop.run(_registered(url, f"http://127.0.0.1:{port}/hook"))
        cells = {
            "bare aiohttp, 50 in flight": partial(_bare, port, webhooks, many),
            "sender": partial(_sent, url, webhooks, many, ground=ground),
        }
        rates = in_turns(cells, rounds=ground.effort.rounds)
    bare, sender = rates.values()
    ratio = middle([ours / theirs for ours, theirs in zip(sender, bare, strict=True)])
    table = Table(f"(h) {many:,} deliveries, {_WEBHOOKS} webhooks, {_EVENTS} Events", ("", "deliveries/s", "ratio"))
    for name, seen in rates.items():
        table.add(name, middle(seen), middle([run / base for run, base in zip(seen, bare, strict=True)]))
    result.tables.append(table)
    result.targets.append(Target("deliveries recorded, of a bare client", ratio, 0.35))
    result.raw |= {"rates": rates}
    return result


@contextmanager
def receiver() -> Iterator[int]:
    """Run a process that answers 200 to every request; yield its port."""
    process = subprocess.Popen([sys.executable, "-m", "bench.receiver"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def _core(url: str) -> AsyncIterator[tuple[Core, Vault]]:
    wired = core(url, role=None)
    await wired.start()
    try:
        yield wired, Vault(wired.database, SecretCipher(_MASTER_KEY))
    finally:
        await wired.stop()


async def _registered(url: str, address: str) -> list[UUID]:
    webhooks = [new_id() for _ in range(_WEBHOOKS)]
    async with _core(url) as (wired, vault):
        for key in webhooks:
            box = vault.encrypt(encode_secret(_SECRET), owner=f"{Webhook.KIND}:{key}")
            values = {"webhook_url": address, "secrets": {SIGNING: box.ref}}
            await wired.executor.execute(
                RegisterRecord(key, Webhook, values, new=True, sealed=[box]), invocation=Invocation.by("bench")
            )
    return webhooks


def put(url: str, webhooks: list[UUID], many: int) -> None:
    """Fill a database with nothing but pending deliveries, as the fan-out would have written them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE pending_deliveries, finished_deliveries, delivery_attempts, delivery_endpoints")
        shards = [shard_of(webhook) for webhook in webhooks]
        connection.execute(_PUT, (_PAYLOAD, many, len(webhooks), webhooks, shards, _EVENTS))
        connection.execute("VACUUM (ANALYZE) pending_deliveries")


def _sent(url: str, webhooks: list[UUID], many: int, *, ground: Ground) -> float:
    put(url, webhooks, many)
    ground.settle()
    return many / uvloop.run(_send(url))


async def _send(url: str) -> float:
    async with _core(url) as (wired, vault):
        tune_garbage_collector()
        outbound = GuardedClient([ip_network("127.0.0.0/8")])
        sender = Sender(
            wired.database,
            outbound,
            records=RecordQueries(wired.database, [Webhook]),
            vault=vault,
            leases=ShardLeases(wired.database, CONSUMER, shards=SHARDS, member=UUID(bytes=os.urandom(16))),
            disable=_never,
            version="0",
            clock=system_clock,
            rng=Random(1),
        )
        since = time.perf_counter()
        await sender.start()
        is_pending = True
        while is_pending:
            await asyncio.sleep(0.05)
            [(is_pending,)] = await wired.database.rows("SELECT EXISTS (SELECT FROM pending_deliveries)")
        took = time.perf_counter() - since
        await sender.stop()
        await outbound.close()
        recorded = await wired.database.rows(
            "SELECT (SELECT count(*) FROM finished_deliveries WHERE state = 1), (SELECT count(*) FROM delivery_attempts)"
        )
        if len({*recorded[0]}) != 1:
            raise RuntimeError(f"delivered and tries differ: {recorded[0]}")
        return took


async def _never(webhook: UUID, reason: str) -> None:
    raise RuntimeError(f"{webhook} was disabled: {reason}")


def _bare(port: int, webhooks: list[UUID], many: int) -> float:
    """Return the rate of the bare client. All its requests are prepared and signed beforehand."""
    now = int(datetime.now(UTC).timestamp())
    requests = []
    for number in range(many):
        webhook, ordering_key = webhooks[number % len(webhooks)], str(UUID(int=number % _EVENTS))
        body, message = (_PAYLOAD % ordering_key).encode(), str(delivery_id(webhook, number, ordering_key=ordering_key))
        headers = {
            "content-type": "application/json",
            "webhook-id": message,
            "webhook-timestamp": str(now),
            "webhook-signature": signatures([_SECRET], body, message=message, timestamp=now),
        }
        requests.append((headers, body))
    return many / uvloop.run(_send_bare(f"http://127.0.0.1:{port}/hook", requests))


async def _send_bare(url: str, requests: list[tuple[dict[str, str], bytes]]) -> float:
    tune_garbage_collector()
    remaining = iter(requests)

    async def send(session: aiohttp.ClientSession) -> None:
        for headers, body in remaining:
            async with session.post(url, headers=headers, data=body, allow_redirects=False) as answer:
                await answer.read()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=_BARE)) as session:
        since = time.perf_counter()
        await asyncio.gather(*(send(session) for _ in range(_BARE)))
        return time.perf_counter() - since
