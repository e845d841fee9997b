"""Large bodies are parsed one after another, a bounded number is in memory, and no client holds all of their places."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest

from api.kernel.large_bodies import fair_large_bodies
from domain.kernel.errors import Unavailable
from projections.kernel.database.readers import READER, Reader


class Requests:
    """Requests of clients with large bodies. `read` and `worked` say whose bodies have been read, and worked on."""

    def __init__(self, most: int) -> None:
        self.bodies = fair_large_bodies(most)
        self.read: list[str] = []
        self.worked: list[str] = []
        self.sent = asyncio.Event()
        self.end = asyncio.Event()

    def send(self, client: str) -> asyncio.Task[None]:
        context = copy_context()
        context.run(READER.set, Reader(client))
        return asyncio.get_running_loop().create_task(self._send(client), context=context)

    async def _send(self, client: str) -> None:
        async with self.bodies.room():
            await self.sent.wait()
            self.read.append(client)
            async with self.bodies.turn():
                self.worked.append(client)
                await self.end.wait()

    async def settle(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_some_are_read_at_a_time_and_one_is_worked_on() -> None:
    requests = Requests(3)
    requests.sent.set()
    tasks = [requests.send(client) for client in "abcde"]
    await requests.settle()
    assert (requests.read, requests.worked) == (list("abc"), ["a"])
    tasks[0].cancel()
    await requests.settle()
    assert (requests.read, requests.worked) == (list("abcd"), list("ab"))
    requests.end.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (requests.read, requests.worked) == (list("abcde"), list("abcde"))


async def test_a_client_whose_bodies_do_not_come_leaves_places_to_others() -> None:
    requests = Requests(4)
    tasks = [requests.send("slow") for _ in range(10)]
    await requests.settle()
    requests.sent.set()
    requests.end.set()
    await asyncio.wait_for(requests.send("other"), 5)
    await asyncio.gather(*tasks)
    assert requests.worked.count("slow") == 10


async def test_who_waits_too_long_is_refused_with_a_time_to_try_again() -> None:
    bodies = fair_large_bodies(1, patience=0.01)
    async with bodies.turn():
        for _ in range(2):
            with pytest.raises(Unavailable, match="too many large requests") as refused:
                async with bodies.turn():
                    pass
            assert refused.value.retry_after == 2
    async with bodies.room(), bodies.turn():
        pass
