"""The flags and the action of a notification, from the domain events of a write: see docs/reference/api/webhooks.md#notification.
These are pure functions.

The meaning of the domain events of a kind is declared in the module of its room, `api/wiring/rooms/<room>.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Flag, StrEnum, auto
from typing import Final

from domain.kernel.event import DomainEvent


class EventChange(Flag):
    """The changes of an Event, one member for each flag of the payload."""

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


class PayloadAction(StrEnum):
    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    RESTORED = "Restored"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one write on one Event."""

    action: PayloadAction
    changes: EventChange


NOTHING: Final = EventChange(0)
_ADDED: Final = EventChange.STATE | EventChange.METADATA


@dataclass(frozen=True, slots=True)
class Owner:
    """The field of an aggregate's first domain event that names its owner, and the kind of the owner."""

    field: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Notified:
    """The meaning of the domain events of one kind of aggregate for the webhooks of an Event. Without an `owner` the aggregate is
    the Event; otherwise its owner is, or the owner of that. `actions` are by topic.

    `shown_by` is the field of an Event that links to the aggregate, or to its owner: many Events show what changes there.
    """

    changes: Callable[[DomainEvent], EventChange]
    actions: Mapping[str, PayloadAction] = field(default_factory=dict)
    owner: Owner | None = None
    shown_by: str = ""


class Meanings(dict[str, Notified]):
    """The meaning of the domain events of all kinds of aggregates, by the kind."""


def effect(write: Iterable[DomainEvent], notified: Mapping[str, Notified]) -> Effect | None:
    """Return the effect of the domain events of one write on one Event; None if they changed nothing."""
    action, changes = PayloadAction.UPDATED, NOTHING
    for event in write:
        meaning = notified[event.aggregate_kind()]
        action = meaning.actions.get(event.TOPIC, action)
        changes |= meaning.changes(event)
    if action is PayloadAction.UPDATED:
        return Effect(action, changes) if changes else None
    return Effect(action, _ADDED | changes if action is PayloadAction.ADDED else NOTHING)
