"""Any bytes as the answer of a receiver cause at most a failed attempt. The place is released, and other receivers get their
deliveries."""

from __future__ import annotations

import asyncio
from asyncio import StreamWriter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.kernel.background_task import FAULTS
from projections.webhook.store import (
    DELIVERED,
    PENDING,
    AttemptOutcome,
    DeliveryStore,
    EndpointHealthChange,
    PendingDelivery,
    WebhookStatus,
)
from tests.support.clock import NOON
from tests.workers.outbound.host import OK, Host, says
from tests.workers.webhook.sender.sending import LOOPBACK, Receiver, Sending, until
from workers.adapters.outbound_http import GuardedClient
from workers.webhook.sender.attempt import DeliveryClient
from workers.webhook.sender.endpoint import Endpoint, SharedParts
from workers.webhook.sender.endpoint_configs import EndpointConfig, EndpointConfigs
from workers.webhook.sender.outcomes import OutcomeRecorder
from workers.webhook.sender.retries import DELAYS, RetrySchedule

WEBHOOK = UUID(int=1)
RETRY_AFTER = (
    "Mon, 01 Jan 2020 00:00:00 +99999999999999999999",
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "9" * 5000,
    "-1",
    "1e9",
    "\xff",
    "",
)


def answered(retry_after: str, status: int = 503) -> bytes:
    return f"HTTP/1.1 {status} X\r\nRetry-After: {retry_after}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode("latin-1")


STATUS_LINES = (
    *(b"HTTP/1.1 " + rest for rest in (b"200 OK", b"503 ", b"999 X", b"000 X", b"-20 X", b"2000 X")),
    b"HTTP/9.9 200",
    b"ICY 200",
)
KNOWN_HEADERS = (
    *(b"Retry-After: " + value.encode("latin-1") for value in RETRY_AFTER),
    *(b"Content-Length: " + value for value in (b"0", b"-1", b"5", b"99999999999999999999", b"1, 2", b"0x5")),
    *(b"Transfer-Encoding: " + value for value in (b"chunked", b"gzip, chunked", b"identity", b"chunked, chunked")),
    *(b"Content-Encoding: " + value for value in (b"gzip", b"br", b"x")),
    *(b"Location: " + value for value in (b"http://[", b"//\xff", b"http://127.0.0.1:1/")),
    *(b"Set-Cookie: a=b; Domain=\xff; Max-Age=" + b"9" * 400, b"Connection: upgrade\r\nUpgrade: x", b"Content-Type: ;;\xff"),
)
headers = st.lists(st.sampled_from(KNOWN_HEADERS) | st.binary(max_size=40), max_size=6).map(b"\r\n".join)
bodies = st.sampled_from((b"", b"ok", b"5\r\nhello\r\n0\r\n\r\n", b"-1\r\n", b"f" * 40 + b"\r\n")) | st.binary(max_size=100)
answers = st.binary(max_size=200) | st.builds(
    lambda line, head, body: line + b"\r\n" + head + b"\r\n\r\n" + body, st.sampled_from(STATUS_LINES), headers, bodies
)


class Store(DeliveryStore):
    """A table with one webhook, which is enabled."""

    def __init__(self) -> None: ...

    async def webhook_status(self, webhook: UUID) -> WebhookStatus:
        return WebhookStatus(1, enabled=True, failing_since=None)


