"""Publications of Events with an availability window, on a real log: their target shows and hides them with the Event."""

from __future__ import annotations

from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.publication.aggregate import Publication
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from tests.domain.memory import MemoryNotes
from tests.support.clock import NOON
from tests.support.feeding import do, event
from tests.support.targets.memory import MemoryTarget
from tests.workers.publication.test_orders import DESTINATION, carried_out, fed, pending_orders
from tests.workers.publication.test_orders import published as scheduled
from workers.ports.targets import TargetFailed

PRIVATE, PUBLIC = EventState.VOD_PRIVATE, EventState.VOD_PUBLIC


@pytest.fixture
async def inner(inner: Core) -> Core:
    values = {"name": "Archive", "target": Target.S3, "configuration_json": SentConfiguration("{}", {}, {})}
    await do(inner, RegisterRecord(DESTINATION, Destination, values))
    await do(inner, Destination.amend.on(DESTINATION, {"active": True}))
    return inner


async def completed(inner: Core, number: int, *, content: UUID) -> UUID:
    key = UUID(int=number)
    await do(inner, scheduled(number, content=str(content)))
    await do(inner, Publication.complete.on(key, number, job_version=1, details={}))
    return key


async def published(inner: Core, key: UUID) -> bool:
    aggregate = await inner.streams.load(Publication.stream(key))
    assert isinstance(aggregate, Publication)
    return aggregate.published


async def followed(inner: Core, target: MemoryTarget, *, notes: MemoryNotes | None = None) -> list[str]:
    """Carry out the orders. Return the calls that the target got meanwhile."""
    before = len(target.calls)
    await fed(inner)
    await carried_out(inner, target, notes=notes)
    return [call.split()[0] for call in target.calls[before:] if not call.startswith("close")]


async def test_a_target_shows_and_hides_with_the_schedule(inner: Core) -> None:
    target = MemoryTarget()
    film = await event(inner, 1, published_start=NOON, published_end=NOON, state=PRIVATE)
    key = await completed(inner, 11, content=film)
    await do(inner, scheduled(12, content=str(film)))
    assert await followed(inner, target) == ["unpublish"], "the window is not open when the upload ends"
    await do(inner, MediaEvent.change_state.on(film, PUBLIC, trigger=Trigger.SCHEDULE))
    assert (await followed(inner, target))[-1] == "publish"
    assert await published(inner, key)
    await do(inner, MediaEvent.change_state.on(film, PRIVATE, trigger=Trigger.SCHEDULE))
    assert (await followed(inner, target))[-1] == "unpublish"
    assert not await published(inner, key)


async def test_publications_of_events_without_a_window_are_left_alone(inner: Core) -> None:
    target = MemoryTarget()
    film = await event(inner, 1, state=PRIVATE)
    await completed(inner, 11, content=film)
    await completed(inner, 12, content=UUID(int=99))
    await do(inner, MediaEvent.change_state.on(film, PUBLIC, trigger=Trigger.OPERATOR))
    assert await fed(inner) == 0
    assert target.calls == []


async def test_a_target_that_is_away_is_asked_again(inner: Core) -> None:
    target, notes = MemoryTarget(), MemoryNotes()
    film = await event(inner, 1, published_start=NOON, state=PUBLIC)
    key = await completed(inner, 11, content=film)
    target.fault = TargetFailed("retry", "busy")
    await followed(inner, target, notes=notes)
    assert (await pending_orders(inner), await published(inner, key)) == (1, False)
    target.fault = None
    await carried_out(inner, target)
    assert (await pending_orders(inner), await published(inner, key)) == (0, True)


async def test_a_fault_that_stays_is_noted_once(inner: Core) -> None:
    target, notes = MemoryTarget(), MemoryNotes()
    film = await event(inner, 1, published_start=NOON, state=PUBLIC)
    await completed(inner, 11, content=film)
    target.fault = TargetFailed("destination", "the password is wrong")
    await followed(inner, target, notes=notes)
    assert await pending_orders(inner) == 0
    assert len(notes.written) == 1
