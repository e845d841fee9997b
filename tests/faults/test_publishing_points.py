"""The publishing points of the fault matrix: they record all that comes, and break as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import aiohttp
import pytest

from faults.publishing_points import BROKEN, UNNUMBERED, How, PublishingPoints, Write

SEGMENT = "v0-7-1.m4s"
PATIENCE = 60.0


@pytest.fixture
async def points() -> AsyncIterator[PublishingPoints]:
    async with PublishingPoints(fencing=(1,)) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
        yield session


async def put(
    http: aiohttp.ClientSession, points: PublishingPoints, point: int = 0, *, session: int | None = 7, body: bytes = b"x" * 100
) -> int:
    headers = {} if session is None else {"X-Session": str(session)}
    async with http.put(f"{points.url('c0', point)}/{SEGMENT}", data=body, headers=headers) as answer:
        return answer.status


async def last(points: PublishingPoints) -> Write:
    return (await points.writes())[-1]


async def until(points: PublishingPoints, holds: Callable[[Sequence[Write]], object]) -> Sequence[Write]:
    while True:
        if (writes := await points.writes()) and holds(writes):
            return writes
        await asyncio.sleep(0.01)


async def test_received_requests_are_recorded_with_session_and_times(points: PublishingPoints, http: aiohttp.ClientSession) -> None:
    assert await put(http, points, session=7) == 201
    assert await put(http, points, 1, session=None, body=b"") == 201
    first, second = await points.writes()
    assert (first.channel, first.point, first.session, first.name, first.bytes) == ("c0", 0, 7, SEGMENT, 100)
    assert first.began <= first.ended <= second.began
    assert (second.point, second.session, second.pieces) == (1, UNNUMBERED, [])
    assert (first.segment, second.segment) == (True, False)


async def test_reads_are_not_recorded(points: PublishingPoints, http: aiohttp.ClientSession) -> None:
    """The prober sends such requests."""
    async with http.get(f"{points.url('c0', 0)}/status.php") as answer:
        assert answer.status == 404
    assert await points.writes() == []


async def test_a_body_that_comes_slowly_is_recorded_piece_by_piece(points: PublishingPoints, http: aiohttp.ClientSession) -> None:
    """The pieces are recorded even before the body has ended."""
    seen = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 10
        await seen.wait()
        yield b"x" * 20

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(http.put(f"{points.url('c0', 0)}/{SEGMENT}", data=body()))
        arrived = await until(points, lambda writes: writes[0].pieces)
        assert (arrived[0].bytes, arrived[0].taken) == (10, False)
        seen.set()
        assert (await sending).status == 201
    assert (await last(points)).bytes == 30


async def test_a_fencing_point_refuses_a_lower_session_and_another_does_not(
    points: PublishingPoints, http: aiohttp.ClientSession
) -> None:
    assert [await put(http, points, 1, session=number) for number in (7, 8, 7, 8, 9)] == [201, 201, 409, 201, 201]
    assert [await put(http, points, 0, session=number) for number in (7, 8, 7)] == [201, 201, 201]
    refused = [write for write in await points.writes() if write.status == 409]
    assert [(write.session, write.taken, write.pieces) for write in refused] == [(7, False, [])]


@pytest.mark.parametrize("how", [How.UNAUTHORIZED, How.FAILING, How.FULL])
async def test_a_point_answers_as_configured_and_the_other_is_unaffected(
    points: PublishingPoints, http: aiohttp.ClientSession, how: How
) -> None:
    await points.behave(0, how)
    assert (await put(http, points), await put(http, points, 1)) == (int(how), 201)
    assert [write.segment for write in await points.writes()] == [False, True]
    await points.behave(0, How.WELL)
    assert await put(http, points) == 201


async def test_a_point_that_is_down_refuses_connections_and_comes_back_at_its_address(
    points: PublishingPoints, http: aiohttp.ClientSession
) -> None:
    await points.behave(0, How.DOWN)
    with pytest.raises(aiohttp.ClientConnectorError):
        await put(http, points)
    assert await put(http, points, 1) == 201
    await points.behave(0, How.WELL)
    assert await put(http, points) == 201


async def test_a_point_that_resets_breaks_the_connection_within_the_body(
    points: PublishingPoints, http: aiohttp.ClientSession
) -> None:
    await points.behave(0, How.RESETTING)
    with pytest.raises(aiohttp.ClientError):
        await put(http, points)
    assert not (await last(points)).taken


async def test_a_point_that_hangs_keeps_the_request_until_it_is_well(points: PublishingPoints, http: aiohttp.ClientSession) -> None:
    await points.behave(0, How.HANGING)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        hanging = tasks.create_task(_put_or_broken(http, points))
        await until(points, lambda writes: True)
        assert not hanging.done()
        await points.behave(0, How.WELL)
    assert (await points.writes())[0].status == BROKEN
    assert await put(http, points) == 201


async def test_a_slow_point_reads_some_kib_a_second_and_at_once_when_it_is_well(
    points: PublishingPoints, http: aiohttp.ClientSession
) -> None:
    await points.behave(0, How.SLOW)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        slow = tasks.create_task(put(http, points, body=b"x" * 2_000_000))
        arrived = await until(points, lambda writes: len(writes[0].pieces) > 2)
        assert (arrived[0].ended - arrived[0].began) > 0.4
        await points.behave(0, How.WELL)
        assert await slow == 201
    assert (await last(points)).bytes == 2_000_000


async def _put_or_broken(http: aiohttp.ClientSession, points: PublishingPoints) -> None:
    with suppress(aiohttp.ClientError):
        await put(http, points)
