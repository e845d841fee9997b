"""The commands of media Events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.checks import check
from domain.event.values import (
    AudioInput,
    EventState,
    Mp4State,
    Quality,
    Trigger,
    VodFile,
    VodJob,
    VodJobEnd,
    VodResult,
    VodWorkflow,
)
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, NotFound, PlanOutdated, Refused
from domain.provision.values import ProvisionSummary


@dataclass(frozen=True)
class _EventCommand(Command[MediaEvent]):
    key: UUID

    def kind(self) -> type[MediaEvent]:
        return MediaEvent


@dataclass(frozen=True)
class AddOrUpdateEvent(_EventCommand):
    """POST /event/. `changes` maps names of `EventDetails` to values; absent names do not change."""

    changes: Mapping[str, Any]
    state: EventState | None = None
    mp4_state: Mp4State | None = None
    trigger: Trigger = Trigger.METADATA
    new: bool = False

    @property
    def creates(self) -> bool:
        return self.new

    def decide(self, root: MediaEvent | None, *, at: datetime) -> MediaEvent:
        check(self.changes)
        if root is None:
            root = MediaEvent.register(self.key, self.changes, at=at)
        else:
            root.must_not_be_deleted()
            root.amend(self.changes, at=at)
        _set_states(root, self.state, self.mp4_state, trigger=self.trigger, at=at)
        return root


@dataclass(frozen=True)
class AddFlowTask(_EventCommand):
    """POST /event/flow/add/ for an existing Event. Without an id the task is part of a new Event (`AddOrUpdateEvent`)."""

    task_engine_json: str
    state: EventState | None = None
    mp4_state: Mp4State | None = None

    def decide(self, root: MediaEvent | None, *, at: datetime) -> MediaEvent:
        check({"task_engine_json": self.task_engine_json})  # bad input is reported before a missing Event
        return super().decide(root, at=at)

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.amend({"task_engine_json": self.task_engine_json}, at=at)
        _set_states(root, self.state, self.mp4_state, trigger=Trigger.FLOW, at=at)


@dataclass(frozen=True)
class Expectation:
    """A JSON Patch `test`: at this point of the patch the field must have this value."""

    name: str
    value: Any


@dataclass(frozen=True)
class Replacement:
    """A JSON Patch `replace`, `add` or `remove`: the field gets this value."""

    name: str
    value: Any


@dataclass(frozen=True)
class AmendEvent(_EventCommand):
    """PATCH /event/{id} and POST /event/stream/dvrwindowlength/{id}: all steps apply, or none."""

    steps: tuple[Expectation | Replacement, ...] = field(default=())

    def decide(self, root: MediaEvent | None, *, at: datetime) -> MediaEvent:
        check({step.name: step.value for step in self.steps if isinstance(step, Replacement)})
        return super().decide(root, at=at)

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        if root.deleted:  # before any test, whose result would reveal values of a deleted Event
            raise NotFound(root.KIND, root.key)
        changes: dict[str, Any] = {}
        for step in self.steps:
            if isinstance(step, Replacement):
                changes[step.name] = step.value
            elif changes.get(step.name, getattr(root.details, step.name, None)) != step.value:
                raise Refused(f"the test of {step.name} failed: it has another value")
        state, mp4_state = changes.pop("state", None), changes.pop("mp4_state", None)
        root.amend(changes, at=at)
        _set_states(root, state, mp4_state, trigger=Trigger.METADATA, at=at)


@dataclass(frozen=True)
class ChangeEventState(_EventCommand):
    """PUT /event/state/{id}: an operator's order, which the encoder follows."""

    state: EventState

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.change_state(self.state, trigger=Trigger.OPERATOR, at=at)


@dataclass(frozen=True)
class StartEventOnSchedule(_EventCommand):
    """Start an Event whose scheduled start has come, and whose scheduled end has not. Both times are those that were read then."""

    scheduled_start: datetime
    scheduled_end: datetime | None

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.start_on_schedule(self.scheduled_start, scheduled_end=self.scheduled_end, at=at)


@dataclass(frozen=True)
class EndEventOnSchedule(_EventCommand):
    """Stop an Event whose scheduled end has come. The time is the one that was read then."""

    scheduled_end: datetime

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.end_on_schedule(self.scheduled_end, at=at)


@dataclass(frozen=True)
class ForceStopEvent(_EventCommand):
    """PUT /event/forcestop/{id}."""

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.force_stop(at=at)


