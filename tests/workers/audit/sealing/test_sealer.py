"""The sealer signs what is due, notifies its subscribers, and has checkpoints stored outside of the database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from aiohttp import web

from api.wiring.core import Core
from domain.kernel.clock import system_clock
from domain.kernel.encryption import SecretCipher
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from projections.audit.stored_log import StoredLog
from projections.audit.unsealed_events import Unsealed
from projections.consumers.leases import ShardLeases
from projections.log.reader import head
from projections.vault.vault import Vault
from projections.webhook.keys import FAN_OUT, LOG_SEALED
from tests.api.asking import add_webhook, assert_problem
from tests.projections.audit.sealed import SealedLog, verdict
from tests.support.clock import HandClock
from tests.support.feeding import as_superuser, event, room
from tests.support.s3 import client
from tests.support.s3 import moto_endpoint as moto_endpoint
from tests.workers.audit.sealing.time_stamps import serving, verified
from tests.workers.consumed import consumed
from tests.workers.webhook.feeding import fed
from tests.workers.webhook.sender.sending import Receiver, Sending, until
from workers.adapters.file_anchor import BucketAnchor, FileAnchor
from workers.adapters.outbound_http import GuardedClient
from workers.audit.sealing.sealer import CONSUMER, Anchoring, Sealer
from workers.audit.sealing.time_stamp import TimeStamp
from workers.ports.buckets import BucketAddress
from workers.ports.checkpoints import Anchor, StoredNote


class Broken:
    """A place that accepts nothing until it is `well`."""

    def __init__(self) -> None:
        self.kind, self.place, self.well = "test", "nowhere", False

    async def keep(self, checkpoint: StoredNote) -> None:
        if not self.well:
            raise Unavailable("it is full")


def sealer(
    inner: Core,
    *,
    seconds: float = 0.0,
    anchors: list[Anchor] | None = None,
    position: Callable[[], int | None] = lambda: None,
) -> Sealer:
    leases = ShardLeases(inner.database, CONSUMER, shards=1, member=new_id(), reads_log=False, lease=0.5)
    vault, anchoring = Vault(inner.database, SecretCipher(bytes(32))), Anchoring(inner.database, anchors or [])
    return Sealer(inner.database, vault, anchoring=anchoring, seconds=seconds, leases=leases, position=position)


@asynccontextmanager
async def running(*sealers: Sealer) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for sealer in sealers:
            stack.push_async_callback(sealer.stop)
            await sealer.start()
        yield


async def checkpoints(inner: Core) -> list[int]:
    return [position for (position,) in await inner.database.rows("SELECT position FROM checkpoints ORDER BY number")]


async def sealed_up_to(inner: Core, position: int) -> None:
    async def reached() -> bool:
        return (await checkpoints(inner))[-1:] == [position]

    await until(reached)


async def test_a_lock_that_somebody_holds_does_not_keep_the_sealer(
    inner: Core, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.audit.sealing.sealer._STATEMENT", 0.2)
    await event(inner, 1)
    with psycopg.connect(database_url) as holder:
        holder.execute("LOCK TABLE log_tiles")
        with pytest.raises(Unavailable, match="took too long"):
            async with asyncio.timeout(60):
                await asyncio.to_thread(sealer(inner)._seal)
    assert await asyncio.to_thread(sealer(inner)._seal)


async def test_the_server_ends_a_transaction_of_a_sealer_that_hangs(database_url: str) -> None:
    def hang() -> None:
        with StoredLog.connected(database_url, purpose="sealer", seconds=0.2) as stored, stored.transaction():
            stored.rows("SELECT pg_advisory_xact_lock(1)::text")
            with psycopg.connect(database_url) as next_one:
                next_one.execute("SET lock_timeout = '60s'")
                next_one.execute("SELECT pg_advisory_xact_lock(1)")
            stored.rows("SELECT 1")

    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        await asyncio.to_thread(hang)


async def test_a_log_that_is_sealed_is_looked_at_again_when_it_has_grown(inner: Core) -> None:
    positions = [1]
    await event(inner, 1)
    worker = sealer(inner, position=lambda: positions[-1])

    async def seen() -> bool:
        return worker._sealed_at == 1

    async with running(worker):
        await sealed_up_to(inner, 1)
        await until(seen)
        await event(inner, 2)
        assert not await worker._is_due()
        positions.append(2)
        await sealed_up_to(inner, 2)


async def test_what_is_new_is_sealed_once_however_many_sealers_run(inner: Core) -> None:
    await event(inner, 1)
    async with running(sealer(inner), sealer(inner)):
        await sealed_up_to(inner, 1)
        await event(inner, 2)
        await sealed_up_to(inner, 2)
    assert await checkpoints(inner) == [1, 2]
    unsealed = await Unsealed(inner.database).now()
    assert (unsealed.events, unsealed.seconds, unsealed.unanchored) == (0, 0.0, 0.0)


async def test_a_log_that_was_changed_is_not_sealed_and_operators_see_it(inner: Core, database_url: str) -> None:
    await event(inner, 1)
    as_superuser(database_url, "UPDATE events SET state = state || ' '::bytea WHERE position = 1")

    async def fails() -> bool:
        reported = "OperatorNeeded: the log is damaged at position %: the stored bytes%"
        return bool(await inner.database.rows("SELECT FROM consumer_members WHERE fault LIKE %s", (reported,)))

    async with running(sealer(inner)):
        await until(fails)
    assert await checkpoints(inner) == []
    assert (await Unsealed(inner.database).now()).events == 1


async def test_who_asked_for_it_gets_each_checkpoint(inner: Core, http: httpx.AsyncClient) -> None:
    asking = await add_webhook(http, additionalPropertiesJson='{"headers": [], "notifications": ["log.sealed"]}')
    await add_webhook(http)
    await add_webhook(http, additionalPropertiesJson='{"headers": [{"name": "X-A", "value": "log.sealed"}]}')
    async with running(sealer(inner)):

        async def notified() -> bool:
            return bool(await inner.database.rows("SELECT FROM pending_deliveries"))

        await until(notified)
    answer = (await http.get(f"/api/webhook/{asking}/deliveries/")).json()
    [(note,)] = await inner.database.rows("SELECT note FROM checkpoints")
    [delivery] = answer["results"]
    assert (delivery["action"], delivery["eventId"], delivery["jobId"]) == ("log.sealed", None, None)
    assert delivery["payload"]["checkpoint"] == note
    assert await inner.database.rows("SELECT count(*) FROM pending_deliveries") == [(1,)]
    async with running(sealer(inner)):  # the next one tells nobody twice
        pass
    assert await inner.database.rows("SELECT count(*) FROM pending_deliveries") == [(1,)]
    for wrong in ('{"headers": [], "notifications": ["other"]}', '{"headers": [], "notifications": "log.sealed"}'):
        answer = await http.post("/api/webhook/", json={"webhookUrl": "https://hooks.test/a", "additionalPropertiesJson": wrong})
        assert_problem(answer, 400)


async def test_a_checkpoint_is_delivered_after_the_events_that_it_seals(inner: Core, http: httpx.AsyncClient) -> None:
    """This also holds if the log ends with events that no webhook is notified of, and nothing is written after them."""
    await add_webhook(http, additionalPropertiesJson='{"headers": [], "notifications": ["log.sealed"]}')
    leases = ShardLeases(inner.database, FAN_OUT, shards=1, member=new_id(), lease=0.5)
    await leases.start()

    async def pending() -> list[tuple[Any, ...]]:
        return await inner.database.rows("SELECT position, ordering_key FROM pending_deliveries ORDER BY created_at")

    async def notified() -> bool:
        return (await pending())[-1:] == [(await head(inner.database), LOG_SEALED)]

    async with running(sealer(inner)):
        await event(inner, 1)
        await sealed_up_to(inner, await head(inner.database))
        assert await pending() == []
        async with consumed(inner, fed(inner).fanout, leases):
            await until(notified)
            await room(inner, 1, "north")
            await until(notified)
    last = await head(inner.database)
    assert [position for position, _ in await pending()] == [last - 1, last - 1, last]


async def test_a_receiver_that_took_a_checkpoint_is_an_anchor_of_it(
    inner: Core, database_url: str, clock: HandClock, tmp_path: Path
) -> None:
    """The receiver is an anchor only after it answered with 2xx, and stays one when its delivery is deleted."""
    sending, well = Sending(inner, database_url, clock), False
    asks = '{"headers": [], "notifications": ["log.sealed"]}'
    async with Receiver(lambda _: web.Response(status=200 if well else 503)) as receiver, sending.sender(delays=[0.0, 3600.0]):
        webhook = await sending.webhook(receiver.url, additional_properties_json=asks)
        async with running(sealer(inner)):
            await until(lambda: sending.states(webhook) and sending.states(webhook)[0][2] == 1)
        async with running(sealer(inner)):
            await until(lambda: len(receiver.got) == 1)
        assert sending.rows("SELECT FROM checkpoint_anchors") == []
        well = True
        sending.due(webhook)
        await sending.finished(webhook, 1)
        async with running(sealer(inner)):
            await until(lambda: sending.rows("SELECT FROM checkpoint_anchors"))
    [(position, note)] = sending.rows("SELECT position, note FROM checkpoints")
    assert [json.loads(body)["checkpoint"] for body in receiver.bodies] == [note, note]
    as_superuser(database_url, "DELETE FROM finished_deliveries")
    with SealedLog.opened(database_url, tmp_path) as log:
        code, message = verdict("log", log.export(), "--key", log.key)
    assert (code, f"anchored up to position {position}: webhook {webhook}" in message) == (0, True)


async def test_a_checkpoint_is_kept_in_every_place_and_tried_again_where_it_failed(
    inner: Core, database_url: str, tmp_path: Path
) -> None:
    path, broken = tmp_path / "kept", Broken()
    anchors: list[Anchor] = [FileAnchor(path), broken]
    await event(inner, 1)
    with SealedLog.opened(database_url, tmp_path) as log:
        first = log.seal()
        assert await Anchoring(inner.database, anchors).run() == "test nowhere: it is full"
        broken.well = True
        assert await Anchoring(inner.database, anchors).run() is None
        await event(inner, 2)
        second = log.seal()
        assert (await Unsealed(inner.database).now()).unanchored > 0
        assert await Anchoring(inner.database, anchors).run() is None
        assert path.read_text() == f"{first.note}\n{second.note}\n"
        assert (await Unsealed(inner.database).now()).unanchored == 0
        code, message = verdict("log", log.export(), "--key", log.key, "--kept", path)
    assert code == 0
    assert "2 given checkpoints are of this log" in message
    assert f"anchored up to position 2: file {path}, test nowhere" in message


async def test_a_bucket_keeps_checkpoints_that_nobody_can_delete(inner: Core, tmp_path: Path, moto_endpoint: str) -> None:
    address = BucketAddress("locked", "seals", moto_endpoint, access_key="k", secret_key="s")
    client(address).create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
    anchor = BucketAnchor(address, days=30, clock=system_clock)
    await anchor.keep(StoredNote(3, 1234, "a note\n"))
    key = "seals/checkpoint-00000000000000001234-0000000003.txt"
    result = client(address).get_object(Bucket="locked", Key=key)
    assert result["Body"].read() == b"a note\n"
    assert result["ObjectLockMode"] == "COMPLIANCE"
    assert timedelta(days=29) < result["ObjectLockRetainUntilDate"] - system_clock() <= timedelta(days=30)
    with pytest.raises(Exception, match="AccessDenied"):
        client(address).delete_object(Bucket="locked", Key=key, VersionId=result["VersionId"])
    client(address).create_bucket(Bucket="open")
    with pytest.raises((OSError, Unavailable)):
        await BucketAnchor(
            BucketAddress("open", "", moto_endpoint, access_key="k", secret_key="s"), days=1, clock=system_clock
        ).keep(StoredNote(1, 1, "a note\n"))


async def test_a_time_stamp_is_checked_and_openssl_accepts_it(outbound: GuardedClient, tmp_path: Path) -> None:
    note = StoredNote(1, 10, "a note\n")
    async with serving(tmp_path) as server:
        anchor = TimeStamp(str(server.make_url("/")), outbound)
        assert anchor.place == str(server.make_url("/")).rstrip("/")
        token = await anchor.keep(note)
        assert verified(tmp_path, token, b"a note\n")
        assert not verified(tmp_path, token, b"another note\n")
        for path, reason in (("/other", "something else"), ("/broken", "not a time stamp")):
            with pytest.raises(Unavailable, match=reason):
                await TimeStamp(str(server.make_url(path)), outbound).keep(note)
    secret = TimeStamp("https://user:secret@stamps.test/tsa", outbound)
    assert (secret.place, "secret" in repr(vars(secret)["_url"])) == ("https://stamps.test", False)


def test_anchors_and_checkpoints_are_never_changed(database_url: str, inner: Core) -> None:
    for table in ("checkpoints", "checkpoint_anchors"):
        with psycopg.connect(database_url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"DELETE FROM {table}".encode())
