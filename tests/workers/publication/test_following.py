"""Live publications and their Events on a real log: what starts, ends, and is retried. The target is in memory."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from api.wiring.core import Core
from domain.destination.targets import Target
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState, Trigger
from domain.publication.aggregate import Publication
from domain.publication.values import PublicationKind, PublicationState, PublicationText
from domain.record.configured_record import SentConfiguration
from domain.record.kinds.channel import Channel
from domain.record.kinds.destination import Destination
from domain.record.record import RegisterRecord
from tests.api.asking import topics
from tests.domain.memory import MemoryNotes
from tests.support.clock import HandClock
from tests.support.feeding import configured, do, event, record
from tests.support.targets.memory import MemoryLiveTarget
from tests.workers.publication.test_orders import carried_out, fed, pending_orders
from workers.ports.targets import TargetFailed

DESTINATION, CHANNEL = UUID(int=501), UUID(int=601)
STREAM = {"streamProtocol": "HLS", "liveOriginPrimaryUrl": "https://origin.test/a.m3u8"}
LIVE, STOPPED = EventState.LIVE_UNPUBLISHED, EventState.STOPPED


@pytest.fixture
async def inner(inner: Core) -> Core:
    values = {"name": "Tube", "target": Target.YOUTUBE, "configuration_json": SentConfiguration("{}", {}, {})}
    await do(inner, RegisterRecord(DESTINATION, Destination, values))
    await do(inner, Destination.amend.on(DESTINATION, {"active": True}))
    await record(inner, Channel, CHANNEL.int, **configured("main", json.dumps({"encoders": [{"outputUrls": [STREAM]}]})))
    return inner


@pytest.fixture
def target() -> MemoryLiveTarget:
    return MemoryLiveTarget()


async def scheduled(inner: Core, event_id: UUID, number: int, *, start: bool = False) -> UUID:
    key = UUID(int=number)
    text = PublicationText(title="Final")
    facts: dict[str, Any] = {"destination_id": DESTINATION, "target": Target.YOUTUBE, "transaction_id": UUID(int=1), "text": text}
    command = Publication.schedule.on(key, kind=PublicationKind.LIVE, content_id=str(event_id), client="studio", **facts)
    await do(inner, command)
    if start:
        await do(inner, Publication.start.on(key, {"broadcast": str(key)}))
    return key


async def state(inner: Core, key: UUID) -> tuple[PublicationState, bool]:
    aggregate = await inner.streams.load(Publication.stream(key))
    assert isinstance(aggregate, Publication)
    return aggregate.state, aggregate.open


async def test_going_live_starts_what_waits_where_the_event_says_so(inner: Core, target: MemoryLiveTarget) -> None:
    first = await event(inner, 1, channel_id=CHANNEL, auto_start_publications=True)
    second = await event(inner, 2, channel_id=CHANNEL)
    keys = [await scheduled(inner, first, 11), await scheduled(inner, first, 12), await scheduled(inner, second, 13)]
    for key in (first, second):
        await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
        await do(inner, MediaEvent.change_state.on(key, EventState.LIVE_PUBLISHED, trigger=Trigger.OPERATOR))
    assert await fed(inner) == 2, "not again when it is published"
    target.fault = TargetFailed("retry", "busy")
    await carried_out(inner, target)
    assert await pending_orders(inner) == 1
    assert {await state(inner, key) for key in keys} == {(PublicationState.Scheduled, False)}
    target.fault = None
    await carried_out(inner, target)
    running, waiting = (PublicationState.InProgress, True), (PublicationState.Scheduled, False)
    assert [await state(inner, key) for key in keys] == [running, running, waiting]
    assert await pending_orders(inner) == 0


async def test_going_live_starts_what_was_started_ahead(inner: Core, target: MemoryLiveTarget) -> None:
    key = await event(inner, 1, channel_id=CHANNEL)
    ahead, stopped, other = [await scheduled(inner, key, number) for number in (11, 12, 13)]
    for number in range(100, 205):
        await scheduled(inner, key, number)
    for started in (ahead, stopped):
        await do(inner, Publication.await_start.on(started))
    await do(inner, Publication.stop.on(stopped))
    await fed(inner)
    await carried_out(inner, target)
    waiting = (PublicationState.Scheduled, False)
    assert await state(inner, ahead) == waiting, "its Event is not live"
    await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
    await fed(inner)
    await carried_out(inner, target)
    assert [await state(inner, entry) for entry in (ahead, stopped, other)] == [
        (PublicationState.InProgress, True),
        waiting,
        waiting,
    ]
    assert await pending_orders(inner) == 0


async def test_one_that_is_started_while_its_event_goes_live_is_started(inner: Core, target: MemoryLiveTarget) -> None:
    """The order of the Event was carried out before the publication began to wait."""
    key = await event(inner, 1, channel_id=CHANNEL)
    late = await scheduled(inner, key, 11)
    await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
    await fed(inner)
    await carried_out(inner, target)
    await do(inner, Publication.await_start.on(late))
    await fed(inner)
    await carried_out(inner, target)
    assert await state(inner, late) == (PublicationState.InProgress, True)


async def test_what_cannot_start_with_its_event_is_noted_and_not_tried_again(inner: Core, target: MemoryLiveTarget) -> None:
    await record(inner, Channel, 602, **configured("silent", "{}"))
    key = await event(inner, 1, channel_id=UUID(int=602), auto_start_publications=True)
    await scheduled(inner, key, 11)
    await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
    notes = MemoryNotes()
    await fed(inner)
    await carried_out(inner, target, notes=notes)
    assert await pending_orders(inner) == 0
    assert "no stream to publish" in str(vars(notes))


@pytest.mark.parametrize(
    "ending",
    [
        lambda key: MediaEvent.change_state.on(key, STOPPED, trigger=Trigger.OPERATOR),
        MediaEvent.force_stop.on,
        lambda key: MediaEvent.delete.on(key, before=None, after=None),
    ],
)
async def test_the_end_of_the_event_ends_what_is_pushed_and_the_target_hears_of_it(
    inner: Core, target: MemoryLiveTarget, ending: Any
) -> None:
    key, other = await event(inner, 1, channel_id=CHANNEL), await event(inner, 2, channel_id=CHANNEL)
    for first in (key, other):
        await do(inner, MediaEvent.change_state.on(first, LIVE, trigger=Trigger.OPERATOR))
    pushed, waiting = await scheduled(inner, key, 11, start=True), await scheduled(inner, key, 12)
    elsewhere = await scheduled(inner, other, 13, start=True)
    await fed(inner)
    await carried_out(inner, target)
    assert await state(inner, pushed) == (PublicationState.InProgress, True), "it is on the air"
    await do(inner, ending(key))
    await fed(inner)
    await carried_out(inner, target)
    await fed(inner)
    await carried_out(inner, target)
    assert await state(inner, pushed) == (PublicationState.Completed, False)
    assert await state(inner, waiting) == (PublicationState.Scheduled, False)
    assert await state(inner, elsewhere) == (PublicationState.InProgress, True)
    assert (await topics(inner, Publication.stream(pushed)))[-2:] == ["publication.stopped", "publication.target_closed"]


async def test_one_that_is_started_while_its_event_ends_is_ended_too(inner: Core, target: MemoryLiveTarget) -> None:
    key = await event(inner, 1, channel_id=CHANNEL)
    await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
    publication = await scheduled(inner, key, 11)
    await do(inner, MediaEvent.change_state.on(key, STOPPED, trigger=Trigger.OPERATOR))
    await fed(inner)
    await carried_out(inner, target)  # nothing is pushed yet
    await do(inner, Publication.start.on(publication, {}))  # which had seen the Event on the air
    await fed(inner)
    await carried_out(inner, target)
    assert (await state(inner, publication))[0] is PublicationState.Completed


async def test_a_notice_to_a_target_is_retried_for_a_day(inner: Core, target: MemoryLiveTarget, clock: HandClock) -> None:
    key = await event(inner, 1, channel_id=CHANNEL)
    await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
    publications = [await scheduled(inner, key, number, start=True) for number in (11, 12)]
    for publication in publications:
        await do(inner, Publication.stop.on(publication))
    await fed(inner)
    target.fault = TargetFailed("retry", "busy")
    await carried_out(inner, target)
    assert [await state(inner, publication) for publication in publications] == [(PublicationState.Completed, True)] * 2
    with pytest.raises(Exception, match="it is used by"):
        await do(inner, Destination.delete.on(DESTINATION))
    clock.forward(hours=25)
    await carried_out(inner, target)
    assert [await state(inner, publication) for publication in publications] == [(PublicationState.Completed, False)] * 2
    assert await pending_orders(inner) == 0


async def test_a_deleted_one_is_ended_and_removed_at_its_target(inner: Core, target: MemoryLiveTarget) -> None:
    key = await event(inner, 1, channel_id=CHANNEL)
    await do(inner, MediaEvent.change_state.on(key, LIVE, trigger=Trigger.OPERATOR))
    publication = await scheduled(inner, key, 11, start=True)
    await do(inner, Publication.withdraw.on(publication, hard=True, running_job=None))
    await fed(inner)
    await carried_out(inner, target)
    assert [call for call in target.calls if call != "close"] == ["close_live", "delete"]
    assert (await topics(inner, Publication.stream(publication)))[-2:] == [
        "publication.target_closed",
        "publication.target_cleared",
    ]
    assert await pending_orders(inner) == 0
    await do(inner, Destination.delete.on(DESTINATION))