@dataclass(frozen=True)
class ChangeEventProtection(_EventCommand):
    """PUT /event/flow/protection/{contentId}; the contentId is the Event's id."""

    state: EventState

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.change_protection(self.state, at=at)


@dataclass(frozen=True)
class StartVodJob(_EventCommand):
    """Record that a job that makes files for playback on demand is accepted or resumed in the same append. `captured` holds the
    facts `capture_vod_start` and `capture_vod_end` of a capture. `rerun_of` is the job that this one repeats. `version` is the
    version of a job that is resumed."""

    job: int
    workflow: VodWorkflow
    publish: bool | None = None
    captured: Mapping[str, datetime] = field(default_factory=dict)
    rerun_of: int | None = None
    version: int = 0

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        facts = {"version": self.version or None, "publish": self.publish}
        job = VodJob(number=self.job, workflow=self.workflow, **{name: fact for name, fact in facts.items() if fact is not None})
        root.start_vod_job(job, captured=self.captured, rerun_of=self.rerun_of, at=at)


@dataclass(frozen=True)
class ResumeVodJob(_EventCommand):
    """Record that the job continues after its end. `version` is the version of the job then."""

    job: int
    version: int

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.resume_vod_job(self.job, version=self.version, at=at)


@dataclass(frozen=True)
class MoveVodJob(_EventCommand):
    """Record that another job repeats the present one, `rerun_of`."""

    job: int
    rerun_of: int

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.move_vod_job(self.job, rerun_of=self.rerun_of, at=at)


@dataclass(frozen=True)
class EndVodJob(_EventCommand):
    """Record the end of the job. `version` is the version of the job then; `result` describes the files that it made, `quality`
    the quality of its film."""

    job: int
    end: VodJobEnd
    version: int
    reason: str = ""
    result: VodResult | None = None
    quality: Quality | None = None

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.end_vod_job(
            self.job, self.end, version=self.version, reason=self.reason, result=self.result, quality=self.quality, at=at
        )


@dataclass(frozen=True)
class MeasureQuality(_EventCommand):
    """Record that a check of the film has ended."""

    quality: Quality

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.measure_quality(self.quality, at=at)


@dataclass(frozen=True)
class SyncVodMetadata(_EventCommand):
    """PUT /vod/{id}/metadata. `file` is the file for playback on demand; `available` says that there is an MP4."""

    file: VodFile
    available: bool

    def decide(self, root: MediaEvent | None, *, at: datetime) -> MediaEvent:
        if root is None or root.deleted:
            raise Malformed.at("id", "there is no such Event")
        return super().decide(root, at=at)

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.sync_vod_metadata(self.file, available=self.available, at=at)


@dataclass(frozen=True)
class TakeChannel(_EventCommand):
    """Go on the air, as requested by the state change of version `order`. Raises `ClaimTaken` while another Event is on the
    channel."""

    channel_id: UUID
    order: int

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.take_channel(self.channel_id, order=self.order, at=at)


@dataclass(frozen=True)
class ReleaseChannel(_EventCommand):
    """Go off the air. The state of the Event stays, and its next start takes the channel again."""

    channel_id: UUID

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.release_channel(self.channel_id, at=at)


@dataclass(frozen=True)
class RecordEncoderStart(_EventCommand):
    session: int

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.record_encoder_start(self.session, at=at)


@dataclass(frozen=True)
class RecordEncoderStop(_EventCommand):
    """Record the end of a session. `reason` is empty if the end was ordered."""

    session: int
    reason: str = ""

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.record_encoder_stop(self.session, reason=self.reason, at=at)


@dataclass(frozen=True)
class RecordEncoderFailure(_EventCommand):
    """Give the encoder up. `version` is the version of the event that took the channel, `session` the last session, if any."""

    version: int
    session: int | None
    reason: str

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.record_encoder_failure(self.version, session=self.session, reason=self.reason, at=at)


@dataclass(frozen=True)
class RecordAudioInputs(_EventCommand):
    """Record the audio inputs that the encoder was found to read."""

    audio_inputs: Sequence[AudioInput]

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.record_audio_inputs(self.audio_inputs, at=at)


@dataclass(frozen=True)
class ForceNotification(_EventCommand):
    """POST /webhook/notify/{eventId}: the only source of IsForced in notifications."""

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.force_notification(at=at)


