"""Receivers that request a pause or disappear, secrets that change, members that lose their shards."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs
from uuid import UUID

import psycopg
import pytest
from aiohttp import web
from standardwebhooks.webhooks import Webhook as Receiving

from domain.kernel.errors import Unavailable
from domain.kernel.ports import Invocation
from domain.webhook.aggregate import Webhook
from domain.webhook.endpoint import encode_secret
from projections.consumers.leases import ShardLeases
from projections.webhook.keys import shard_of
from tests.support.descriptors import descriptors_left
from tests.workers.webhook.sender.sending import Got, Receiver, Sending, until

OLD, NEW = bytes(32), bytes(range(32))


def verified(got: Got, secret: bytes) -> bool:
    """Check the signature with the library of the specification. (Its `verify` requires a current timestamp.)"""
    at = datetime.fromtimestamp(int(got.headers["webhook-timestamp"]), UTC)
    expected = Receiving(base64.b64encode(secret).decode()).sign(got.id, at, got.body.decode())
    return expected in got.headers["webhook-signature"].split(" ")


async def test_429_pauses_the_whole_endpoint(sending: Sending) -> None:
    busy = True

    def answer(_: Got) -> web.Response:
        return web.Response(status=429, headers={"retry-after": "1800"}) if busy else web.Response()

    async with Receiver(answer) as receiver, sending.sender(delays=(0, 0.01)) as sender:
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"))
        await until(lambda: sending.states(webhook)[0][2] == 1)
        sending.put(webhook, (2, "b"), (3, "c"))
        other = await sending.webhook(receiver.url)
        busy = False
        sending.put(other, (4, "a"))
        await sending.finished(other, 1)
        await until(lambda: sender.in_flight == 0)
        assert len(receiver.got) == 2
    assert [row[1:3] for row in sending.states(webhook)] == [(0, 1), (0, 0), (0, 0)]
    waits = "SELECT extract(epoch FROM due_at - now())::int FROM deliveries WHERE webhook = %s AND attempts = 1"
    [(wait,)] = sending.rows(waits, webhook)
    assert 1700 < wait <= 1800


async def test_410_disables_the_webhook_and_fails_its_pending_deliveries(sending: Sending) -> None:
    async with Receiver(lambda _: web.Response(status=410)) as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"), (2, "a"), (3, "a"))
        await sending.finished(webhook, 3)
        await until(lambda: sending.disabled)
    assert sending.disabled == [(webhook, "it answered 410 Gone")]
    assert sending.states(webhook) == [
        (1, 2, 1, "The answer was 410 Gone."),
        (2, 2, 0, "the webhook is disabled"),
        (3, 2, 0, "the webhook is disabled"),
    ]
    assert len(receiver.got) == 1


async def test_410_of_a_former_address_disables_nothing(sending: Sending) -> None:
    arrived, resume = asyncio.Event(), asyncio.Event()

    async def answer(_: Got) -> web.Response:
        arrived.set()
        await resume.wait()
        return web.Response(status=410)

    async with Receiver(answer) as former, Receiver() as present, sending.sender():
        webhook = await sending.webhook(former.url)
        sending.put(webhook, (1, "a"), (2, "a"))
        await arrived.wait()
        await sending.amend(webhook, webhook_url=present.url)
        resume.set()
        await sending.finished(webhook, 2)
    assert sending.disabled == []
    assert [row[1:3] for row in sending.states(webhook)] == [(1, 2), (1, 1)]


async def test_an_address_that_changes_before_the_webhook_is_disabled_is_tried(sending: Sending) -> None:
    """The webhook is disabled when nothing is in flight any more."""
    gone, arrived, resume = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(got: Got) -> web.Response:
        if b'"position":2' in got.body:
            arrived.set()
            await resume.wait()
            return web.Response()
        await arrived.wait()
        gone.set()
        return web.Response(status=410)

    async with Receiver(answer) as former, Receiver() as present, sending.sender():
        webhook = await sending.webhook(former.url)
        sending.put(webhook, (1, "a"), (2, "b"), (3, "a"))
        await gone.wait()
        await sending.finished(webhook, 1)
        await sending.amend(webhook, webhook_url=present.url)
        resume.set()
        await sending.finished(webhook, 3)
    assert sending.disabled == []
    assert [row[1:3] for row in sending.states(webhook)] == [(2, 1), (1, 1), (1, 1)]
    assert len(present.got) == 1


async def test_a_webhook_that_is_enabled_again_gets_recovered_deliveries(sending: Sending) -> None:
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url, disabled_at=sending.clock())
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
        assert sending.states(webhook) == [(1, 2, 0, "the webhook is disabled")]
        await sending.amend(webhook, disabled_at=None)
        sending.resend(webhook)
        await until(lambda: receiver.got)
        await sending.finished(webhook, 1)
    assert sending.states(webhook) == [(1, 1, 1, None)]


async def test_a_change_counts_from_the_moment_its_write_is_answered(sending: Sending) -> None:
    async with Receiver() as first, Receiver() as other, sending.sender():
        webhook = await sending.webhook(first.url)
        for number in range(1, 11):
            receiver = (first, other)[number % 2]
            await sending.amend(webhook, webhook_url=receiver.url)
            sending.put(webhook, (number, "a"))
            await sending.finished(webhook, number)
            assert f'"position":{number}}}' in receiver.bodies[-1]
        box = sending.vault.encrypt(encode_secret(bytes(range(32))), owner=f"webhook:{webhook}")
        await sending.core.executor.execute(
            Webhook.rotate.on(webhook, box.ref).with_secrets([box]), invocation=Invocation.by("test")
        )
        sending.put(webhook, (11, "a"))
        await sending.finished(webhook, 11)
        assert first.got[-1].headers["webhook-signature"].count("v1,") == 2
        await sending.amend(webhook, disabled_at=sending.clock())
        sending.put(webhook, (12, "a"))
        await sending.finished(webhook, 12)
    assert len(first.got) + len(other.got) == 11
    assert sending.states(webhook)[-1] == (12, 2, 0, "the webhook is disabled")


async def test_pending_deliveries_of_a_deleted_webhook_fail(sending: Sending) -> None:
    async with Receiver() as receiver:
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"))
        await sending.core.executor.execute(Webhook.delete.on(webhook), invocation=Invocation.by("test"))
        async with sending.sender():
            await sending.finished(webhook, 1)
    assert receiver.got == []
    assert sending.states(webhook) == [(1, 2, 0, "the webhook was deleted")]


async def test_five_days_of_failures_disable_a_webhook(sending: Sending) -> None:
    async with Receiver(lambda _: web.Response(status=500)) as receiver, sending.sender(delays=(0,)):
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
        assert sending.rows("SELECT failing_since FROM delivery_endpoints") == [(sending.clock(),)]
        sending.clock.forward(days=4, hours=23)
        sending.put(webhook, (2, "a"))
        await sending.finished(webhook, 2)
        assert sending.disabled == []
        sending.clock.forward(hours=1)
        sending.put(webhook, (3, "a"))
        await sending.finished(webhook, 3)
        await until(lambda: sending.disabled)
        await until(lambda: sending.rows("SELECT failing_since FROM delivery_endpoints") == [(None,)])
    assert sending.disabled == [(webhook, "nothing but failures for 5 days")]


async def test_a_success_ends_the_count_of_days(sending: Sending) -> None:
    def answer(got: Got) -> web.Response:
        return web.Response(status=500 if b'"position":1}' in got.body else 200)

    async with Receiver(answer) as receiver, sending.sender(delays=(0,)):
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"), (2, "a"))
        await sending.finished(webhook, 2)
    assert sending.rows("SELECT failing_since, succeeded_at IS NOT NULL FROM delivery_endpoints") == [(None, True)]


async def test_both_secrets_sign_during_the_overlap(sending: Sending) -> None:
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url, OLD)
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
        box = sending.vault.encrypt(encode_secret(NEW), owner=f"webhook:{webhook}")
        await sending.core.executor.execute(
            Webhook.rotate.on(webhook, box.ref).with_secrets([box]), invocation=Invocation.by("test")
        )
        for number in (2, 3):
            sending.resend(webhook, "false")
            sending.put(webhook, (number, "a"))
            await sending.finished(webhook, number)
            sending.clock.forward(hours=25)
    first, second, third = receiver.got
    assert [verified(first, OLD), verified(first, NEW)] == [True, False]
    assert [verified(second, OLD), verified(second, NEW)] == [True, True]
    assert [verified(third, OLD), verified(third, NEW)] == [False, True]
    assert int(first.headers["webhook-timestamp"]) == int((sending.clock() - timedelta(hours=50)).timestamp())


async def test_forms_basic_authentication_and_additional_headers(sending: Sending) -> None:
    async with Receiver() as receiver, sending.sender():
        text = json.dumps({"headers": [{"name": "X-Site", "value": "a"}, {"name": "x-site", "value": "b"}]})
        webhook = await sending.webhook(
            receiver.url,
            use_json_body=False,
            use_http_basic_authentication=True,
            username="user",
            additional_properties_json=text,
        )
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
    [got] = receiver.got
    assert got.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(got.body.decode()) == {"Lane": ["a"], "Position": ["1"]}
    assert got.headers["authorization"] == f"Basic {base64.b64encode(b'user:').decode()}"
    assert got.headers["x-site"] == "a, b"
    assert verified(got, OLD)


async def test_a_member_that_lost_its_shards_writes_and_sends_nothing(sending: Sending) -> None:
    resume = asyncio.Event()

    async def answer(_: Got) -> web.Response:
        await resume.wait()
        return web.Response()

    async with Receiver(answer) as receiver, sending.sender(lease=60.0) as sender:
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"), (2, "a"))
        await until(lambda: receiver.got)
        sending.rows("UPDATE consumer_shards SET owner = %s, epoch = epoch + 1, held_until = 'infinity' RETURNING 1", UUID(int=9))
        resume.set()
        await until(lambda: sender.in_flight == 0)
        await until(lambda: shard_of(webhook) not in sender._endpoints.shards)
        sending.put(webhook, (3, "b"))
        await sender._endpoints.find_new()
        assert len(sender._endpoints) == 0
    assert [row[1:3] for row in sending.states(webhook)] == [(0, 0)] * 3
    assert sending.rows("SELECT count(*) FROM delivery_attempts") == [(0,)]
    assert len(receiver.got) <= 2, "the second may have begun before the write was refused"


async def test_the_next_owner_sends_again_with_the_same_id(sending: Sending) -> None:
    stuck = True

    async def answer(_: Got) -> web.Response:
        if stuck:
            await asyncio.Event().wait()
        return web.Response()

    async with Receiver(answer) as receiver:
        webhook = await sending.webhook(receiver.url)
        async with sending.sender(lease=0.5) as frozen:
            sending.put(webhook, (1, "a"))
            await until(lambda: receiver.got)
            assert frozen._task is not None
            for task in (frozen._task, *frozen._tasks, *frozen._endpoints._tasks.values()):  # as if it were killed
                task.cancel()
            stuck = False
            async with sending.sender(lease=0.5):
                await sending.finished(webhook, 1)
    assert len({got.id for got in receiver.got}) == 1
    assert len(receiver.got) == 2


async def test_after_a_promotion_nothing_is_sent_before_the_shards_are_held_again(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another member may take the shards as soon as they are released."""
    given_up, resume = asyncio.Event(), asyncio.Event()
    leave = ShardLeases.leave

    async def slowly(leases: ShardLeases) -> None:
        await leave(leases)
        given_up.set()
        await resume.wait()

    async with Receiver() as receiver, sending.sender() as sender:
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
        with monkeypatch.context() as promoted:
            promoted.setattr(ShardLeases, "leave", slowly)
            promoted.setattr(ShardLeases, "timeline", sending.core.database.timeline + 1)
            sender._waker.wake()
            await given_up.wait()
            sending.put(webhook, (2, "a"))
            for _ in range(3):
                await sender._endpoints.find_new()
            sent_meanwhile = len(receiver.got) + sender.in_flight
            resume.set()
            await sending.finished(webhook, 2)
    assert sent_meanwhile == 1


