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
from workers.webhook.policy import NOTHING, Action, Change, Notified

_BY_TOPIC: Final = {
    events.StateChanged.TOPIC: Change.STATE,  # including the times that it sets
    events.Mp4StateChanged.TOPIC: Change.MP4_STATE,
    events.ProvisionStateChanged.TOPIC: Change.PROVISION_STATE,
    events.NotificationForced.TOPIC: Change.FORCED,
    events.VodJobStarted.TOPIC: NOTHING,  # the resulting changes of the Event have their own events
    events.VodJobEnded.TOPIC: NOTHING,
    events.VodFileChanged.TOPIC: NOTHING,
    events.QualityMeasured.TOPIC: NOTHING,  # a GET of the Event does not show it; a change of state has its own event
    events.ProvisionTimeReached.TOPIC: NOTHING,  # the resulting requests have their own events
    events.TerminationTimeReached.TOPIC: NOTHING,
    events.AudioInputsChanged.TOPIC: Change.AUDIO,
}
_BY_FIELD: Final = {"thumbnail": Change.THUMBNAIL, "capturing_live2_vod": Change.CAPTURING}


def changes(event: DomainEvent) -> Change:
    """Return what a domain event changes. A field without a flag of its own counts as metadata."""
    if isinstance(event, events.ForceStopped):  # also recorded for an Event that is already stopped, as an order to the encoder
        return Change.FORCED if event.previous is EventState.STOPPED else Change.FORCED | Change.STATE
    if isinstance(event, events.EncodingEvent):
        return NOTHING
    if event.TOPIC in _BY_TOPIC:
        return _BY_TOPIC[event.TOPIC]
    return reduce(or_, (_BY_FIELD.get(name, Change.METADATA) for name in event.facts()), NOTHING)


_ACTIONS: Final = {
    events.EventRegistered.TOPIC: Action.ADDED,
    events.EventDeleted.TOPIC: Action.DELETED,
    events.EventRestored.TOPIC: Action.RESTORED,
}
NOTIFIED: Final[Mapping[str, Notified]] = {MediaEvent.KIND: Notified(changes=changes, actions=_ACTIONS)}
