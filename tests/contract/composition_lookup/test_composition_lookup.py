"""The look-ups of compositions over the views, and their twins in memory: the same answers after the same history."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.composition.aggregate import Composition
from domain.composition.ports import CompositionLookup, KnownEvents
from domain.composition.values import CompositionKind, FirstStep
from domain.event.aggregate import MediaEvent
from domain.event.commands import AddOrUpdateEvent
from domain.kernel.command import Command
from domain.kernel.ports import Invocation
from projections.composition.queries import CompositionQueries
from projections.event.queries import EventQueries
from tests.domain.composition.compositions_given import PLAYLIST, SOURCE, marked, playlist
from tests.domain.composition.memory_compositions import MemoryCompositions
from tests.domain.memory import Memory
from tests.support.clock import NOON, HandClock

FILM, AGAIN, ENCODER, WAITING, GONE = (UUID(int=number) for number in range(11, 16))
FIRST, SECOND, THIRD, FOURTH = (UUID(int=number) for number in range(21, 25))
MARKED = playlist(marked(("00:00:02", "00:00:30"), start="00:00:01", Own={"x": [None, 1.5, "ü\u2028"]}), name="%", looped=True)


def composed(key: UUID, event: UUID, **more: Any) -> Command[Composition]:
    facts = {"event_id": event, "kind": CompositionKind.STANDARD, "playlist": PLAYLIST, "client": "studio"}
    return Composition.compose.on(key, **{**facts, **more})


HISTORY: tuple[Command[Any], ...] = (
    composed(GONE, FIRST, step=FirstStep(job=1)),
    Composition.replace.on(GONE, MARKED, client="other", step=FirstStep(job=2)).as_planned(2),
    Composition.remove.on(GONE).as_planned(4),
    composed(FILM, FIRST, generation=2, private=True, step=FirstStep(job=3)),
    Composition.fail.on(FILM, 3, job_version=5, reason="no source"),
    Composition.replace.on(FILM, MARKED, client="other", step=FirstStep(job=4)).as_planned(3),
    Composition.complete.on(FILM, 4, job_version=5),
    composed(ENCODER, SECOND, kind=CompositionKind.ENCODER),
    composed(WAITING, THIRD, live_stream_start=NOON),
    composed(AGAIN, FOURTH, step=FirstStep(job=5)),
    Composition.remove.on(AGAIN).as_planned(2),
    *(AddOrUpdateEvent(key, {}) for key in (SOURCE, FIRST, SECOND)),
    *(AddOrUpdateEvent(key, {"vod_drm": True}) for key in (SOURCE, SECOND)),
    MediaEvent.delete.on(SECOND),
)


@pytest.fixture
async def memory(inner: Core, clock: HandClock) -> Memory:
    """The history is in both: each step took a second."""
    memory = Memory()
    for command in HISTORY:
        clock.forward(seconds=1)
        memory.now = inner.clock()
        for executor in (memory.executor, inner.executor):
            await executor.execute(command, invocation=Invocation.by("somebody"))
    return memory


async def test_the_composition_of_an_event_is_found(memory: Memory, inner: Core) -> None:
    twin: CompositionLookup = MemoryCompositions(memory.log)
    adapter: CompositionLookup = CompositionQueries(inner.database)
    for event, key in ((FIRST, FILM), (SECOND, ENCODER), (THIRD, WAITING), (FOURTH, None), (SOURCE, None)):
        composition = await adapter.of_event(event)
        assert composition == await twin.of_event(event)
        assert (None if composition is None else composition.id) == key


async def test_numbers_of_films_go_on_after_a_removal(memory: Memory, inner: Core) -> None:
    for lookup in (MemoryCompositions(memory.log), CompositionQueries(inner.database)):
        numbers = [await lookup.last_generation(event) for event in (FIRST, SECOND, THIRD, FOURTH, SOURCE)]
        assert numbers == [4, 0, 0, 1, 0]


async def test_events_are_known_until_they_are_deleted(memory: Memory, inner: Core) -> None:
    lookups: tuple[KnownEvents, ...] = (memory.events, EventQueries(inner.database))
    for lookup in lookups:
        assert set(await lookup.existing({SOURCE, FIRST, SECOND, THIRD})) == {SOURCE, FIRST}
        assert set(await lookup.existing(())) == set()
        assert set(await lookup.protected({SOURCE, FIRST, SECOND, THIRD})) == {SOURCE}
        assert set(await lookup.protected(())) == set()
