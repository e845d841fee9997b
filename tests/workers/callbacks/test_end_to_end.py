"""Callbacks of a job from the event log to a receiver on a real socket, through the consumer and the webhook sender."""

from __future__ import annotations

import base64
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import httpx
import pytest
from aiohttp import web
from pydantic_core import from_json

from api.engine.job_log_text import record
from api.wiring.catalogue import RECORDS
from api.wiring.core import Core
from domain.kernel.mapper import EventMapper
from domain.webhook.aggregate import SIGNING, URL
from domain.webhook.secret import decode_secret
from projections.consumers.leases import ShardLeases
from projections.deliveries.keys import Source
from projections.deliveries.queries import callback_backlog
from projections.job.history import JobHistory
from projections.log.log_watcher import LogWatcher
from projections.records.queries import RecordQueries
from tests.api.media.webhook.callbacks_given import add_callback
from tests.conftest import HandClock
from tests.workers.callbacks.jobs_given import complete
from tests.workers.deliveries.sending import Got, Receiver, Sending
from workers.callbacks.fanout import CallbackFanout
from workers.deliveries.endpoint_configs import EndpointConfigs
from workers.kernel.consumer import Consumer
from workers.kernel.log_feed import LogFeed

STATUSES = ["started", "task_started", "task_completed", "task_started", "task_completed", "completed"]


@pytest.fixture
def sending(inner: Core, database_url: str, clock: HandClock) -> Sending:
    return Sending(inner, database_url, clock)


@asynccontextmanager
async def consuming(inner: Core) -> AsyncIterator[None]:
    """Runs the worker role `callback`."""
    records, mapper = RecordQueries(inner.database, RECORDS), EventMapper(inner.catalogue)
    handler = CallbackFanout(inner.streams, records, mapper=mapper, wake=lambda: None)
    leases = ShardLeases(inner.database, "callback", shards=1, member=uuid4(), host="test")
    feed = LogFeed(inner.database, LogWatcher(inner.database), kinds=handler.kinds)
    consumer = Consumer(inner.database, leases, feed=feed, handler=handler)
    await consumer.start()
    try:
        yield
    finally:
        await consumer.stop()


async def signing_key(sending: Sending, callback: str) -> bytes:
    [row] = await sending.records.those("webhook", [callback])
    secret = await sending.vault.read(row.details.secrets[SIGNING].reference)
    assert secret is not None
    return decode_secret(secret)


def signature(key: bytes, got: Got) -> str:
    signed = f"{got.id}.{got.headers['webhook-timestamp']}.".encode() + got.body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


async def test_notices_arrive_in_order_signed_and_at_the_whole_address(inner: Core, sending: Sending) -> None:
    async with Receiver() as receiver:
        callback = await add_callback(inner, receiver.url.replace("//", "//u:p%40@") + "/hook?token=s3cret", client="studio")
        await complete(inner, 17, UUID(callback), slot=1)
        async with consuming(inner), sending.sender():
            await complete(inner, 18, UUID(callback), slot=2)
            await sending.finished(UUID(callback), 2 * len(STATUSES))
    bodies = [from_json(got.body) for got in receiver.got]
    for number in (17, 18):
        assert [body["status"] for body in bodies if body["job_id"] == number] == STATUSES
    assert bodies[-1]["client"] == "studio"
    key = await signing_key(sending, callback)
    assert {(got.path, got.query, got.headers["authorization"]) for got in receiver.got} == {
        ("/hook", "token=s3cret", "Basic " + base64.b64encode(b"u:p@").decode())
    }
    assert all(got.headers["webhook-signature"] == signature(key, got) for got in receiver.got)
    assert len({got.id for got in receiver.got}) == len(receiver.got)
    assert await callback_backlog(inner.database) == 0
    history = JobHistory(inner.database, EventMapper(inner.catalogue))
    records = [record(entry, 17) for entry in (await history.since(17)).entries]
    lines = [(one.severity_description, one.message) for one in records if one.progname == "callback"]
    assert lines == [("INFO", f"Webhook {callback}, {status}, attempt 1: delivered") for status in STATUSES]


async def test_a_failed_callback_is_in_the_job_log(http: httpx.AsyncClient, inner: Core, sending: Sending) -> None:
    answers = iter([503, 503])
    async with Receiver(lambda _: web.Response(status=next(answers, 200))) as receiver:
        callback = await add_callback(inner, receiver.url, client="studio")
        await complete(inner, 17, UUID(callback), slot=1)
        async with consuming(inner), sending.sender():
            await sending.finished(UUID(callback), len(STATUSES))
    records = (await http.get("/engine/logs/17")).json()
    told = [(one["severity"], one["task_id"], one["message"]) for one in records if one["progname"] == "callback"]
    wrong = "The answer was 503 Service Unavailable. It is tried again."
    assert told[:3] == [
        (2, None, f"Webhook {callback}, started, attempt 1: {wrong}"),
        (2, None, f"Webhook {callback}, started, attempt 2: {wrong}"),
        (1, None, f"Webhook {callback}, started, attempt 3: delivered"),
    ]
    assert len(told) == len(STATUSES) + 2


@pytest.mark.parametrize("loss", ["DELETE FROM vault", "UPDATE vault SET owner = 'other'"])
async def test_an_address_is_not_called_without_its_secret_part(inner: Core, sending: Sending, loss: str) -> None:
    callback = await add_callback(inner, "https://hooks.test/job?token=s3cret", client="studio")
    targets = EndpointConfigs(sending.records, sending.vault, version="0.0.0")
    [target] = (await targets.load([UUID(callback)])).values()
    assert target.url == "https://hooks.test/job?token=s3cret"
    assert "s3cret" not in repr(target)
    [row] = await sending.records.those("webhook", [callback])
    sending.rows(loss + " WHERE reference = %s RETURNING 1", row.details.secrets[URL].reference)
    assert await targets.load([UUID(callback)]) == {}


async def test_the_callback_backlog_counts_pending_deliveries_of_jobs_only(inner: Core, sending: Sending) -> None:
    callback = await add_callback(inner, client="studio")
    sending.put(UUID(callback), (1, "job:17"), (2, "job:17"), source=Source.CALLBACKS)
    sending.put(uuid4(), (3, str(uuid4())))
    assert await callback_backlog(inner.database) == 2
    sending.rows("UPDATE deliveries SET state = 1 WHERE position = 1 RETURNING 1")
    assert await callback_backlog(inner.database) == 1