class Configs(EndpointConfigs):
    """Webhooks with this address."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def load(self, webhooks: Sequence[UUID]) -> dict[UUID, EndpointConfig]:
        config = EndpointConfig(1, self._url, as_json=True, disabled=False, headers={}, keys=[bytes(32)], previous_until=None)
        return dict.fromkeys(webhooks, config)


class Recorder(OutcomeRecorder):
    """Keeps outcomes in memory."""

    def __init__(self) -> None:
        self.outcomes: list[AttemptOutcome] = []

    async def record(self, outcome: AttemptOutcome, health: EndpointHealthChange | None) -> None:
        self.outcomes.append(outcome)


async def _never(webhook: UUID, reason: str) -> None:
    raise AssertionError(f"{webhook}: {reason}")


async def outcome_of(client: DeliveryClient, url: str) -> AttemptOutcome:
    """Return the outcome of an attempt at this address."""
    recorder = Recorder()
    parts = SharedParts(
        store=Store(),
        configs=Configs(url),
        client=client,
        outcomes=recorder,
        disable=_never,
        schedule=RetrySchedule(DELAYS),
        rng=Random(1),
        until=float("inf"),
    )
    await Endpoint(WEBHOOK, shard=0, epoch=1, parts=parts)._attempt(PendingDelivery(WEBHOOK, 1, "a", "{}", 0, 0.0))
    [outcome] = recorder.outcomes
    return outcome


@pytest.fixture(scope="module")
def attempted() -> Iterator[Callable[[bytes], AttemptOutcome]]:
    """Attempt a delivery to a receiver on a real socket, which answers with these bytes and closes the connection."""
    answers = [b""]

    async def script(out: StreamWriter) -> None:
        out.write(answers[0])
        out.close()

    async def attempt(answer: bytes) -> AttemptOutcome:
        answers[0] = answer
        return await outcome_of(client, host.url)

    async def opened() -> None:
        await host.__aenter__()

    async def closed() -> None:
        await outbound.close()
        await host.__aexit__(None, None, None)

    host, outbound = Host(script), GuardedClient(LOOPBACK)
    client = DeliveryClient(outbound, lambda: NOON, seconds=60.0)
    with asyncio.Runner() as runner:
        runner.run(opened())
        yield lambda answer: runner.run(attempt(answer))
        runner.run(closed())


@given(answer=answers)
def test_any_bytes_are_a_try(attempted: Callable[[bytes], AttemptOutcome], answer: bytes) -> None:
    outcome = attempted(answer)
    assert outcome.state in (DELIVERED, PENDING)
    assert outcome.attempts == 1
    assert (outcome.state == DELIVERED) == (outcome.error is None)
    assert "\0" not in outcome.response


@pytest.mark.parametrize("value", RETRY_AFTER)
def test_no_retry_after_is_more_than_a_failed_try(attempted: Callable[[bytes], AttemptOutcome], value: str) -> None:
    outcome = attempted(answered(value))
    assert (outcome.state, outcome.status) == (PENDING, 503)
    assert 0 <= outcome.wait <= 3600


async def test_ill_receivers_take_no_place_from_the_others(sending: Sending) -> None:
    """There are as many faulty receivers as would take all places forever if each answer kept the place of its attempt."""
    before = FAULTS.total()
    ill = [answered(value) for value in RETRY_AFTER[:2]]
    async with (
        Host(says(ill[0], then_closes=True)) as first,
        Host(says(ill[1], then_closes=True)) as second,
        Receiver() as healthy,
        sending.sender(places=4, delays=(0.0, 3600.0)) as sender,
    ):
        webhooks = [await sending.webhook(entry.url) for entry in (first, second) * 4]
        for webhook in webhooks:
            sending.put(webhook, (1, "a"), (2, "b"))
        well = await sending.webhook(healthy.url)
        sending.put(well, *((position, "a") for position in range(1, 11)))
        await sending.finished(well, 10)
        await until(lambda: all(any(row[2] for row in sending.states(webhook)) for webhook in webhooks))
        await until(lambda: sender.in_flight == 0)
    assert all("503" in row[3] for webhook in webhooks for row in sending.states(webhook) if row[2])
    assert FAULTS.total() == before


class _Broken(GuardedClient):
    """A client that fails as no client should: with a cancellation that was not requested."""

    async def request(self, *_: Any, **__: Any) -> Any:
        raise asyncio.CancelledError


async def test_a_fault_of_our_own_gives_the_place_back_and_is_counted(sending: Sending, caplog: pytest.LogCaptureFixture) -> None:
    before = FAULTS["deliveries"]
    async with Host(says(OK)) as host, sending.sender(places=1) as sender:
        webhook = await sending.webhook(host.url)
        sender._client._outbound = _Broken(LOOPBACK)
        sending.put(webhook, (1, "a"))
        await until(lambda: "ended by a fault" in caplog.text)
        await until(lambda: sender.in_flight == 0)
        sender._client._outbound = GuardedClient(LOOPBACK)
        other = await sending.webhook(host.url, neighbour=webhook)
        sending.put(other, (2, "a"))  # a later row of a shard has a higher position
        await sending.finished(other, 1)
        await sender._client._outbound.close()
    assert sending.states(webhook) == [(1, PENDING, 0, None)]
    assert FAULTS["deliveries"] == before + 1
