"""What can happen to a media Event. Topics are frozen: a changed meaning is a new event or an upcast, never an edit."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from domain.kernel.event import DomainEvent, FirstEvent
from domain.media_event import values
from domain.media_event.values import EventState, Mp4State, Trigger


class Registered(FirstEvent, values.Particulars):
    """The Event exists. Holds whatever was known of it at that moment."""

    TOPIC: ClassVar[str] = "event.registered"


class Described(DomainEvent, values.Description):
    TOPIC: ClassVar[str] = "event.described"


class ReferencesChanged(DomainEvent, values.References):
    TOPIC: ClassVar[str] = "event.references_changed"


class Rescheduled(DomainEvent, values.Schedule):
    TOPIC: ClassVar[str] = "event.rescheduled"


class PublicationWindowChanged(DomainEvent, values.PublicationWindow):
    TOPIC: ClassVar[str] = "event.publication_window_changed"


class InstantVodWindowChanged(DomainEvent, values.InstantVodWindow):
    TOPIC: ClassVar[str] = "event.instant_vod_window_changed"


class ArchiverWindowChanged(DomainEvent, values.ArchiverWindow):
    TOPIC: ClassVar[str] = "event.archiver_window_changed"


class AutomationChanged(DomainEvent, values.Automation):
    TOPIC: ClassVar[str] = "event.automation_changed"


class ProvisioningPlanned(DomainEvent, values.ProvisioningPlan):
    TOPIC: ClassVar[str] = "event.provisioning_planned"


class RoomAssigned(DomainEvent, values.RoomLink):
    TOPIC: ClassVar[str] = "event.room_assigned"


class Classified(DomainEvent, values.Classification):
    TOPIC: ClassVar[str] = "event.classified"


class Tagged(DomainEvent, values.Tagging):
    TOPIC: ClassVar[str] = "event.tagged"


class ChannelAssigned(DomainEvent, values.ChannelLink):
    TOPIC: ClassVar[str] = "event.channel_assigned"


class FlowsAssigned(DomainEvent, values.FlowLinks):
    TOPIC: ClassVar[str] = "event.flows_assigned"


class DrmConfigured(DomainEvent, values.Drm):
    TOPIC: ClassVar[str] = "event.drm_configured"


class StreamingConfigured(DomainEvent, values.Streaming):
    TOPIC: ClassVar[str] = "event.streaming_configured"


class FlowTaskSet(DomainEvent, values.FlowTask):
    TOPIC: ClassVar[str] = "event.flow_task_set"


class StateChanged(DomainEvent):
    """The Event moved from `previous` to `state`; the times are those that the move set, absent where it set none."""

    TOPIC: ClassVar[str] = "event.state_changed"

    state: EventState
    previous: EventState
    trigger: Trigger
    actual_live_start: datetime | None = None
    actual_live_end: datetime | None = None
    published_start: datetime | None = None
    published_end: datetime | None = None


class ForceStopped(DomainEvent):
    """An operator stopped the Event and its encoder channel, whoever else may be running on it."""

    TOPIC: ClassVar[str] = "event.force_stopped"

    previous: EventState
    actual_live_end: datetime | None = None
    published_end: datetime | None = None


class Mp4StateChanged(DomainEvent):
    TOPIC: ClassVar[str] = "event.mp4_state_changed"

    mp4_state: Mp4State
    previous: Mp4State


class NotificationForced(DomainEvent):
    """An operator wants the webhooks to be told of the Event as it is. Document 2, "Events", IsForced.

    Nothing of the Event changed, so the time of its last change stays too. Its version, which is its ETag, moves like with every
    domain event.
    """

    TOPIC: ClassVar[str] = "event.notification_forced"

    def mutate(self, aggregate: Any) -> Any:
        modified_on = aggregate.modified_on
        super().mutate(aggregate)
        aggregate.modified_on = modified_on
        return aggregate


class Deleted(DomainEvent):
    TOPIC: ClassVar[str] = "event.deleted"


class Restored(DomainEvent):
    TOPIC: ClassVar[str] = "event.restored"


FACETS: tuple[type[DomainEvent], ...] = (
    Described,
    ReferencesChanged,
    Rescheduled,
    PublicationWindowChanged,
    InstantVodWindowChanged,
    ArchiverWindowChanged,
    AutomationChanged,
    ProvisioningPlanned,
    RoomAssigned,
    Classified,
    Tagged,
    ChannelAssigned,
    FlowsAssigned,
    DrmConfigured,
    StreamingConfigured,
    FlowTaskSet,
)

EVENTS: tuple[type[DomainEvent], ...] = (
    Registered,
    *FACETS,
    StateChanged,
    ForceStopped,
    Mp4StateChanged,
    NotificationForced,
    Deleted,
    Restored,
)
