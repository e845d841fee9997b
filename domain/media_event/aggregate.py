"""MediaEvent: the aggregate that the wire calls *Event* (the eventsourcing library reserves the nested name `Event`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from domain.kernel.aggregate import NO_LINKS, AggregateRoot
from domain.kernel.errors import Conflict, NotFound, Refused
from domain.kernel.event import DomainEvent
from domain.media_event import events
from domain.media_event.links import links_of
from domain.media_event.values import LIVE, ON_DEMAND, STREAMING, EventDetails, EventState, Mp4State, Trigger

_FACTS_OF = {facet: tuple(name for name in facet.model_fields if name not in DomainEvent.model_fields) for facet in events.FACETS}
_EMPTY = EventDetails()
HELD_WHILE_STREAMING = ("channel_id", "infrastructure_profile_id")
_NOTES = ("previous", "trigger")


class MediaEvent(AggregateRoot):
    """A live or on-demand event of the broadcaster, from its first entry in the schedule to its deletion."""

    KIND: ClassVar[str] = "event"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS

    details: EventDetails

    def begin(self) -> None:
        self.details = EventDetails.blank()

    # --- deciding

    @classmethod
    def register(cls, key: UUID, changes: Mapping[str, Any], *, at: datetime) -> Self:
        known = {name: value for name, value in changes.items() if value != getattr(_EMPTY, name)}
        return cls._begin(events.Registered, key, at, **known)

    def amend(self, changes: Mapping[str, Any], *, at: datetime, provisioning: bool = False) -> None:
        """Set the facts that `changes` names, each to its new value; one domain event for every facet that really changes.

        Document 2, POST /event/: a Channel or Infrastructure Profile may not be changed under a running stream; it is left as it
        is and the rest applies.
        """
        self._must_live()
        held = HELD_WHILE_STREAMING if provisioning or self.details.state in STREAMING else ()
        for facet, names in _FACTS_OF.items():
            real = {
                name: changes[name]
                for name in names
                if name in changes and name not in held and changes[name] != getattr(self.details, name)
            }
            if real:
                self._trigger(facet, at=at, **real)

    def change_state(self, state: EventState, *, trigger: Trigger, at: datetime) -> None:
        """Go to any state at once; to the same one: nothing. Sets the times that decisions.md, Events, names."""
        self._must_live()
        if state == self.details.state:
            return
        self._trigger(
            events.StateChanged,
            at=at,
            state=state,
            previous=self.details.state,
            trigger=trigger,
            **self._times_of(state, at=at),
        )

    def force_stop(self, *, at: datetime) -> None:
        """Always recorded: it is an order to the encoder too, which may be running although the Event is stopped."""
        self._must_live()
        stopped = self.details.state is EventState.STOPPED
        times = {} if stopped else self._times_of(EventState.STOPPED, at=at)
        self._trigger(events.ForceStopped, at=at, previous=self.details.state, **times)

    def change_protection(self, state: EventState, *, at: datetime) -> None:
        """Document 2, PUT /event/flow/protection: between VOD_PRIVATE and VOD_PUBLIC only."""
        self._must_live()
        if state not in ON_DEMAND:
            raise Refused(f"protection is VOD_PRIVATE or VOD_PUBLIC, not {state.name}")
        if self.details.state not in ON_DEMAND:
            raise Refused(f"the Event is {self.details.state.name}, not VOD_PRIVATE or VOD_PUBLIC")
        self.change_state(state, trigger=Trigger.PROTECTION, at=at)

    def change_mp4_state(self, mp4_state: Mp4State, *, at: datetime) -> None:
        self._must_live()
        if mp4_state != self.details.mp4_state:
            self._trigger(events.Mp4StateChanged, at=at, mp4_state=mp4_state, previous=self.details.mp4_state)

    def force_notification(self, *, at: datetime) -> None:
        """Always recorded: each order is a notification."""
        self._must_live()
        self._trigger(events.NotificationForced, at=at)

    def delete(self, *, at: datetime) -> None:
        self._must_live()
        self._trigger(events.Deleted, at=at)

    def restore(self, *, at: datetime) -> None:
        if self.deleted:
            self._trigger(events.Restored, at=at)

    @property
    def deleted(self) -> bool:
        return self.details.date_deleted is not None

    def _must_live(self) -> None:
        if self.deleted:
            raise NotFound(self.KIND, self.key)

    def must_not_be_deleted(self) -> None:
        """A POST with a deleted Event's Id is a conflict, not a new Event."""
        if self.deleted:
            raise Conflict(f"the Event {self.key} is deleted; restore it first")

    def _times_of(self, state: EventState, *, at: datetime) -> dict[str, datetime]:
        at = max(at, self.modified_on)  # as the event's own time: an end never lies before its start, whatever the clocks do
        details = self.details
        times: dict[str, datetime] = {}
        if state in LIVE and details.actual_live_start is None:
            times["actual_live_start"] = at
        if state is EventState.LIVE_PUBLISHED and details.published_start is None:
            times["published_start"] = at
        if state is EventState.STOPPED:
            times["actual_live_end"] = at
            if details.published_start is not None and details.published_start <= at:
                times["published_end"] = at
        return times

    # --- applying

    def when(self, event: DomainEvent) -> None:
        applier = getattr(self, f"_when_{event.verb()}", None)
        if applier is not None:
            applier(event)
        facts = event.facts()
        for note in _NOTES:
            facts.pop(note, None)
        self.details.__dict__.update(facts)

    def _when_force_stopped(self, event: events.ForceStopped) -> None:
        self.details.state = EventState.STOPPED

    def _when_deleted(self, event: events.Deleted) -> None:
        self.details.date_deleted = event.timestamp

    def _when_restored(self, event: events.Restored) -> None:
        self.details.date_deleted = None

    # --- holding

    def links(self) -> frozenset[str]:
        """A deleted Event is nobody's user: what it pointed at may go."""
        pointed = () if self.deleted else links_of(self.details)
        return frozenset(f"{kind}:{key}" for kind, key in pointed) if pointed else NO_LINKS

    # --- remembering

    def snapshot(self) -> dict[str, Any]:
        return {
            "created_on": self.created_on.isoformat(),
            "modified_on": self.modified_on.isoformat(),
            "details": self.details.model_dump(mode="json", exclude_none=True),
        }

    def _restore(self, details: dict[str, Any]) -> None:
        self.details = EventDetails.model_validate(details)


events.Registered.AGGREGATE = MediaEvent
