"""The ill receivers of the fault scenario, all at once: every attempt at one ends in time, as an attempt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from faults.ill_receivers import IllReceivers
from tests.conftest import NOON
from workers.adapters.outbound_http import GuardedClient
from workers.deliveries.attempt import result_of
from workers.deliveries.retries import LONGEST_REQUESTED
from workers.ports import OutboundFailed, OutboundRefused

MOST = 2000


@pytest.fixture
async def receivers() -> AsyncIterator[IllReceivers]:
    made = IllReceivers()
    await made.start()
    yield made
    await made.stop()


async def test_an_attempt_at_every_ill_receiver_ends_in_time(receivers: IllReceivers) -> None:
    client = GuardedClient([ip_network("127.0.0.0/8")])
    bodies: dict[str, int] = {}

    async def attempt(name: str, url: str) -> None:
        try:
            reply = await client.request("POST", url, body=b"{}", seconds=2, most=MOST)
        except (OutboundFailed, OutboundRefused):
            return
        bodies[name] = len(reply.body)
        assert 0 <= result_of(reply, NOON).requested_wait <= LONGEST_REQUESTED

    async with asyncio.timeout(60):
        await asyncio.gather(*(attempt(name, url) for name, url in receivers.urls.items()))
    await client.close()
    assert receivers.asked.keys() == receivers.urls.keys()
    assert max(bodies.values()) <= MOST
    assert {"500", "429", "410", "Retry-After with a year of 20 digits"} <= bodies.keys()
