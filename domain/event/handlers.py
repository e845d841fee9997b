"""Use cases of Events: look up link targets, execute commands, and log fields that could not be changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from pydantic.alias_generators import to_pascal

from domain.event.aggregate import MediaEvent
from domain.event.changes import EventChanges, LinkTargets, PatchStep, TagName
from domain.event.commands import (
    AddOrUpdateEvent,
    AmendEvent,
)
from domain.event.ports import EventLookup
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.ports import Executor, Invocation, Outcome, Plan, ServiceNotes
from domain.record.kinds.tag import Tag
from domain.record.ports import RecordLookup


class EventHandlers:
    """Executes the Event commands. A plan reads other records, so it is made again for each attempt."""

    def __init__(self, executor: Executor, records: RecordLookup, *, events: EventLookup, notes: ServiceNotes) -> None:
        self._executor = executor
        self._records = records
        self._events = events
        self._notes = notes

    async def add_or_update_event(self, key: UUID | None, changes: EventChanges, *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Update an Event or, without a key, add one. Missing tags are added in the same append."""
        event = key or new_id()

        async def plan() -> Plan:
            links = await self._look_up([changes])
            values = links.values(changes)
            state = values.pop("state", None)
            command = AddOrUpdateEvent(event, values, state=state, new=key is None)
            return Plan((*links.new_tags, command), linked=links.targets)

        return await self._change(plan, invocation)

    async def patch_event(self, key: UUID, patch: Sequence[PatchStep], *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Apply all steps, or none."""

        async def plan() -> Plan:
            links = await self._look_up([step.changes for step in patch], tests=[step.is_test for step in patch])
            steps = links.steps(patch)
            return Plan((*links.new_tags, AmendEvent(key, steps)), linked=links.targets)

        return await self._change(plan, invocation)

    async def patch_event_by_reference(
        self, reference_id: str, patch: Sequence[PatchStep], *, invocation: Invocation
    ) -> Outcome[MediaEvent]:
        """Patch the newest Event with this reference id. A wrong patch is reported before a missing Event."""
        event = await self._events.by_reference(reference_id)
        if event is None:
            (await self._look_up([step.changes for step in patch], tests=[step.is_test for step in patch])).steps(patch)
            raise NotFound(MediaEvent.KIND, reference_id)
        return await self.patch_event(event.id, patch, invocation=invocation)

    async def set_event_type(self, key: UUID, event_type: UUID | None, *, invocation: Invocation) -> Outcome[MediaEvent]:
        """Set the type of an Event; None removes it."""
        return await self.patch_event(key, [PatchStep(EventChanges({"event_type_id": event_type}))], invocation=invocation)

    async def replace_tags(self, key: UUID, tags: Sequence[TagName], *, invocation: Invocation) -> Outcome[MediaEvent]:
        return await self.patch_event(key, [PatchStep(EventChanges({}, tags))], invocation=invocation)

    async def _change(self, plan: Callable[[], Awaitable[Plan]], invocation: Invocation) -> Outcome[MediaEvent]:
        outcome: Outcome[MediaEvent] = await self._executor.execute(plan, invocation=invocation)
        for name in outcome.aggregate.left_unchanged:
            message = f"{to_pascal(name)} was not changed: it cannot be changed while the Event streams or is being provisioned"
            await self._notes.warn(message, subject=outcome.aggregate.key)
        return outcome

    async def _look_up(self, changes: Sequence[EventChanges], *, tests: Sequence[bool] | None = None) -> LinkTargets:
        """Look up the links and tags of all changes at once. The values of a test need not exist."""
        writes = [change for index, change in enumerate(changes) if tests is None or not tests[index]]
        links = [link for change in writes for _, link in change.links()]
        names = [(Tag.KIND, tag.name) for change in changes for tag in change.tags or ()]
        if not links and not names:
            return LinkTargets({}, {})
        targets, tags = await self._records.look_up(links, names=names)
        existing = {name: row for (_, name), row in tags.items()}
        requested_ids = [
            tag.id for change in writes for tag in change.tags or () if tag.id is not None and tag.name not in existing
        ]
        used_ids = [UUID(row.id) for row in await self._records.by_ids(Tag, requested_ids)] if requested_ids else []
        return LinkTargets(targets, existing, used_ids=used_ids)
