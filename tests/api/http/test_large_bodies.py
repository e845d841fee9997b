"""Large bodies are parsed one after another, and a bounded number is in memory."""

from __future__ import annotations

import asyncio

import pytest

from api.http.large_bodies import LargeBodies, TooManyLargeBodies, is_large


@pytest.mark.parametrize(
    ("headers", "large"),
    [
        ({}, False),
        ({b"content-length": b"32768"}, False),
        ({b"content-length": b"32769"}, True),
        ({b"content-length": b"9" * 30}, True),
        ({b"transfer-encoding": b"chunked"}, True),
    ],
)
def test_a_body_without_a_length_may_be_large(headers: dict[bytes, bytes], large: bool) -> None:
    assert is_large(headers) is large


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_some_are_read_at_a_time_and_one_is_worked_on() -> None:
    bodies, read, worked, end = LargeBodies(3), list[int](), list[int](), asyncio.Event()

    async def request(number: int) -> None:
        async with bodies.room():
            read.append(number)
            async with bodies.turn():
                worked.append(number)
                await end.wait()

    requests = [asyncio.create_task(request(number)) for number in range(5)]
    await settled()
    assert (read, worked) == ([0, 1, 2], [0])
    requests[0].cancel()
    await settled()
    assert (read, worked) == ([0, 1, 2, 3], [0, 1])
    end.set()
    await asyncio.gather(*requests, return_exceptions=True)
    assert (read, worked) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])


async def test_who_waits_too_long_is_refused_and_takes_no_place() -> None:
    bodies = LargeBodies(1, patience=0.01)
    async with bodies.room():
        for _ in range(2):
            with pytest.raises(TooManyLargeBodies):
                async with bodies.room():
                    pass
    async with bodies.room(), bodies.turn():
        pass
