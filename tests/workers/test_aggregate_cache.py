"""The cache of aggregates that consumers fold: bounded by weight, complete during a batch."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Collection
from typing import Any, cast
from uuid import UUID

from pydantic_core import from_json, to_json

from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.decision import decide
from domain.kernel.event import DomainEvent
from projections.log.sized_cache import memory_of
from projections.log.streams import Streams
from tests.support.clock import NOON
from workers.kernel.aggregate_cache import AggregateCache


class _Log:
    """A log that loads nothing, and records the requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def as_of(self, streams: Collection[str], position: int) -> dict[str, Any]:
        self.asked += streams
        return {}


def event(number: int) -> DomainEvent:
    return decide(AddOrUpdateEvent(UUID(int=number), {"title": "x"}), None, at=NOON).events[0]


async def cached(cache: AggregateCache[MediaEvent], log: _Log, *numbers: int) -> list[int]:
    """Return the Events that need not be loaded."""
    log.asked.clear()
    await cache.load({str(UUID(int=number)): False for number in numbers}, position=0)
    return [number for number in numbers if MediaEvent.stream(UUID(int=number)) not in log.asked]


async def test_the_most_recently_changed_are_kept_up_to_a_weight() -> None:
    log = _Log()
    cache = AggregateCache(MediaEvent, cast(Streams, log), most=10_000)
    for number in range(1, 6):
        cache.fold(event(number), size=500)
    assert [number for number in range(1, 6) if cache.get(str(UUID(int=number)))] == [1, 2, 3, 4, 5], "a batch keeps all"
    cache.tidy()
    assert await cached(cache, log, 1, 2, 3, 4, 5) == [3, 4, 5]


async def test_one_that_is_too_heavy_takes_no_other_with_it() -> None:
    log = _Log()
    cache = AggregateCache(MediaEvent, cast(Streams, log), most=10_000)
    cache.fold(event(1), size=500)
    cache.tidy()
    cache.fold(event(2), size=20_000)
    assert cache.get(str(UUID(int=2))) is not None
    cache.tidy()
    assert await cached(cache, log, 1, 2) == [1]
    assert cache.get(str(UUID(int=2))) is None


def test_small_values_weigh_more_than_their_text() -> None:
    """Each value is an object in memory: 16 MB for a megabyte of small arrays."""
    values: list[Any] = [[[]] * 10_000, [{"a": 1.5}] * 10_000, [[1.5, 2.5]] * 10_000, {f"{n}": n + 0.5 for n in range(10_000)}]
    for value in values:
        text = to_json(value)
        gc.collect()
        tracemalloc.start()
        parsed = from_json(text, cache_strings=False)
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert taken <= memory_of(text) <= 4 * taken, parsed
