"""The ill receivers of the fault scenario, all at once: every attempt at one ends in time, as an attempt."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from faults.ill_receivers import IllReceivers
from tests.projections.log.helpers import until
from tests.support.clock import NOON
from workers.adapters.outbound_http import GuardedClient
from workers.ports.outbound import OutboundFailed, OutboundRefused
from workers.webhook.sender.attempt import result_of
from workers.webhook.sender.retries import LONGEST_REQUESTED

MOST = 2000
ANSWERED = {"500", "429", "410", "Retry-After with a year of 20 digits"}


@pytest.fixture
async def receivers() -> AsyncIterator[IllReceivers]:
    made = IllReceivers()
    await made.start()
    yield made
    await made.stop()


async def test_an_attempt_at_every_ill_receiver_ends_in_time(receivers: IllReceivers) -> None:
    client = GuardedClient([ip_network("127.0.0.0/8")])
    bodies: dict[str, int] = {}

    async def attempt(name: str, url: str, *, seconds: float) -> None:
        try:
            reply = await client.request("POST", url, body=b"{}", seconds=seconds, most=MOST)
        except (OutboundFailed, OutboundRefused):
            return
        bodies[name] = len(reply.body)
        assert 0 <= result_of(reply, NOON).requested_wait <= LONGEST_REQUESTED

    async with asyncio.timeout(180):
        await asyncio.gather(*(attempt(name, url, seconds=2) for name, url in receivers.urls.items()))
        for name in ANSWERED - bodies.keys():  # all at once may take more time than an attempt has
            await attempt(name, receivers.urls[name], seconds=30)
    await until(lambda: receivers.asked.keys() == receivers.urls.keys())
    await client.close()
    assert max(bodies.values()) <= MOST
    assert bodies.keys() >= ANSWERED


async def test_a_failed_attempt_leaves_nothing_to_the_garbage_collector() -> None:
    """An attempt left 83 objects that referred to each other, and the collector freed thousands in one pause. No receiver listens,
    so that only the client is measured."""
    client = GuardedClient([ip_network("127.0.0.0/8")])

    async def attempt() -> None:
        with pytest.raises(OutboundFailed):
            await client.request("POST", "http://127.0.0.1:1/", body=b"{}", seconds=30)

    await attempt()
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            await attempt()
        assert gc.collect() <= 10 * 20
    finally:
        gc.enable()
        await client.close()
