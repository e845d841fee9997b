"""Media Events: document 2, "Events", and our DELETE and restore."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.body import FORM, JSON, JSON_PATCH
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import ReferenceQuery
from api.kernel.routes import Routes
from api.media.event.changes import EventChanges
from api.media.event.documented import EventCollectionWire, EventWire, IsUniqueWire
from api.media.event.held import EventWrites
from api.media.event.show import EventAnswers
from api.media.event.wire import (
    DvrWindowBody,
    EventBody,
    EventListQuery,
    FlowTaskBody,
    Patch,
    PlaybackQuery,
    PlaybackReferenceQuery,
    ProtectionBody,
    StateBody,
)
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import (
    AddFlowTask,
    AddOrUpdateEvent,
    AmendEvent,
    ChangeEventProtection,
    ChangeEventState,
    DeleteEvent,
    ForceStopEvent,
    Replacement,
    RestoreEvent,
)
from domain.media_event.values import Trigger
from projections.log.ledger import Plan
from projections.media_event.filters import EventFilter
from projections.media_event.queries import EventQueries, EventRow

routes = Routes("/event", tag="Events")


@routes.post("/", WRITE, answers=EventWire, body_types=(JSON, FORM))
async def add_or_update_event(call: Call, body: EventBody, writes: EventWrites, changes: EventChanges) -> Answer:
    """Add an Event, or update the one with this Id."""
    key = body.id or new_id()

    async def plan() -> Plan[MediaEvent]:
        wanted, new_tags = await changes.of(body)
        state = wanted.pop("state", None)
        return Plan(AddOrUpdateEvent(key, wanted, state=state, new=body.id is None), new_tags)

    return await writes.send(call, plan)


@routes.patch("/{id}", WRITE, answers=EventWire, body_types=(JSON_PATCH,))
async def patch_event(call: Call, id: UUID, body: Patch, writes: EventWrites, changes: EventChanges) -> Answer:
    """Change fields of an Event by JSON Patch: replace, add, remove and test, all or nothing."""

    async def plan() -> Plan[MediaEvent]:
        steps, new_tags = await changes.steps(body)
        return Plan(AmendEvent(id, steps), new_tags)

    return await writes.send(call, plan)


@routes.patch("/reference/{referenceid}", WRITE, answers=EventWire, body_types=(JSON_PATCH,))
async def patch_event_by_reference(
    call: Call, referenceid: str, body: Patch, events: EventQueries, writes: EventWrites, changes: EventChanges
) -> Answer:
    """Change the most recently created Event with this reference id by JSON Patch."""
    found = await events.by_reference(referenceid)
    if found is None:
        await changes.steps(body)
        raise NotFound(MediaEvent.KIND, referenceid)
    return await patch_event(call, found.id, body, writes, changes)


@routes.post("/stream/dvrwindowlength/{id}", WRITE, answers=EventWire)
async def set_dvr_window_length(call: Call, id: UUID, body: DvrWindowBody, bus: CommandBus, answers: EventAnswers) -> Answer:
    """Set the length of the DVR window, in seconds."""
    command = AmendEvent(id, (Replacement("dvr_length", body.dvr_window_length or None),))
    return await bus.send(call, command, lambda event: answers.written(call, event))


@routes.post("/flow/add/", WRITE, answers=EventWire)
async def add_flow_task(call: Call, body: FlowTaskBody, bus: CommandBus, answers: EventAnswers) -> Answer:
    """Add a flow task to an Event; without an Id, to a new one."""
    states: dict[str, Any] = {"state": body.event_state, "mp4_state": body.mp4_state}
    command: AddFlowTask | AddOrUpdateEvent
    if body.id is not None:
        command = AddFlowTask(body.id, body.task_engine_json, **states)
    else:
        task = {"task_engine_json": body.task_engine_json}
        command = AddOrUpdateEvent(new_id(), task, trigger=Trigger.FLOW, new=True, **states)
    return await bus.send(call, command, lambda event: answers.written(call, event))


@routes.put("/forcestop/{id}", WRITE, answers=EventWire)
async def force_stop_event(call: Call, id: UUID, bus: CommandBus, answers: EventAnswers) -> Answer:
    """Force the Event to stop, whatever its state."""
    return await bus.send(call, ForceStopEvent(id), lambda event: answers.written(call, event))


@routes.put("/state/{id}", WRITE, answers=EventWire)
async def change_event_state(call: Call, id: UUID, body: StateBody, bus: CommandBus, answers: EventAnswers) -> Answer:
    """Go to a state, at once. Any state may follow any other."""
    return await bus.send(call, ChangeEventState(id, body.state), lambda event: answers.written(call, event))


@routes.put("/flow/protection/{contentId}", WRITE, answers=EventWire)
async def change_event_protection(
    call: Call, content_id: str, body: ProtectionBody, bus: CommandBus, answers: EventAnswers
) -> Answer:
    """Move an on-demand Event between VOD_PRIVATE and VOD_PUBLIC."""
    try:
        key = UUID(content_id)
    except ValueError:
        raise NotFound(MediaEvent.KIND, content_id) from None
    return await bus.send(call, ChangeEventProtection(key, body.protection), lambda event: answers.written(call, event))


@routes.delete("/{id}", WRITE, answers=EventWire)
async def delete_event(call: Call, id: UUID, bus: CommandBus, answers: EventAnswers) -> Answer:
    """Delete an Event. It keeps its history and can be restored."""
    return await bus.send(call, DeleteEvent(id), lambda event: answers.written(call, event))


@routes.put("/restore/{id}", WRITE, answers=EventWire)
async def restore_event(call: Call, id: UUID, bus: CommandBus, answers: EventAnswers) -> Answer:
    """Bring a deleted Event back as it was."""
    return await bus.send(call, RestoreEvent(id), lambda event: answers.written(call, event))


@routes.get("/", READ, answers=EventCollectionWire)
async def list_events(call: Call, query: EventListQuery, events: EventQueries, answers: EventAnswers) -> Answer:
    """Events that every filter finds. Filters combine with AND, the values of one with OR."""
    return await answers.listed(call, await events.page(event_filter(query)))


@routes.get("/deleted/", READ, answers=EventCollectionWire)
async def list_deleted_events(call: Call, query: EventListQuery, events: EventQueries, answers: EventAnswers) -> Answer:
    """Deleted Events, with the same filters."""
    return await answers.listed(call, await events.page(event_filter(query, deleted=True)))


@routes.get("/{id}", READ, answers=EventWire, absent=204)
async def event_by_id(call: Call, id: UUID, query: PlaybackQuery, events: EventQueries, answers: EventAnswers) -> Answer:
    """One Event."""
    return await answers.single(call, await events.by_id(id), key=id, query=query)


@routes.get("/reference", READ, answers=EventWire, absent=204)
async def event_by_reference(call: Call, query: PlaybackReferenceQuery, events: EventQueries, answers: EventAnswers) -> Answer:
    """The most recently created Event with this reference id."""
    return await answers.single(call, await events.by_reference(query.id), key=query.id, query=query)


@routes.get("/external", READ, answers=EventWire, absent=204)
async def event_by_external_id(call: Call, query: PlaybackReferenceQuery, events: EventQueries, answers: EventAnswers) -> Answer:
    """The most recently created Event with this external id."""
    return await answers.single(call, await events.by_external_id(query.id), key=query.id, query=query)


@routes.get("/external/unique", READ, answers=IsUniqueWire)
async def external_id_is_unique(call: Call, query: ReferenceQuery, events: EventQueries) -> Answer:
    """Whether no living Event has this external id yet."""
    found: EventRow | None = await events.by_external_id(query.id)
    return Answer(200, {"IsUnique": found is None, "Value": query.id, "ValueType": "ExternalId"})


def event_filter(query: EventListQuery, *, deleted: bool = False) -> EventFilter:
    return EventFilter(
        scheduled_from=query.scheduled_from,
        scheduled_to=query.scheduled_to,
        modified_from=query.from_modified,
        modified_to=query.to_modified,
        states=query.event_state,
        provision_states=query.provision_state,
        tags=query.tags,
        room=query.room,
        event_type=query.event_type,
        channel=query.channel,
        categories=query.category,
        search=query.search,
        no_scheduled_end=query.no_scheduled_end,
        contains_flow=query.contains_vuflow,
        skip=query.skip_events,
        deleted=deleted,
        order_column=query.order_column,
        descending=query.order,
        window=query.window,
    )
