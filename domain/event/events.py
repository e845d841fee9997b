"""The domain events of media Events. Topics are frozen: a changed meaning needs a new event or an upcast."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.event import facets
from domain.event.values import AudioInput, EventState, Mp4State, Quality, Trigger, VodFile, VodJob
from domain.kernel.event import DomainEvent, FirstEvent
from domain.provision.values import ProvisionSummary


class EventRegistered(FirstEvent, facets.Particulars):
    """The Event was added, with the values that were sent."""

    TOPIC: ClassVar[str] = "event.registered"


class Described(DomainEvent, facets.Description):
    TOPIC: ClassVar[str] = "event.described"


class ReferencesChanged(DomainEvent, facets.EventReferences):
    TOPIC: ClassVar[str] = "event.references_changed"


class Rescheduled(DomainEvent, facets.EventSchedule):
    TOPIC: ClassVar[str] = "event.rescheduled"


class PublicationWindowChanged(DomainEvent, facets.PublicationWindow):
    TOPIC: ClassVar[str] = "event.publication_window_changed"


class InstantVodWindowChanged(DomainEvent, facets.InstantVodWindow):
    TOPIC: ClassVar[str] = "event.instant_vod_window_changed"


class ArchiverWindowChanged(DomainEvent, facets.ArchiverWindow):
    TOPIC: ClassVar[str] = "event.archiver_window_changed"


class AutomationChanged(DomainEvent, facets.Automation):
    TOPIC: ClassVar[str] = "event.automation_changed"


class ProvisioningPlanChanged(DomainEvent, facets.ProvisioningPlan):
    TOPIC: ClassVar[str] = "event.provisioning_plan_changed"


class RoomAssigned(DomainEvent, facets.RoomLink):
    TOPIC: ClassVar[str] = "event.room_assigned"


class Classified(DomainEvent, facets.Classification):
    TOPIC: ClassVar[str] = "event.classified"


class Tagged(DomainEvent, facets.Tagging):
    TOPIC: ClassVar[str] = "event.tagged"


class ChannelAssigned(DomainEvent, facets.ChannelLink):
    TOPIC: ClassVar[str] = "event.channel_assigned"


class FlowsAssigned(DomainEvent, facets.FlowLinks):
    TOPIC: ClassVar[str] = "event.flows_assigned"


class DrmConfigured(DomainEvent, facets.Drm):
    TOPIC: ClassVar[str] = "event.drm_configured"


class StreamingConfigured(DomainEvent, facets.Streaming):
    TOPIC: ClassVar[str] = "event.streaming_configured"


class FlowTaskChanged(DomainEvent, facets.FlowTask):
    TOPIC: ClassVar[str] = "event.flow_task_changed"


class StateChanged(DomainEvent):
    """The state changed from `previous` to `state`. The times that this change set are present, the others absent."""

    TOPIC: ClassVar[str] = "event.state_changed"

    state: EventState
    previous: EventState
    trigger: Trigger
    actual_live_start: datetime | None = None
    actual_live_end: datetime | None = None
    published_start: datetime | None = None
    published_end: datetime | None = None


class ForceStopped(DomainEvent):
    """An operator stopped the Event and its encoder channel, even if other Events use the channel.

    If the Event was already stopped, nothing visible changes: the order is for the encoder.
    """

    TOPIC: ClassVar[str] = "event.force_stopped"

    previous: EventState
    actual_live_end: datetime | None = None
    published_end: datetime | None = None

    @property
    def shown(self) -> bool:
        return self.previous is not EventState.STOPPED


class Mp4StateChanged(DomainEvent):
    TOPIC: ClassVar[str] = "event.mp4_state_changed"

    mp4_state: Mp4State
    previous: Mp4State


class CapturingChanged(DomainEvent, facets.Capture):
    """The capture of the live stream as video on demand began or ended, or its range changed."""

    TOPIC: ClassVar[str] = "event.capturing_changed"


class VodJobStarted(DomainEvent):
    """A job that makes files for playback on demand was accepted, or continues after an end."""

    TOPIC: ClassVar[str] = "event.vod_job_started"

    vod_job: VodJob

    @property
    def shown(self) -> bool:
        return False


class VodJobEnded(DomainEvent):
    """The job ended. Its effects on the Event are in separate events."""

    TOPIC: ClassVar[str] = "event.vod_job_ended"

    vod_job: VodJob

    @property
    def shown(self) -> bool:
        return False


class VodFileChanged(DomainEvent):
    """The video file on demand was replaced, or more became known about it."""

    TOPIC: ClassVar[str] = "event.vod_file_changed"

    vod_file: VodFile

    @property
    def shown(self) -> bool:
        return False


class QualityMeasured(DomainEvent):
    """The quality of the film was measured. Null means that there is another film whose quality is not known."""

    TOPIC: ClassVar[str] = "event.quality_measured"

    quality: Quality | None

    @property
    def shown(self) -> bool:
        return False


class EncodingEvent(DomainEvent):
    """An event of the encoder. A GET of the Event does not show it."""

    @property
    def shown(self) -> bool:
        return False


class ChannelTaken(EncodingEvent):
    """The Event is on the air: it claims the channel against all others, and an encoder must run. `order` is the version of the
    state change that requested it."""

    TOPIC: ClassVar[str] = "event.channel_taken"

    channel_id: UUID
    order: int


class ChannelRefused(EncodingEvent):
    """Another Event, `holder`, is on the air on the channel. The Event waits until the channel is free. `order` as in
    `ChannelTaken`."""

    TOPIC: ClassVar[str] = "event.channel_refused"

    channel_id: UUID
    holder: UUID
    order: int


class ChannelReleased(EncodingEvent):
    """The Event is no longer on the air."""

    TOPIC: ClassVar[str] = "event.channel_released"

    channel_id: UUID


class EncoderStarted(EncodingEvent):
    """A session began to send. Its number is higher than that of any earlier session of the channel."""

    TOPIC: ClassVar[str] = "event.encoder_started"

    session: int


class EncoderStopped(EncodingEvent):
    """The session no longer sends. `reason` is empty if this was ordered."""

    TOPIC: ClassVar[str] = "event.encoder_stopped"

    session: int
    reason: str = ""


class EncoderFailed(EncodingEvent):
    """The encoder was given up, or its film is over. Only the next order starts it again. `session` is the last session, None if
    none began."""

    TOPIC: ClassVar[str] = "event.encoder_failed"

    session: int | None
    reason: str


class AudioInputsChanged(DomainEvent):
    """The encoder reads other audio tracks than before."""

    TOPIC: ClassVar[str] = "event.audio_inputs_changed"

    audio_inputs: tuple[AudioInput, ...]

    @property
    def shown(self) -> bool:
        return False


class ProvisionStateChanged(DomainEvent):
    """The infrastructure of the Event was requested, provisioned, scheduled for termination or terminated, in the same append as
    the cause."""

    TOPIC: ClassVar[str] = "event.provision_state_changed"

    provision: ProvisionSummary


class ProvisionTimeReached(DomainEvent):
    """The time of `scheduledProvisionAt` was reached. The resulting request, if any, is in the same append."""

    TOPIC: ClassVar[str] = "event.provision_time_reached"

    provisioned_for: datetime

    @property
    def shown(self) -> bool:
        return False


class TerminationTimeReached(DomainEvent):
    """The time of `scheduledTerminateAt` was reached. The resulting request, if any, is in the same append."""

    TOPIC: ClassVar[str] = "event.termination_time_reached"

    terminated_for: datetime

    @property
    def shown(self) -> bool:
        return False


class NotificationForced(DomainEvent):
    """An operator requested a notification to the webhooks. The Event did not change."""

    TOPIC: ClassVar[str] = "event.notification_forced"

    @property
    def shown(self) -> bool:
        return False


class EventDeleted(DomainEvent):
    TOPIC: ClassVar[str] = "event.deleted"


class EventRestored(DomainEvent):
    TOPIC: ClassVar[str] = "event.restored"


FACETS: tuple[type[DomainEvent], ...] = (
    Described,
    ReferencesChanged,
    Rescheduled,
    PublicationWindowChanged,
    InstantVodWindowChanged,
    ArchiverWindowChanged,
    AutomationChanged,
    ProvisioningPlanChanged,
    RoomAssigned,
    Classified,
    Tagged,
    ChannelAssigned,
    FlowsAssigned,
    DrmConfigured,
    StreamingConfigured,
    FlowTaskChanged,
)

EVENTS: tuple[type[DomainEvent], ...] = (
    EventRegistered,
    *FACETS,
    StateChanged,
    ForceStopped,
    Mp4StateChanged,
    CapturingChanged,
    VodJobStarted,
    VodJobEnded,
    VodFileChanged,
    QualityMeasured,
    ChannelTaken,
    ChannelRefused,
    ChannelReleased,
    EncoderStarted,
    EncoderStopped,
    EncoderFailed,
    AudioInputsChanged,
    ProvisionStateChanged,
    ProvisionTimeReached,
    TerminationTimeReached,
    NotificationForced,
    EventDeleted,
    EventRestored,
)
