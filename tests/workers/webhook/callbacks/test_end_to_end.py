"""Callbacks of a job from the event log to a receiver on a real socket, through the consumer and the webhook sender."""

from __future__ import annotations

import base64
import hmac
from uuid import UUID, uuid4

import httpx
import pytest
from aiohttp import web
from pydantic_core import from_json

from api.engine.job_log_text import record
from api.wiring.core import Core
from domain.kernel.mapper import EventMapper
from domain.webhook.callback import Callback
from domain.webhook.endpoint import SIGNING, decode_secret
from projections.job.history import JobHistory
from projections.webhook.keys import DeliverySource
from projections.webhook.queries import callback_backlog
from tests.api.media.webhook.callbacks_given import add_callback, sealed
from tests.projections.webhook.finishing import finishing
from tests.support.clock import HandClock
from tests.workers.webhook.callbacks.consuming import consuming
from tests.workers.webhook.callbacks.jobs_given import accept, complete, start
from tests.workers.webhook.callbacks.jobs_given import callback as job_callback
from tests.workers.webhook.sender.sending import Got, Receiver, Sending

STATUSES = ["started", "task_started", "task_completed", "task_started", "task_completed", "completed"]


@pytest.fixture
def sending(inner: Core, database_url: str, clock: HandClock) -> Sending:
    return Sending(inner, database_url, clock)


async def signing_key(sending: Sending, callback: str) -> bytes:
    [row] = await sending.records.by_ids(Callback, [callback])
    secret = await sending.vault.read(row.details.secrets[SIGNING].reference, owner=f"callback:{callback}")
    assert secret is not None
    return decode_secret(secret)


def signature(key: bytes, got: Got) -> str:
    signed = f"{got.id}.{got.headers['webhook-timestamp']}.".encode() + got.body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


async def test_notices_arrive_in_order_signed_and_at_the_whole_address(inner: Core, sending: Sending) -> None:
    async with Receiver() as receiver:
        callback = await add_callback(inner, receiver.url + "/hook", client="studio")
        url = receiver.url.replace("//", "//u:p%40@") + "/hook?token="
        first, second = [job_callback(UUID(callback), await sealed(inner, f"{url}{number}", job=number)) for number in (17, 18)]
        await complete(inner, 17, first, slot=1)
        async with consuming(inner), sending.sender():
            await complete(inner, 18, second, slot=2)
            await sending.finished(UUID(callback), 2 * len(STATUSES))
    bodies = [from_json(got.body) for got in receiver.got]
    for number in (17, 18):
        assert [body["status"] for body in bodies if body["job_id"] == number] == STATUSES
    assert bodies[-1]["client"] == "studio"
    key = await signing_key(sending, callback)
    assert {(got.path, got.query, from_json(got.body)["job_id"], got.headers["authorization"]) for got in receiver.got} == {
        ("/hook", f"token={number}", number, "Basic " + base64.b64encode(b"u:p@").decode()) for number in (17, 18)
    }
    assert all(got.headers["webhook-signature"] == signature(key, got) for got in receiver.got)
    assert len({got.id for got in receiver.got}) == len(receiver.got)
    assert await callback_backlog(inner.database) == 0
    history = JobHistory(inner.database, EventMapper(inner.catalogue))
    records = [record(entry, 17, in_full=True) for entry in (await history.since(17)).entries]
    lines = [(record.severity_description, record.message) for record in records if record.progname == "callback"]
    assert lines == [("INFO", f"Webhook {callback}, {status}, attempt 1: delivered") for status in STATUSES]


async def test_a_failed_callback_is_in_the_job_log(http: httpx.AsyncClient, inner: Core, sending: Sending) -> None:
    answers = iter([503, 503])
    async with Receiver(lambda _: web.Response(status=next(answers, 200))) as receiver:
        callback = await add_callback(inner, receiver.url, client="studio")
        await complete(inner, 17, UUID(callback), slot=1)
        async with consuming(inner), sending.sender():
            await sending.finished(UUID(callback), len(STATUSES))
    records = (await http.get("/engine/logs/17")).json()
    reported = [
        (record["severity"], record["task_id"], record["message"]) for record in records if record["progname"] == "callback"
    ]
    wrong = "The answer was 503 Service Unavailable. It is tried again."
    assert reported[:3] == [
        (2, None, f"Webhook {callback}, started, attempt 1: {wrong}"),
        (2, None, f"Webhook {callback}, started, attempt 2: {wrong}"),
        (1, None, f"Webhook {callback}, started, attempt 3: delivered"),
    ]
    assert len(reported) == len(STATUSES) + 2


@pytest.mark.parametrize("loss", ["DELETE FROM vault", "UPDATE vault SET owner = 'other'"])
async def test_an_address_is_not_called_without_its_secret_part(inner: Core, sending: Sending, loss: str) -> None:
    """The delivery fails, and the callback stays enabled: its receiver is not at fault."""
    async with Receiver() as receiver:
        callback = await add_callback(inner, receiver.url + "/hook", client="studio")
        address = await sealed(inner, receiver.url + "/hook?token=s3cret")
        sending.rows(loss + " WHERE reference = %s RETURNING 1", address)
        await accept(inner, 17, job_callback(UUID(callback), address))
        await accept(inner, 18, UUID(callback))
        async with consuming(inner), sending.sender():
            for number in (17, 18):
                await start(inner, number, slot=number)
                await sending.finished(UUID(callback), number - 16)
    assert [(state, error) for _, state, _, error in sending.states(UUID(callback))] == [
        (2, "The address is no longer stored."),
        (1, None),
    ]
    assert [(got.query, from_json(got.body)["job_id"]) for got in receiver.got] == [("", 18)]


async def test_the_callback_backlog_counts_pending_deliveries_of_jobs_only(inner: Core, sending: Sending) -> None:
    callback = await add_callback(inner, client="studio")
    sending.put(UUID(callback), (1, "job:17"), (2, "job:17"), source=DeliverySource.CALLBACKS)
    sending.put(uuid4(), (3, str(uuid4())))
    assert await callback_backlog(inner.database) == 2
    sending.rows(finishing("position = 1") + " RETURNING 1")
    assert await callback_backlog(inner.database) == 1
