"""Values of a media Event: enumerations, and its complete state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from domain.channel.encoder_settings import AudioInputEntry, FfmpegSpecific
from domain.event.facets import Capture, Particulars
from domain.kernel.json_document import readable
from domain.provision.values import OVER, UP, ProvisionState, ProvisionSummary


class EventState(IntEnum):
    """The states of an Event. See docs/reference/api/events.md."""

    PRE_LIVE = 0
    LIVE_UNPUBLISHED = 1
    LIVE_PUBLISHED = 2
    SUSPENDED = 3
    STOPPED = 4
    INSTANT_VOD = 5
    INSTANT_VOD_BACKUP = 6
    INSTANT_VOD_DELETE = 7
    PRE_VOD = 8
    VOD_INGESTING = 9
    VOD_PRIVATE = 10
    VOD_PUBLIC = 11
    REMIX_GENERATING = 12
    REMIX_PRIVATE = 13
    REMIX_PUBLIC = 14
    REMIX_ERROR = 15
    VOD_ERROR = 16
    ARCHIVER_PRIVATE = 17
    ARCHIVER_PUBLIC = 18
    COMPOSE_GENERATING = 19
    COMPOSE_PUBLIC = 20
    COMPOSE_PRIVATE = 21
    COMPOSE_WAITING = 22
    COMPOSE_ERROR = 23
    LIVE_STARTING = 24
    LIVE_STOPPING = 25


LIVE = frozenset({EventState.LIVE_UNPUBLISHED, EventState.LIVE_PUBLISHED})
STREAMING = LIVE | {EventState.LIVE_STARTING}
ON_AIR = STREAMING | {EventState.SUSPENDED, EventState.LIVE_STOPPING}
"""The states from which an Event is stopped."""
ON_DEMAND = frozenset({EventState.VOD_PRIVATE, EventState.VOD_PUBLIC})
BEFORE_VOD = frozenset({EventState.STOPPED, EventState.INSTANT_VOD_BACKUP, EventState.PRE_VOD, EventState.VOD_ERROR})
"""A job for video on demand changes these states, and VOD_INGESTING. It leaves INSTANT_VOD when its film is there. Any other state
stays as it is."""

PUBLIC_STATES: Mapping[EventState, EventState] = {
    EventState.LIVE_UNPUBLISHED: EventState.LIVE_PUBLISHED,
    EventState.VOD_PRIVATE: EventState.VOD_PUBLIC,
    EventState.REMIX_PRIVATE: EventState.REMIX_PUBLIC,
    EventState.ARCHIVER_PRIVATE: EventState.ARCHIVER_PUBLIC,
    EventState.COMPOSE_PRIVATE: EventState.COMPOSE_PUBLIC,
}
"""The public state of each state that is the same except that it is private."""
PRIVATE_STATES: Mapping[EventState, EventState] = {public: private for private, public in PUBLIC_STATES.items()}

FAILED = frozenset({EventState.VOD_ERROR, EventState.REMIX_ERROR, EventState.COMPOSE_ERROR})
COMPOSING = frozenset({EventState.COMPOSE_WAITING, EventState.COMPOSE_GENERATING})
"""A film is made of the playlist of the Event, or will be."""

WITH_METADATA = frozenset(
    {
        EventState.INSTANT_VOD,
        EventState.INSTANT_VOD_BACKUP,
        EventState.VOD_PRIVATE,
        EventState.VOD_PUBLIC,
        EventState.REMIX_PRIVATE,
        EventState.REMIX_PUBLIC,
        EventState.ARCHIVER_PRIVATE,
        EventState.ARCHIVER_PUBLIC,
        EventState.COMPOSE_PUBLIC,
        EventState.COMPOSE_PRIVATE,
    }
)
"""The states in which the metadata of the files are adopted."""


class Mp4State(IntEnum):
    NONE = 0
    AVAILABLE = 1
    GENERATING = 2
    FAILED = 4


class Trigger(StrEnum):
    """The cause of a state change. Only an operator's order and the schedule start or stop the encoder."""

    OPERATOR = "operator"
    METADATA = "metadata"
    PROTECTION = "protection"
    FLOW = "flow"
    JOB = "job"
    SCHEDULE = "schedule"
    COMPOSE = "compose"


