"""What a write means to subscribers: the flags and the Action of document 2, "Events", by decisions.md, "Webhooks".

Pure. A later fact of an Event gets its flag by one line here; without one it counts as metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import Final

from domain.kernel.event import DomainEvent
from domain.media_event import events
from domain.media_event.values import EventState


class Change(Flag):
    """What a write changed of an Event, one member for each flag of the payload."""

    STATE = auto()
    METADATA = auto()
    THUMBNAIL = auto()
    FORCED = auto()
    AUDIO = auto()
    MP4_STATE = auto()
    CHAPTER_POINTS = auto()
    ASSETS = auto()
    PROVISION_STATE = auto()
    CAPTURING = auto()


class Action(StrEnum):
    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    RESTORED = "Restored"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one write did to one Event."""

    action: Action
    changes: Change


NOTHING: Final = Change(0)
_ADDED: Final = Change.STATE | Change.METADATA

_OF_FACT: Final[Mapping[str, Change]] = {
    "thumbnail": Change.THUMBNAIL,
}
_OF_TOPIC: Final[Mapping[str, Change]] = {
    events.StateChanged.TOPIC: Change.STATE,  # the times that it sets belong to it
    events.Mp4StateChanged.TOPIC: Change.MP4_STATE,
    events.NotificationForced.TOPIC: Change.FORCED,
}
_OF_KIND: Final[Mapping[str, Change]] = {
    "chapter_point": Change.CHAPTER_POINTS,
    "chapter_point_property": Change.CHAPTER_POINTS,
}
_ACTIONS: Final[Mapping[str, Action]] = {
    events.Registered.TOPIC: Action.ADDED,
    events.Deleted.TOPIC: Action.DELETED,
    events.Restored.TOPIC: Action.RESTORED,
}


def effect(write: Iterable[DomainEvent]) -> Effect | None:
    """Of the domain events of one write that concern one Event; None when they changed nothing of it."""
    action, changes = Action.UPDATED, NOTHING
    for event in write:
        action = _ACTIONS.get(event.TOPIC, action)
        changes |= changed(event)
    if action is Action.UPDATED:
        return Effect(action, changes) if changes else None
    return Effect(action, _ADDED | changes if action is Action.ADDED else NOTHING)


def changed(event: DomainEvent) -> Change:
    """What one domain event changes."""
    if isinstance(event, events.ForceStopped):  # an order to the encoder also where the Event is stopped already
        return NOTHING if event.previous is EventState.STOPPED else Change.STATE
    whole = _OF_TOPIC.get(event.TOPIC) or _OF_KIND.get(event.aggregate_kind())
    if whole is not None:
        return whole
    changes = NOTHING
    for name in event.facts():
        changes |= _OF_FACT.get(name, Change.METADATA)
    return changes
