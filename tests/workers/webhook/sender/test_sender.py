"""Deliveries to real receivers: order, retries, and endpoints that do not block each other."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

from aiohttp import web
from prometheus_client import CollectorRegistry

from domain.kernel.cause import Cause
from domain.kernel.ports import Invocation
from domain.webhook.aggregate import Webhook
from projections.webhook.keys import DeliverySource, delivery_id
from projections.webhook.queries import DeliveryFilter, DeliveryQueries
from tests.workers.webhook.sender.sending import Got, Receiver, Sending, until
from workers.kernel.metrics import WorkerMetrics


def answers(status: int) -> web.Response:
    return web.Response(status=status)


async def test_a_delivery_is_sent_and_recorded(sending: Sending) -> None:
    async with Receiver(lambda _: web.Response(text="thanks")) as receiver, sending.sender():
        webhook = await sending.webhook(f"{receiver.url}/hook?a=1")
        sending.put(webhook, (5, "a"))
        await sending.finished(webhook, 1)
    [got] = receiver.got
    assert (got.path, json.loads(got.body)) == ("/hook", {"lane": "a", "position": 5})
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"] == "medialedger/0.0.0"
    assert UUID(got.id) == delivery_id(webhook, 5, ordering_key="a")
    assert sending.states(webhook) == [(5, 1, 1, None)]
    [(status, error, address, response, seconds, started)] = sending.rows(
        "SELECT status, error, address, response, seconds, started_at FROM delivery_attempts"
    )
    assert (status, error, address, response, started) == (200, None, "127.0.0.1", "thanks", sending.clock())
    assert 0 < seconds < 60


async def test_the_trace_of_the_event_goes_with_its_delivery(sending: Sending) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url)
        positions = []
        for cause in (Cause.by("test", trace_parent=trace), Cause.by("test")):
            change = Webhook.amend.on(webhook, {"username": str(cause.command_id)})
            outcome = await sending.core.executor.execute(change, invocation=Invocation(cause))
            positions.append(outcome.position or 0)
        sending.put(webhook, *((position, "a") for position in positions))
        await sending.finished(webhook, 2)
    assert [got.headers.get("traceparent") for got in receiver.got] == [trace, None]


async def test_a_position_that_is_given_to_another_write_gives_another_id(sending: Sending) -> None:
    """Position 6 was lost and written again. A receiver may have received the former id, and would ignore the new delivery if it
    had the same."""
    sending.rows("INSERT INTO log_epochs (epoch, since_position, reason) VALUES (2, 5, 'promoted') RETURNING epoch")
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (5, "a"), (6, "a"))
        await sending.finished(webhook, 2)
    ids = [delivery_id(webhook, 5, ordering_key="a"), delivery_id(webhook, 6, ordering_key="a", epoch=2)]
    assert [UUID(got.id) for got in receiver.got] == ids
    listed = await DeliveryQueries(sending.core.database).page(webhook, DeliveryFilter())
    assert [result.id for result in listed.results] == ids[::-1]


async def test_deliveries_from_before_the_start_are_sent_in_order(sending: Sending) -> None:
    async with Receiver() as receiver:
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, *[(number, f"lane {number % 7}") for number in range(1, 301)])
        async with sending.sender():
            await sending.finished(webhook, 300)
            sending.put(webhook, *[(number, f"lane {number % 7}") for number in range(301, 401)])
            await sending.finished(webhook, 400)
    by_lane: dict[str, list[int]] = {}
    for got in receiver.got:
        document = json.loads(got.body)
        by_lane.setdefault(document["lane"], []).append(document["position"])
    assert all(positions == sorted(positions) for positions in by_lane.values())
    assert sum(map(len, by_lane.values())) == 400
    assert receiver.most <= 16


async def test_a_source_that_is_behind_the_other_loses_nothing(sending: Sending) -> None:
    """The fan-out of callbacks inserts positions before those that the fan-out of notifications has inserted."""
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url + "/event")
        callback = await sending.webhook(receiver.url + "/job", neighbour=webhook)
        sending.put(webhook, (10, "event"))
        sending.put(callback, (11, "job:1"), source=DeliverySource.CALLBACKS)
        await sending.finished(webhook, 1)
        await sending.finished(callback, 1)
        sending.put(webhook, (20, "event"))
        await sending.finished(webhook, 2)
        sending.put(callback, (18, "job:2"), source=DeliverySource.CALLBACKS)
        sending.put(callback, (21, "job:2"), source=DeliverySource.CALLBACKS)
        await sending.finished(callback, 3)
    assert [json.loads(got.body)["position"] for got in receiver.got if got.path == "/job"] == [11, 18, 21]


async def test_a_failing_delivery_blocks_its_own_ordering_key_only(sending: Sending) -> None:
    broken = True

    def answer(got: Got) -> web.Response:
        return answers(500 if broken and b'"bad"' in got.body else 200)

    async with Receiver(answer) as receiver, sending.sender(delays=(0, 3600)):
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "bad"), (2, "bad"), (3, "good"), (4, "good"))
        await sending.finished(webhook, 2)
        sending.put(webhook, (5, "bad"), (6, "good"))
        await sending.finished(webhook, 3)
        assert [json.loads(body)["position"] for body in receiver.bodies if '"bad"' in body] == [1]
        assert sending.states(webhook)[0] == (1, 0, 1, "The answer was 500 Internal Server Error.")
        broken = False
        sending.due(webhook)
        await sending.finished(webhook, 6)
    assert [json.loads(body)["position"] for body in receiver.bodies if '"bad"' in body] == [1, 1, 2, 5]
    first, second = [got.id for got in receiver.got if b'"position":1}' in got.body]
    assert first == second


async def test_after_the_last_try_a_delivery_fails_and_the_next_one_is_sent(sending: Sending) -> None:
    def answer(got: Got) -> web.Response:
        return answers(500 if b'"position":1}' in got.body else 204)

    async with Receiver(answer) as receiver, sending.sender(delays=(0, 0.01, 0.01)):
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"), (2, "a"))
        await sending.finished(webhook, 2)
    assert sending.states(webhook) == [(1, 2, 3, "The answer was 500 Internal Server Error."), (2, 1, 1, None)]
    assert len({got.id for got in receiver.got}) == 2
    assert sending.rows("SELECT count(*) FROM delivery_attempts") == [(4,)]


async def test_an_endpoint_that_hangs_blocks_no_other(sending: Sending) -> None:
    async def hang(_: Got) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with Receiver(hang) as dead, Receiver() as well:
        hanging, healthy = await sending.webhook(dead.url), await sending.webhook(well.url)
        async with sending.sender(seconds=3, delays=(0, 3600)):
            sending.put(hanging, *[(number, f"lane {number}") for number in range(1, 40)])
            sending.put(healthy, *[(number, f"lane {number}") for number in range(1, 101)])
            await sending.finished(healthy, 100)
            await until(lambda: sending.rows("SELECT count(*) FROM delivery_attempts WHERE status IS NULL")[0][0] >= 10)
            assert dead.most == 16
    result = [state for state in sending.states(hanging) if state[2]]
    assert {error for *_, error in result} == {"No complete answer within 3 s."}
    assert 10 <= len(result) <= 26, "the breaker opened"
    assert all(state == 0 for _, state, *_ in sending.states(hanging)), "what it skipped is not used up"


async def test_a_redirect_is_a_failed_try_and_not_followed(sending: Sending) -> None:
    def answer(got: Got) -> web.Response:
        return web.Response(status=302, headers={"location": "/elsewhere"})

    async with Receiver(answer) as receiver, sending.sender(delays=(0,)):
        webhook = await sending.webhook(f"{receiver.url}/hook")
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
    assert [got.path for got in receiver.got] == ["/hook"]
    assert sending.states(webhook) == [(1, 2, 1, "The answer was 302 Found.")]


async def test_an_address_that_is_not_public_is_refused_as_a_failed_try(sending: Sending) -> None:
    async with sending.sender(delays=(0,)):
        webhook = await sending.webhook("http://10.0.0.1/hook")
        sending.put(webhook, (1, "a"))
        await sending.finished(webhook, 1)
    [(_, state, attempts, error)] = sending.states(webhook)
    assert (state, attempts) == (2, 1)
    assert "The address is not public" in error


async def test_a_resent_delivery_has_the_same_id(sending: Sending) -> None:
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (1, "a"), (2, "a"), (3, "b"))
        await sending.finished(webhook, 3)
        sending.resend(webhook, "position = 1")
        await until(lambda: len(receiver.got) == 4)
        await sending.finished(webhook, 3)
    assert receiver.got[-1].id == next(got.id for got in receiver.got if b'"position":1}' in got.body)
    assert sending.states(webhook)[0] == (1, 1, 1, None)


async def test_late_rows_are_read_when_their_webhook_is_notified(sending: Sending) -> None:
    async with Receiver() as receiver, sending.sender():
        webhook = await sending.webhook(receiver.url)
        sending.put(webhook, (10, "a"))
        await sending.finished(webhook, 1)
        sending.put(webhook, (5, "a"))
        sending.resend(webhook, "false")
        await sending.finished(webhook, 2)


async def test_attempts_and_open_breakers_are_counted(sending: Sending) -> None:
    registry = CollectorRegistry()

    def attempts(outcome: str, answer: str) -> float:
        labels = {"outcome": outcome, "answer": answer}
        return registry.get_sample_value("medialedger_delivery_attempts_total", labels) or 0

    def receivers(phase: str) -> float | None:
        return registry.get_sample_value("medialedger_delivery_endpoints", {"phase": phase})

    async with Receiver() as good, Receiver(lambda _: answers(500)) as bad, sending.sender(metrics=WorkerMetrics(registry)):
        fine, ill = await sending.webhook(good.url), await sending.webhook(bad.url)
        sending.put(fine, (1, "a"), (2, "b"))
        await sending.finished(fine, 2)
        assert (attempts("delivered", "2xx"), receivers("resting")) == (2, 0)
        sending.put(ill, *[(number, f"lane {number}") for number in range(10, 30)])
        await until(lambda: receivers("resting") == 1)
        assert attempts("to be retried", "5xx") + attempts("failed", "5xx") >= 10
    assert registry.get_sample_value("medialedger_delivery_attempt_seconds_count") == sum(
        attempts(outcome, answer) for outcome in ("delivered", "to be retried", "failed") for answer in ("2xx", "5xx", "none")
    )