async def test_one_whose_start_failed_is_stopped_like_any_other(sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(_: ShardLeases) -> None:
        raise Unavailable("the database does not answer")

    monkeypatch.setattr(ShardLeases, "start", down)
    with pytest.raises(Unavailable):
        async with sending.sender():
            pass


async def test_broken_database_connections_lose_nothing(sending: Sending) -> None:
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, *[(number, "a") for number in range(1, 101)])
        await until(lambda: len(receiver.got) > 10)
        sending.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name <> ''"
        )
        sending.put(webhook, *[(number, "b") for number in range(101, 111)])
        await sending.finished(webhook, 110)
    assert [row[1:3] for row in sending.states(webhook)] == [(1, 1)] * 110
    positions = [json.loads(body)["position"] for body in receiver.bodies if '"a"' in body]
    assert sorted(set(positions)) == list(range(1, 101))
    firsts = list(dict.fromkeys(positions))
    assert firsts == sorted(firsts)


async def test_two_members_share_the_shards_and_each_delivery_is_sent_once(sending: Sending) -> None:
    async with Receiver() as receiver:
        webhooks = [await sending.webhook(receiver.url) for _ in range(12)]
        async with sending.sender(lease=5.0):  # not lost on a busy machine: its attempts would be sent again
            async with sending.sender(lease=5.0):
                owners = "SELECT count(*) FROM consumer_shards GROUP BY owner"
                await until(lambda: sending.rows(owners) == [(8,), (8,)])
                for webhook in webhooks:
                    sending.put(webhook, *[(number, "a") for number in range(1, 11)])
                for webhook in webhooks:
                    await sending.finished(webhook, 10)
            for webhook in webhooks:
                sending.put(webhook, (11, "a"))
            for webhook in webhooks:
                await sending.finished(webhook, 11)
    assert len(receiver.got) == 132
    for webhook in webhooks:
        assert [row[1:3] for row in sending.states(webhook)] == [(1, 1)] * 11


