"""Flags and action of a notification, from the domain events of a write: docs/reference/api/webhooks.md#notification. Pure.

A field of an Event without a flag of its own counts as metadata.
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
    """Changes of an Event, one member for each flag of the payload."""

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
    """The effect of one write on one Event."""

    action: Action
    changes: Change


NOTHING: Final = Change(0)
_ADDED: Final = Change.STATE | Change.METADATA

_OF_FACT: Final[Mapping[str, Change]] = {
    "thumbnail": Change.THUMBNAIL,
}
_OF_TOPIC: Final[Mapping[str, Change]] = {
    events.StateChanged.TOPIC: Change.STATE,  # with the times that it sets
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
    """The effect of the domain events of one write on one Event; None when they changed nothing."""
    action, changes = Action.UPDATED, NOTHING
    for event in write:
        action = _ACTIONS.get(event.TOPIC, action)
        changes |= changed(event)
    if action is Action.UPDATED:
        return Effect(action, changes) if changes else None
    return Effect(action, _ADDED | changes if action is Action.ADDED else NOTHING)


def changed(event: DomainEvent) -> Change:
    """The changes of one domain event."""
    if isinstance(event, events.ForceStopped):  # also recorded where the Event is stopped already, as an order to the encoder
        return NOTHING if event.previous is EventState.STOPPED else Change.STATE
    change = _OF_TOPIC.get(event.TOPIC) or _OF_KIND.get(event.aggregate_kind())
    if change is not None:
        return change
    changes = NOTHING
    for name in event.facts():
        changes |= _OF_FACT.get(name, Change.METADATA)
    return changes