@dataclass(frozen=True)
class ShowProvisioning(_EventCommand):
    """Show the state of the Provision Info, which changes in the same append. `must_exist` is set on behalf of clients, who
    cannot reach a deleted Event."""

    provision: ProvisionSummary
    must_exist: bool = False

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.show_provisioning(self.provision, must_exist=self.must_exist, at=at)


@dataclass(frozen=True)
class _ReachTime(_EventCommand):
    """Record that `scheduled_at`, as it was read then, has come. The requested work is in the same append. The Event then shows
    `provision`; None leaves it as before."""

    scheduled_at: datetime
    provision: ProvisionSummary | None = None

    def _check(self, root: MediaEvent, waits_for: datetime | None) -> None:
        if self.scheduled_at != waits_for:
            raise PlanOutdated(root.KIND, root.key)


@dataclass(frozen=True)
class ReachProvisionTime(_ReachTime):
    """Record that `scheduledProvisionAt` has come."""

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        self._check(root, root.details.auto_provision_at)
        root.reach_provision_time(self.scheduled_at, self.provision, at=at)


@dataclass(frozen=True)
class ReachTerminationTime(_ReachTime):
    """Record that `scheduledTerminateAt` has come."""

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        self._check(root, root.details.auto_terminate_at)
        root.reach_termination_time(self.scheduled_at, self.provision, at=at)


@dataclass(frozen=True)
class DeleteEvent(_EventCommand):
    """DELETE /event/{id}. The termination of its infrastructure is in the same append. That command was made when the Event
    showed `before`; the Event then shows `after`. `composing_job`, which makes a film of its playlist, is also ended in the same
    append."""

    before: ProvisionSummary | None = None
    after: ProvisionSummary | None = None
    composing_job: int | None = None

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        if not root.deleted and (root.details.provision, root.composing_job) != (self.before, self.composing_job):
            raise PlanOutdated(root.KIND, root.key)
        if self.after is not None:
            root.show_provisioning(self.after, must_exist=True, at=at)
        root.delete(at=at)


@dataclass(frozen=True)
class RestoreEvent(_EventCommand):
    """PUT /event/restore/{id}. An Event that is not deleted does not change. Its link targets may have been deleted."""

    @property
    def ignore_missing_links(self) -> bool:
        return True

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.restore(at=at)


def _set_states(root: MediaEvent, state: EventState | None, mp4_state: Mp4State | None, *, trigger: Trigger, at: datetime) -> None:
    if state is not None:
        root.change_state(state, trigger=trigger, at=at)
    if mp4_state is not None:
        root.change_mp4_state(mp4_state, at=at)


@dataclass(frozen=True, kw_only=True)
class ComposeEvent(_EventCommand):
    """Make a film of the Event's playlist: by `job`, which is accepted in the same append, or later (None), or never, with a
    `fault`. `changes` are those of `AddOrUpdateEvent`; without them the Event must exist. `replaces` is the job of an earlier
    playlist. `publish` says that the Event is public afterwards. The number of a first film was determined while `present_job`
    was the last job of the Event."""

    job: int | None
    publish: bool = True
    replaces: int | None = None
    changes: Mapping[str, Any] | None = None
    new: bool = False
    first: bool = False
    present_job: int | None = None
    fault: bool = False

    @property
    def creates(self) -> bool:
        return self.new

    def decide(self, root: MediaEvent | None, *, at: datetime) -> MediaEvent:
        if self.changes is None:
            return super().decide(root, at=at)
        root = AddOrUpdateEvent(self.key, self.changes).decide(root, at=at)
        self.act(root, at=at)
        return root

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        present = None if root.details.vod_job is None else root.details.vod_job.number
        if self.first and present != self.present_job:
            raise PlanOutdated(root.KIND, root.key)
        if self.job is None:
            root.wait_to_compose(fault=self.fault, at=at)
            return
        job = VodJob(number=self.job, workflow=VodWorkflow.COMPOSE, publish=self.publish)
        root.start_vod_job(job, captured={}, rerun_of=self.replaces, at=at)


@dataclass(frozen=True)
class RemovePlaylist(_EventCommand):
    """DELETE /compose/{eventId}. A running job is cancelled in the same append."""

    def decide(self, root: MediaEvent | None, *, at: datetime) -> MediaEvent:
        if root is None or root.deleted:
            raise Malformed.at("eventId", "there is no such Event")
        return super().decide(root, at=at)

    def act(self, root: MediaEvent, *, at: datetime) -> None:
        root.remove_playlist(at=at)