async def test_attempts_in_flight_at_the_stop_are_written(sending: Sending) -> None:
    resume = asyncio.Event()

    async def answer(_: Got) -> web.Response:
        await resume.wait()
        return web.Response()

    async with Receiver(answer) as receiver:
        webhook = await sending.webhook(receiver.url)
        async with sending.sender():
            sending.put(webhook, (1, "a"), (2, "a"))
            await until(lambda: receiver.got)
            asyncio.get_running_loop().call_later(0.05, resume.set)
    assert [row[1] for row in sending.states(webhook)] == [1, 0]
    assert sending.rows("SELECT count(*) FROM consumer_shards WHERE owner IS NOT NULL") == [(0,)]


async def test_a_delivery_that_finds_no_descriptor_loses_no_attempt(sending: Sending, caplog: pytest.LogCaptureFixture) -> None:
    """There are more deliveries than failures that open the circuit breaker, and no second attempt for an hour."""
    async with Receiver() as receiver, sending.sender(delays=(0, 3600)):
        webhook = await sending.webhook(receiver.url)
        with psycopg.connect(sending.url) as writer:
            sending.insert(writer, webhook, *[(number, f"lane {number}") for number in range(1, 31)])
            with descriptors_left(0):
                writer.commit()
                await until(lambda: "deliveries wait" in caplog.text or writer.execute("SELECT FROM delivery_attempts").fetchall())
        await sending.finished(webhook, 30)
    assert [state[1:] for state in sending.states(webhook)] == [(1, 1, None)] * 30
    assert sending.rows("SELECT count(*) FROM delivery_attempts") == [(30,)]