ENCODER_TRIGGERS = frozenset({Trigger.OPERATOR, Trigger.SCHEDULE})
"""The triggers whose state changes start and stop the encoder."""
CLIENT_TRIGGERS = frozenset({Trigger.OPERATOR, Trigger.METADATA, Trigger.PROTECTION, Trigger.FLOW})
"""The triggers of state changes that a client has ordered."""


class VodWorkflow(StrEnum):
    """The workflows that make the files of an Event for playback on demand. Jobs of COMPOSE belong to the Event's composition."""

    CAPTURE = "vod_capture"
    INGEST = "vod_ingest"
    PACKAGE = "vod_package"
    COMPOSE = "compose"


class VodJobEnd(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    BROKEN = "broken"


class VodFile(BaseModel):
    """The video file on demand: its duration in seconds, size in bytes, and modification time. None is unknown."""

    model_config = ConfigDict(frozen=True)

    duration: float | None = None
    size: int | None = None
    modified: datetime | None = None


class QualityVerdict(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"


class QualityReason(BaseModel):
    """A reason for which a film does not pass: the check, its consequence for the film, and a sentence."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    check: str
    verdict: QualityVerdict
    message: str


class QualityOfSound(BaseModel):
    """The loudness of an audio track in LUFS, its range in LU, its true peak in dBTP. None means that the track is silent or too
    short."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    track: int
    language: str = ""
    integrated: float | None = None
    range: float | None = None
    true_peak: float | None = None


class Quality(BaseModel):
    """The result of checking a film by the profile of this name. `job` is the job that checked it. With `keep_private` a film
    that fails does not become public."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job: int
    profile: str
    verdict: QualityVerdict
    keep_private: bool = False
    reasons: tuple[QualityReason, ...] = ()
    sounds: tuple[QualityOfSound, ...] = ()
    duration: float | None = None
    measured_at: datetime | None = None

    @property
    def withholds(self) -> bool:
        """True if the film must not be public."""
        return self.keep_private and self.verdict is QualityVerdict.FAIL


class VodResult(BaseModel):
    """The properties of the files that a job made. None changes nothing."""

    model_config = ConfigDict(frozen=True)

    duration: float | None = None
    size: int | None = None
    drm_json: str | None = None
    thumbnail: str | None = None


class VodJob(BaseModel):
    """The present job of an Event, by its number. `version` is the version of the job at the last outcome that the Event
    followed; `ended` is None while it runs. `publish` says that the Event is public afterwards; None leaves this to
    `auto_publish` at its end."""

    model_config = ConfigDict(frozen=True)

    number: int
    version: int = 0
    workflow: VodWorkflow
    publish: bool | None = None
    ended: VodJobEnd | None = None
    ended_at: datetime | None = None
    reason: str = ""
    result: VodResult | None = None

    def again(self, **facts: Any) -> VodJob:
        """Return the same job with other facts. It is running, unless they say how it ended."""
        identity = {"number": self.number, "workflow": self.workflow, "publish": self.publish}
        return VodJob(**{name: value for name, value in {**identity, **facts}.items() if value is not None and value != ""})


class AudioInput(BaseModel):
    """An audio track that the encoder reads. `index` is its position, `language` a tag such as `en`, or empty."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str = ""
    index: int = 0
    language: str = ""


@dataclass(frozen=True, slots=True)
class ChannelUse:
    """A channel with encoders, and the other Event that is on the air on it."""

    id: UUID
    holder: UUID | None = None


class Encoding(BaseModel):
    """The channel that an Event is on the air on or waits for, and the session of its encoders.

    `order` is the version of the last state change that requested the channel. While the Event is on the air, `channel_id` is its
    channel, and `version` the version of the event that took it. While another Event is on the air on the channel, `waits_for` is
    the channel. `session` is the number of the last session that was started, `running` says that it still runs.
    """

    model_config = ConfigDict(frozen=True)

    order: int = 0
    channel_id: UUID | None = None
    version: int = 0
    waits_for: UUID | None = None
    session: int = 0
    running: bool = False


class EventDetails(Particulars, Capture):
    """The complete state of an Event except its id, version and dates."""

    state: EventState = EventState.PRE_LIVE
    mp4_state: Mp4State = Mp4State.NONE
    actual_live_start: datetime | None = None
    actual_live_end: datetime | None = None
    date_deleted: datetime | None = None
    vod_job: VodJob | None = None
    vod_file: VodFile | None = None
    quality: Quality | None = None
    provision: ProvisionSummary | None = None
    started_for: datetime | None = None
    """The `scheduled_start` for which the schedule has started the Event, or which was over when the Event was restored. The
    Event is started once for each."""
    ended_for: datetime | None = None
    """The `scheduled_end` for which the schedule has stopped the Event, or which was over when an operator started it. The Event
    is stopped once for each."""
    provisioned_for: datetime | None = None
    """The `scheduled_provision_at` for which the schedule has provisioned the infrastructure, or found it provisioned, or which
    was over when the Event was restored."""
    terminated_for: datetime | None = None
    """The `scheduled_terminate_at` for which the schedule has terminated the infrastructure, or found none."""
    available_from: datetime | None = None
    available_until: datetime | None = None
    """The `published_start` and `published_end` that a client wrote. Times that a state change recorded are no window."""
    published_for: datetime | None = None
    """The `available_from` at which the Event became public, or since which a client has made it private. The Event is published
    once for each."""
    withdrawn_for: datetime | None = None
    """The `available_until` at which the Event became private, or after which a client has made it public."""
    instant_vod_for: datetime | None = None
    """The `instant_vod_start` at which the Event could be watched on demand, or which was over when the Event was restored."""
    instant_vod_ended_for: datetime | None = None
    """The `instant_vod_end` at which that ended, or after which a client has set the state again."""
    public_since: datetime | None = None
    """The time since which the Event has been public without interruption; None if it is not public."""
    encoding: Encoding | None = None
    audio_inputs: tuple[AudioInput, ...] | None = None

    @staticmethod
    def blank() -> EventDetails:
        """Return a value equal to `EventDetails()`, without validating sixty defaults for every Event."""
        return _BLANK.copied()

    def copied(self) -> Self:
        """Return a copy as `model_copy()` does, at a fifth of its cost, because every command copies the details. They contain
        no mutable value."""
        details = object.__new__(type(self))
        set_attribute = object.__setattr__
        set_attribute(details, "__dict__", self.__dict__.copy())
        set_attribute(details, "__pydantic_fields_set__", set())
        set_attribute(details, "__pydantic_extra__", None)
        set_attribute(details, "__pydantic_private__", None)
        return details

    def times_of(self, state: EventState, *, at: datetime) -> dict[str, datetime]:
        """Return the times that a change to this state sets. `at` is not before the last change: an end is never before its
        start, even if a clock goes back."""
        times: dict[str, datetime] = {}
        if state in LIVE and self.actual_live_start is None:
            times["actual_live_start"] = at
        if state is EventState.LIVE_PUBLISHED and self.published_start is None:
            times["published_start"] = at
        if state is EventState.STOPPED:
            times["actual_live_end"] = at
            if self.published_start is not None and self.published_start <= at and self.available_until is None:
                times["published_end"] = at
        return times

    def is_available(self, at: datetime) -> bool:
        """Return True unless the Event has an availability window that has not begun, or that is over."""
        begun = self.available_from is None or self.available_from <= at
        return begun and (self.available_until is None or at < self.available_until)

    @property
    def shown_by_schedule(self) -> bool | None:
        """True if the Event is public, False if it is private, while it has an availability window; None without one, and in a
        state that is neither."""
        windowed = self.available_from is not None or self.available_until is not None
        if not windowed or self.date_deleted is not None or self.state not in PUBLIC_STATES.keys() | PRIVATE_STATES.keys():
            return None
        return self.state in PRIVATE_STATES

    def public_or_private(self, state: EventState, *, at: datetime) -> EventState:
        """Return the state, or its private twin outside the availability window. Changes that no client orders go through this."""
        return state if self.is_available(at) else PRIVATE_STATES.get(state, state)

    def count_as_done(self, *, until: datetime) -> None:
        """Mark the scheduled start, publication, instant VOD and provisioning as done if their times have come by then."""
        if self.instant_vod_start is not None and self.instant_vod_start <= until:
            self.instant_vod_for = self.instant_vod_start
        if self.available_from is not None and self.available_from <= until:
            self.published_for = self.available_from
        if self.scheduled_start is not None and self.scheduled_start <= until:
            self.started_for = self.scheduled_start
        if self.scheduled_provision_at is not None and self.scheduled_provision_at <= until:
            self.provisioned_for = self.scheduled_provision_at

    def settle_windows(self, state: EventState, previous: EventState, *, trigger: Trigger, at: datetime) -> None:
        """Remember which times of the availability window and of instant VOD are over after a change of state. A client's order
        that comes after a time takes precedence over it: an Event that was made private stays private, and one that was made
        public stays public."""
        public, ordered, scheduled = state in PRIVATE_STATES, trigger in CLIENT_TRIGGERS, trigger is Trigger.SCHEDULE
        published = public or (ordered and previous in PRIVATE_STATES and state in PUBLIC_STATES)
        if published and self.available_from is not None and self.available_from <= at:
            self.published_for = self.available_from
        withdrawn = ordered if public else scheduled
        if withdrawn and self.available_until is not None and self.available_until <= at:
            self.withdrawn_for = self.available_until
        self.public_since = (self.public_since or at) if public else None
        shown = state is EventState.INSTANT_VOD
        if shown and self.instant_vod_start is not None and self.instant_vod_start <= at:
            self.instant_vod_for = self.instant_vod_start
        hidden = (shown and ordered) or (previous is EventState.INSTANT_VOD and scheduled)
        if hidden and self.instant_vod_end is not None and self.instant_vod_end <= at:
            self.instant_vod_ended_for = self.instant_vod_end

    @property
    def on_air_channel_id(self) -> UUID | None:
        """The channel that this Event is on the air on, with a running encoder."""
        return None if self.encoding is None else self.encoding.channel_id

    @property
    def awaited_channel_id(self) -> UUID | None:
        """The channel that the Event takes as soon as no other Event is on the air on it."""
        waits_for = None if self.encoding is None else self.encoding.waits_for
        return waits_for if waits_for == self.channel_id and self.date_deleted is None else None

    @property
    def display_start(self) -> datetime | None:
        """The start to show to viewers: publishedStart, else scheduledStart, else actualLiveStart."""
        return self.published_start or self.scheduled_start or self.actual_live_start

    @property
    def auto_start_at(self) -> datetime | None:
        """The time at which the schedule starts the Event; None if it does not. The time may have passed, unlike
        `scheduled_end`: an Event whose scheduled end has come too is not started, nor is one that would end before it starts."""
        waits = self.auto_start and self.state is EventState.PRE_LIVE and self.date_deleted is None
        start, end = self.scheduled_start, self.scheduled_end
        if not waits or start is None or start == self.started_for:
            return None
        return start if end is None or start < end else None

    @property
    def auto_end_at(self) -> datetime | None:
        """The time at which the schedule stops the Event; None if it does not. The time may have passed."""
        runs = self.auto_end and self.state in STREAMING and self.date_deleted is None
        return self.scheduled_end if runs and self.scheduled_end != self.ended_for else None

    @property
    def auto_publish_at(self) -> datetime | None:
        """The time at which the schedule makes the Event public; None if it does not. The time may have passed, unlike
        `available_until`. A film that must not be public is left private."""
        start, end = self.available_from, self.available_until
        if start is None or start == self.published_for or self.date_deleted is not None or self.state not in PUBLIC_STATES:
            return None
        withheld = self.state not in LIVE and self.quality is not None and self.quality.withholds
        return None if withheld or (end is not None and end <= start) else start

    @property
    def auto_publish_until(self) -> datetime | None:
        """The time from which publishing is too late, because the availability is over; None if there is no such time."""
        return None if self.auto_publish_at is None else self.available_until

    @property
    def auto_withdraw_at(self) -> datetime | None:
        """The time at which the schedule makes the Event private; None if it does not. The time may have passed."""
        public = self.state in PRIVATE_STATES and self.date_deleted is None
        return self.available_until if public and self.available_until != self.withdrawn_for else None

    @property
    def recorded_part(self) -> tuple[datetime, datetime] | None:
        """The part of the recorded stream that can be watched in the state INSTANT_VOD: from the start of the live stream, or its
        later publication, to its end. None for an Event that was not live."""
        start, end, published = self.actual_live_start, self.actual_live_end, self.published_start
        if start is None or end is None:
            return None
        begin = published if published is not None and start < published < end else start
        return (begin, end) if begin < end else None

    @property
    def auto_instant_vod_at(self) -> datetime | None:
        """The time at which the stopped Event can be watched on demand from its recorded stream; None if it cannot. The time may
        have passed, unlike `instant_vod_end`."""
        start, end = self.instant_vod_start, self.instant_vod_end
        stopped = self.state is EventState.STOPPED and self.date_deleted is None and self.recorded_part is not None
        if not stopped or start is None or start == self.instant_vod_for:
            return None
        return None if end is not None and end <= start else start

    @property
    def auto_instant_vod_until(self) -> datetime | None:
        """The time from which that is too late; None if there is no such time."""
        return None if self.auto_instant_vod_at is None else self.instant_vod_end

    @property
    def auto_instant_vod_end_at(self) -> datetime | None:
        """The time at which the recorded stream is not shown any more; None if it is not shown, or for ever."""
        shown = self.state is EventState.INSTANT_VOD and self.date_deleted is None
        return self.instant_vod_end if shown and self.instant_vod_end != self.instant_vod_ended_for else None

    @property
    def auto_provision_at(self) -> datetime | None:
        """The time at which the schedule provisions the infrastructure; None if it does not. The time may have passed."""
        waits = self.auto_provision_infrastructure and self.date_deleted is None
        return self.scheduled_provision_at if waits and self.scheduled_provision_at != self.provisioned_for else None

    @property
    def auto_provision_until(self) -> datetime | None:
        """The time from which the scheduled provisioning is too late, because the infrastructure was to be terminated, or the
        Event was to be over; None if there is no such time. The earlier of both times after the provisioning counts."""
        at = self.auto_provision_at
        ends = (self.scheduled_terminate_at, self.scheduled_end)
        return None if at is None else min((end for end in ends if end is not None and end > at), default=None)

    @property
    def auto_terminate_at(self) -> datetime | None:
        """The time at which the schedule terminates the infrastructure; None if it does not. The time may have passed."""
        waits = self.auto_terminate_infrastructure and self.date_deleted is None
        return self.scheduled_terminate_at if waits and self.scheduled_terminate_at != self.terminated_for else None

    @property
    def start_due_at(self) -> datetime | None:
        """The time at which the Event was to be live for the first time; None if it was live, or if it is or is becoming video
        on demand."""
        return None if self.actual_live_start or self.state in STREAMING or self._is_converted else self.scheduled_start

    @property
    def vod_due_at(self) -> datetime | None:
        """The time at which the Event was to become video on demand: the scheduled end, or without one the actual end, of an
        Event that was live and whose capture was requested by a client or its flow. None for other Events, and for those that
        are or are becoming video on demand."""
        asked = self.vod_job is not None and self.vod_job.workflow is VodWorkflow.CAPTURE
        return (self.scheduled_end or self.actual_live_end) if asked and self.actual_live_start and not self._is_converted else None

    @property
    def _is_converted(self) -> bool:
        return self.state in WITH_METADATA or self.state is EventState.VOD_INGESTING

    @property
    def provision_due_at(self) -> datetime | None:
        """The time at which its infrastructure was to be provisioned; None if it is up, or was to be terminated since."""
        state = None if self.provision is None else self.provision.state
        return None if state in UP or state in OVER else self.scheduled_provision_at

    @property
    def termination_due_at(self) -> datetime | None:
        """The time at which its infrastructure was to be terminated; None if there is none."""
        state = None if self.provision is None else self.provision.state
        nothing = (None, ProvisionState.SCHEDULED, ProvisionState.TERMINATED)
        return None if state in nothing else self.scheduled_terminate_at

    @property
    def display_end(self) -> datetime | None:
        return self.published_end or self.scheduled_end or self.actual_live_end


_BLANK = EventDetails()


# The audio inputs that a channel lists for its encoders. The inputs that an encoder has found are recorded on the Event instead.


def configured_inputs(specific: Mapping[str, object]) -> Sequence[AudioInput]:
    """Return the inputs of an `encoderSpecific`, as far as it can be read."""
    return listed_inputs(readable(FfmpegSpecific, specific).audio_inputs or ())


def listed_inputs(entries: Sequence[AudioInputEntry]) -> Sequence[AudioInput]:
    inputs = []
    for place, entry in enumerate(entries):
        index = place if entry.index is None else entry.index
        inputs.append(AudioInput(id=entry.id or str(place), name=entry.name or "", index=index, language=entry.language or ""))
    return inputs
