"""The meaning of the domain events of an Event."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final

from domain.event import events
from domain.event.aggregate import MediaEvent
from domain.event.values import EventState
from domain.kernel.event import DomainEvent
from workers.webhook.policy import NOTHING, EventChange, Notified, PayloadAction

_BY_TOPIC: Final = {
    events.StateChanged.TOPIC: EventChange.STATE,  # including the times that it sets
    events.Mp4StateChanged.TOPIC: EventChange.MP4_STATE,
    events.ProvisionStateChanged.TOPIC: EventChange.PROVISION_STATE,
    events.NotificationForced.TOPIC: EventChange.FORCED,
    events.VodJobStarted.TOPIC: NOTHING,  # the resulting changes of the Event have their own events
    events.VodJobEnded.TOPIC: NOTHING,
    events.VodFileChanged.TOPIC: NOTHING,
    events.QualityMeasured.TOPIC: NOTHING,  # a GET of the Event does not show it; a change of state has its own event
    events.ProvisionTimeReached.TOPIC: NOTHING,  # the resulting requests have their own events
    events.TerminationTimeReached.TOPIC: NOTHING,
    events.AudioInputsChanged.TOPIC: EventChange.AUDIO,
}
_BY_FIELD: Final = {"thumbnail": EventChange.THUMBNAIL, "capturing_live2_vod": EventChange.CAPTURING}


def changes(event: DomainEvent) -> EventChange:
    """Return what a domain event changes. A field without a flag of its own counts as metadata."""
    if isinstance(event, events.ForceStopped):  # also recorded for an Event that is already stopped, as an order to the encoder
        return EventChange.FORCED if event.previous is EventState.STOPPED else EventChange.FORCED | EventChange.STATE
    if isinstance(event, events.EncodingEvent):
        return NOTHING
    if event.TOPIC in _BY_TOPIC:
        return _BY_TOPIC[event.TOPIC]
    return reduce(or_, (_BY_FIELD.get(name, EventChange.METADATA) for name in event.facts()), NOTHING)


_ACTIONS: Final = {
    events.EventRegistered.TOPIC: PayloadAction.ADDED,
    events.EventDeleted.TOPIC: PayloadAction.DELETED,
    events.EventRestored.TOPIC: PayloadAction.RESTORED,
}
NOTIFIED: Final[Mapping[str, Notified]] = {MediaEvent.KIND: Notified(changes=changes, actions=_ACTIONS)}
