"""Limits of the subscribers of a stream: who has no key takes neither every seat, nor many from one address."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from api.guards.seats import Seats
from api.kernel.subscribers import FULL, Subscriber, SubscriberLimit

BEAT = b"beat"


async def frames() -> AsyncGenerator[bytes, None]:
    while True:
        yield BEAT


async def seated(limit: SubscriberLimit, *subscribers: Subscriber) -> list[AsyncGenerator[bytes, None]]:
    """The streams of those who got a seat."""
    streams = [limit.within_limit(frames(), subscriber) for subscriber in subscribers]
    return [stream for stream in streams if await anext(stream) != FULL]


def stranger(address: int) -> Subscriber:
    return Subscriber(f"192.0.2.{address}", has_key=False)


async def test_a_quarter_of_the_seats_is_kept_for_callers_with_a_key() -> None:
    seats = Seats()
    limit = SubscriberLimit("board", seats, most=8, each=2)
    strangers = await seated(limit, *(stranger(number) for number in range(20)))
    assert len(strangers) == 6
    ours = await seated(limit, *[Subscriber("192.0.2.1", has_key=True, client=name) for name in "abc"])
    assert len(ours) == 2
    for stream in (*strangers, *ours):
        await stream.aclose()
    assert seats.taken == {}


def test_each_process_has_an_equal_share_of_the_seats() -> None:
    seats = Seats(processes=3)
    assert [bool(seats.take({"board": 4, "reader": 1})) for _ in range(2)] == [True, False]
    assert [bool(seats.take({"board": 4})) for _ in range(2)] == [True, False]
    seats.leave(("board", "reader"))
    assert seats.take({"board": 4, "reader": 1}) == ("board", "reader")


async def test_one_client_has_a_quarter_of_the_seats() -> None:
    limit = SubscriberLimit("board", Seats(), most=8)
    first = await seated(limit, *[Subscriber("192.0.2.1", has_key=True, client="a")] * 5)
    other = await seated(limit, *[Subscriber("192.0.2.1", has_key=True, client="b")] * 5)
    assert (len(first), len(other)) == (2, 2)
    for stream in (*first, *other):
        await stream.aclose()


async def test_a_stream_ends_at_the_next_beat_after_the_key() -> None:
    stands = [True, True, False]

    async def lasts() -> bool:
        return stands.pop(0)

    seats = Seats()
    stream = SubscriberLimit("board", seats).within_limit(frames(), Subscriber("192.0.2.1", has_key=True, lasts=lasts))
    assert [frame async for frame in stream] == [BEAT, BEAT]
    assert seats.taken == {}


async def test_an_address_without_a_key_has_few_seats() -> None:
    seats = Seats()
    limit = SubscriberLimit("board", seats, most=8, each=2)
    streams = await seated(limit, *[stranger(1)] * 5, *[stranger(2)] * 5)
    assert len(streams) == 4
    await streams.pop(0).aclose()
    streams += await seated(limit, stranger(1))
    assert len(streams) == 4
    for stream in streams:
        await stream.aclose()
    assert seats.taken == {}
