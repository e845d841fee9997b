"""The aggregate of an Event. It is called MediaEvent because the eventsourcing library reserves the nested name `Event`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from domain.event import events
from domain.event.checks import check_has_metadata, check_periods
from domain.event.links import links_of
from domain.event.values import (
    BEFORE_VOD,
    COMPOSING,
    ENCODER_TRIGGERS,
    LIVE,
    ON_DEMAND,
    PRIVATE_STATES,
    PUBLIC_STATES,
    STREAMING,
    AudioInput,
    ChannelUse,
    Encoding,
    EventDetails,
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
from domain.kernel.aggregate import NO_CLAIMS, NO_LINKS, AggregateRoot, Claim
from domain.kernel.command import decision
from domain.kernel.errors import Conflict, NotFound, PlanOutdated, Refused
from domain.kernel.event import DomainEvent
from domain.provision.values import ProvisionState, ProvisionSummary

ON_AIR: Final = "channel.on_air"
"""The scope of the claim that keeps two Events from sending on one channel."""
NO_TIMES: Final[Mapping[str, datetime]] = MappingProxyType({})
_NO_ENCODING: Final = Encoding()


_FACTS_OF = {facet: tuple(name for name in facet.model_fields if name not in DomainEvent.model_fields) for facet in events.FACETS}
_EMPTY = EventDetails()
FIXED_WHILE_STREAMING = ("channel_id", "infrastructure_profile_id")
_NOTES = ("previous", "trigger")
_WINDOW: Final = {"published_start": "available_from", "published_end": "available_until"}


class MediaEvent(AggregateRoot):
    """A live or on-demand event of the broadcaster, from its first entry in the schedule to its deletion."""

    KIND: ClassVar[str] = "event"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS
    SNAPSHOT_VERSION: ClassVar[int] = 3

    details: EventDetails

    left_unchanged: tuple[str, ...] = ()
    """The fields that the last command could not change, because the Event is streaming or being provisioned."""

    def begin(self) -> None:
        self.details = EventDetails.blank()

    def copy(self) -> Self:
        copy = super().copy()
        copy.details = self.details.copied()
        copy.__dict__.pop("left_unchanged", None)
        return copy

    # --- decisions

    @classmethod
    def register(cls, key: UUID, at: datetime, /, changes: Mapping[str, Any]) -> Self:
        check_periods(changes)
        values = {name: value for name, value in changes.items() if value != getattr(_EMPTY, name)}
        return cls._begin(events.EventRegistered, key, at, **values)

    @decision
    def amend(self, at: datetime, /, changes: Mapping[str, Any]) -> None:
        """Set the fields that `changes` names, with one domain event for each facet that changes.

        The channel and the infrastructure profile cannot change while the Event streams or its infrastructure is being provisioned.
        They are then left unchanged, and the rest of the changes applies.
        """
        self._must_exist()
        changes = self._without_recorded_end(changes)
        check_periods(changes, self.details)
        fixed = FIXED_WHILE_STREAMING if self.details.state in STREAMING or self._provisioning else ()
        if unchanged := tuple(name for name in fixed if name in changes and changes[name] != getattr(self.details, name)):
            self.left_unchanged = unchanged
        for facet, names in _FACTS_OF.items():
            changed = {
                name: changes[name]
                for name in names
                if name in changes and name not in fixed and changes[name] != getattr(self.details, name)
            }
            if changed:
                self._trigger(facet, at=at, **changed)

    def _without_recorded_end(self, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the removal of an end of publication that a stop recorded, if the changes begin another publication after it."""
        start, ended = changes.get("published_start"), self.details.published_end
        is_record = ended is not None and self.details.available_until is None
        if start is None or not is_record or "published_end" in changes or start <= ended:
            return changes
        return {**changes, "published_end": None}

    @decision
    def change_state(self, at: datetime, /, state: EventState, *, trigger: Trigger, channel: ChannelUse | None = None) -> None:
        """Change to any state, and set the times of docs/reference/api/events.md. The same state changes nothing.

        `channel` is the channel with encoders that a plan has found for a start. The Event takes it in the same append, or records
        that another Event is on the air on it."""
        self._must_exist()
        if state == self.details.state:
            return
        self._trigger(
            events.StateChanged,
            at=at,
            state=state,
            previous=self.details.state,
            trigger=trigger,
            **self.details.times_of(state, at=max(at, self.modified_on)),
        )
        if trigger in ENCODER_TRIGGERS:
            if state is EventState.STOPPED:
                self._go_off_air(at=at)
            elif state in LIVE and channel is not None:
                self._go_on_air(channel, order=self.version, at=at)

    @decision
    def start_on_schedule(
        self, at: datetime, /, scheduled_start: datetime, *, scheduled_end: datetime | None, channel: ChannelUse | None = None
    ) -> None:
        """Go live if the Event still waits for this start and still ends at this time. The caller has checked that the time has
        come."""
        details = self.details
        if scheduled_start == details.auto_start_at and scheduled_end == details.scheduled_end:
            state = EventState.LIVE_PUBLISHED if details.auto_publish else EventState.LIVE_UNPUBLISHED
            state = details.public_or_private(state, at=at)
            self.change_state(at, state, trigger=Trigger.SCHEDULE, channel=channel)

    @decision
    def end_on_schedule(self, at: datetime, /, scheduled_end: datetime) -> None:
        """Stop if the Event is still scheduled to stop at this time. The caller has checked that the time has come."""
        if scheduled_end == self.details.auto_end_at:
            self.change_state(at, EventState.STOPPED, trigger=Trigger.SCHEDULE)

    @decision
    def publish_on_schedule(self, at: datetime, /, available_from: datetime, *, available_until: datetime | None) -> None:
        """Become public if the Event still waits for this window. The caller has checked that it is open."""
        details = self.details
        if available_from == details.auto_publish_at and available_until == details.available_until:
            self.change_state(at, PUBLIC_STATES[details.state], trigger=Trigger.SCHEDULE)

    @decision
    def withdraw_on_schedule(self, at: datetime, /, available_until: datetime) -> None:
        """Become private if the Event is still available until this time. The caller has checked that the time has come."""
        if available_until == self.details.auto_withdraw_at:
            self.change_state(at, PRIVATE_STATES[self.details.state], trigger=Trigger.SCHEDULE)

    @decision
    def show_recording_on_schedule(self, at: datetime, /, instant_vod_start: datetime, *, instant_vod_end: datetime | None) -> None:
        """Become INSTANT_VOD if the stopped Event still waits for this time. The caller has checked that it has come."""
        if instant_vod_start == self.details.auto_instant_vod_at and instant_vod_end == self.details.instant_vod_end:
            self.change_state(at, EventState.INSTANT_VOD, trigger=Trigger.SCHEDULE)

    @decision
    def show_recording(self, at: datetime, /) -> None:
        """Become INSTANT_VOD after a stop, as the flow requests. An Event with a time of its own for this waits for it."""
        details = self.details
        if details.state is EventState.STOPPED and not self.deleted and details.recorded_part and details.instant_vod_start is None:
            self.change_state(at, EventState.INSTANT_VOD, trigger=Trigger.FLOW)

    @decision
    def hide_recording_on_schedule(self, at: datetime, /, instant_vod_end: datetime) -> None:
        """End INSTANT_VOD if the Event still ends it at this time: as a backup while its film is being made, else for good. The
        caller has checked that the time has come."""
        if instant_vod_end == self.details.auto_instant_vod_end_at:
            job = self.details.vod_job
            making = job is not None and job.ended is None
            state = EventState.INSTANT_VOD_BACKUP if making else EventState.INSTANT_VOD_DELETE
            self.change_state(at, state, trigger=Trigger.SCHEDULE)

    @decision
    def force_stop(self, at: datetime, /) -> None:
        """Stop the Event. This is always recorded, because the encoder may run although the Event is stopped."""
        self._must_exist()
        stopped = self.details.state is EventState.STOPPED
        times = {} if stopped else self.details.times_of(EventState.STOPPED, at=max(at, self.modified_on))
        self._trigger(events.ForceStopped, at=at, previous=self.details.state, **times)
        self._go_off_air(at=at)

    @decision
    def change_protection(self, at: datetime, /, state: EventState) -> None:
        """Change between VOD_PRIVATE and VOD_PUBLIC, and no other states."""
        self._must_exist()
        if state not in ON_DEMAND:
            raise Refused(f"protection is VOD_PRIVATE or VOD_PUBLIC, not {state.name}")
        if self.details.state not in ON_DEMAND:
            raise Refused(f"the Event is {self.details.state.name}, not VOD_PRIVATE or VOD_PUBLIC")
        self.change_state(at, state, trigger=Trigger.PROTECTION)

    @decision
    def change_mp4_state(self, at: datetime, /, mp4_state: Mp4State) -> None:
        self._must_exist()
        if mp4_state != self.details.mp4_state:
            self._trigger(events.Mp4StateChanged, at=at, mp4_state=mp4_state, previous=self.details.mp4_state)

    @decision
    def start_vod_job(
        self,
        at: datetime,
        /,
        number: int,
        workflow: VodWorkflow,
        *,
        publish: bool | None = None,
        captured: Mapping[str, datetime] = NO_TIMES,
        rerun_of: int | None = None,
        version: int = 0,
    ) -> None:
        """Make a job the present one of the Event, in the append that accepts or resumes it. Only one job runs at a time, because
        all of them write the same files. `captured` has the facts `capture_vod_start` and `capture_vod_end` of a capture.
        `version` is the version of a job that is resumed. The job that this one repeats or replaces, `rerun_of`, is cancelled in
        the same append."""
        self._must_exist()
        facts = {"version": version or None, "publish": publish}
        job = VodJob(number=number, workflow=workflow, **{name: fact for name, fact in facts.items() if fact is not None})
        if job.workflow is VodWorkflow.COMPOSE:
            self._must_not_stream()
        present = self.details.vod_job
        if present is not None and present.ended is None:
            if present.number == job.number:
                return
            if present.number != rerun_of:
                raise Conflict(f"job {present.number} ({present.workflow}) is still producing files for this Event")
        if job.publish is None and job.workflow is VodWorkflow.COMPOSE and present is not None and present.workflow is job.workflow:
            job = present.again(number=job.number, version=job.version)  # the same film once more
        self._begin_vod_job(job, at=at, **captured)

    @decision
    def resume_vod_job(self, at: datetime, /, number: int, *, version: int) -> None:
        """Record that the job continues after its end. Nothing changes if another job is the present one."""
        present = self._present_vod_job(number, version)
        if present is not None and present.ended is not None:
            self._begin_vod_job(present.again(version=version), at=at)

    @decision
    def move_vod_job(self, at: datetime, /, number: int, *, rerun_of: int) -> None:
        """Record that another job repeats the present one."""
        present = self.details.vod_job
        if present is not None and present.number == rerun_of != number:
            self._begin_vod_job(present.again(number=number), at=at)

    @decision
    def end_vod_job(
        self,
        at: datetime,
        /,
        number: int,
        end: VodJobEnd,
        *,
        version: int,
        reason: str = "",
        result: VodResult | None = None,
        quality: Quality | None = None,
    ) -> None:
        """Record the end of the job. Nothing changes if the job is not the present one or has ended already: cancelling a
        completed job removes nothing. For a deleted Event only the end and the `quality` of its film are recorded; the Event
        shows them when it is restored."""
        present = self._present_vod_job(number, version)
        if present is None or present.ended is not None:
            return
        ended = {"ended": end, "ended_at": max(at, self.modified_on), "reason": reason, "result": result}
        job = present.again(version=version, **ended)
        self._trigger(events.VodJobEnded, at=at, vod_job=job)
        if end is VodJobEnd.COMPLETED and job.workflow is not VodWorkflow.PACKAGE:
            self._note_quality(quality, at=at)
        if not self.deleted:
            self._settle_vod_job(job, at=at)

    @decision
    def measure_quality(self, at: datetime, /, quality: Quality) -> None:
        """Record that a check of the film has ended. Nothing changes if its job has reported the result already, so that a film
        which a client has made public since stays public. A film that must not be public becomes private."""
        if self.deleted:
            return
        if self._note_quality(quality, at=at):
            self._withhold(at=at)

    @decision
    def wait_to_compose(self, at: datetime, /, *, fault: bool = False) -> None:
        """Record that a film of the playlist is made later, or never if there is a fault. A job that makes a film of an earlier
        playlist is cancelled in the same append."""
        self._must_exist()
        self._must_not_stream()
        if self._stop_composing(reason="another playlist was sent", at=at) is not None:
            self._show_earlier_film(at=at)
        if fault:
            self.change_mp4_state(at, Mp4State.FAILED)
        state = EventState.COMPOSE_ERROR if fault else EventState.COMPOSE_WAITING
        self.change_state(at, state, trigger=Trigger.COMPOSE)

    @decision
    def remove_playlist(self, at: datetime, /) -> None:
        """Record that the playlist was removed. Its running job is cancelled in the same append. The film of an earlier playlist
        stays."""
        self._must_exist()
        if self._stop_composing(at=at) is not None:
            self._show_earlier_film(at=at)
        if self.details.state in COMPOSING:
            self.change_state(at, EventState.PRE_LIVE, trigger=Trigger.COMPOSE)

    @decision
    def sync_vod_metadata(self, at: datetime, /, file: VodFile, *, available: bool) -> None:
        """Adopt the metadata of the files. While a job makes the MP4, its state stays."""
        self._must_exist()
        check_has_metadata(self.details.state)
        self._change_vod_file(file, at=at)
        job = self.details.vod_job
        if job is None or job.ended is not None or self.details.mp4_state is not Mp4State.GENERATING:
            self.change_mp4_state(at, Mp4State.AVAILABLE if available else Mp4State.NONE)

    @decision
    def show_provisioning(self, at: datetime, /, provision: ProvisionSummary, *, must_exist: bool = False) -> None:
        """Show the state of the Provision Info, which changes in the same append. `must_exist` is set on behalf of clients, who
        cannot reach a deleted Event."""
        if must_exist:
            self._must_exist()
        if provision != self.details.provision:
            self._trigger(events.ProvisionStateChanged, at=at, provision=provision)

    @decision
    def reach_provision_time(self, at: datetime, /, scheduled_at: datetime, provision: ProvisionSummary | None = None) -> None:
        """Record that `scheduledProvisionAt`, as it was read then, has come. The schedule requests infrastructure once for each
        time, in the same append. `provision` is what the Event shows afterwards; None leaves it as before."""
        self._check_waits_for(scheduled_at, self.details.auto_provision_at)
        self._trigger(events.ProvisionTimeReached, at=at, provisioned_for=scheduled_at)
        if provision is not None:
            self.show_provisioning(at, provision, must_exist=True)

    @decision
    def reach_termination_time(self, at: datetime, /, scheduled_at: datetime, provision: ProvisionSummary | None = None) -> None:
        """Record that `scheduledTerminateAt`, as it was read then, has come (see `reach_provision_time`)."""
        self._check_waits_for(scheduled_at, self.details.auto_terminate_at)
        self._trigger(events.TerminationTimeReached, at=at, terminated_for=scheduled_at)
        if provision is not None:
            self.show_provisioning(at, provision, must_exist=True)

    @decision
    def force_notification(self, at: datetime, /) -> None:
        """Request a notification. This is always recorded, because each request is a separate notification."""
        self._must_exist()
        self._trigger(events.NotificationForced, at=at)

    @decision
    def delete(
        self,
        at: datetime,
        /,
        *,
        before: ProvisionSummary | None = None,
        after: ProvisionSummary | None = None,
        composing_job: int | None = None,
    ) -> None:
        """Delete the Event. Its infrastructure is terminated in the same append; that command was made when the Event showed
        `before`, and the Event then shows `after`. `composing_job`, which makes a film of its playlist, is also cancelled in the
        same append, and a restored Event does not start another one."""
        self._must_exist()
        if (self.details.provision, self.composing_job) != (before, composing_job):
            raise PlanOutdated(self.KIND, self.key)
        if after is not None:
            self.show_provisioning(at, after, must_exist=True)
        self._go_off_air(at=at)
        if (job := self._stop_composing(at=at)) is not None:
            self._settle_vod_job(job, at=at)
        if self.details.state in COMPOSING:
            self.change_state(at, EventState.COMPOSE_ERROR, trigger=Trigger.COMPOSE)
        self._trigger(events.EventDeleted, at=at)

    @decision(ignore_missing_links=True)
    def restore(self, at: datetime, /) -> None:
        """Restore a deleted Event. Its link targets may have been deleted."""
        deleted_at, job = self.details.date_deleted, self.details.vod_job
        if deleted_at is None:
            return
        self._trigger(events.EventRestored, at=at)
        if job is not None and job.ended_at is not None and job.ended_at >= deleted_at:
            self._settle_vod_job(job, at=at)

    @property
    def composing_job(self) -> int | None:
        """The job that makes a film of the playlist."""
        job = self.details.vod_job
        return job.number if job is not None and job.workflow is VodWorkflow.COMPOSE and job.ended is None else None

    @property
    def deleted(self) -> bool:
        return self.details.date_deleted is not None

    @property
    def _provisioning(self) -> bool:
        provision = self.details.provision
        return provision is not None and provision.state is ProvisionState.PROVISIONING

    def _must_exist(self) -> None:
        if self.deleted:
            raise NotFound(self.KIND, self.key)

    def _must_not_stream(self) -> None:
        if self.details.state in STREAMING or self.details.on_air_channel_id is not None:
            raise Refused("the Event is live: stop it before a film is made of its playlist")

    def _check_waits_for(self, scheduled_at: datetime, waits_for: datetime | None) -> None:
        if scheduled_at != waits_for:
            raise PlanOutdated(self.KIND, self.key)

    def must_not_be_deleted(self) -> None:
        """Raise `Conflict` for a deleted Event: an update with its id must not add a new one."""
        if self.deleted:
            raise Conflict(f"the Event {self.key} is deleted; restore it first")

    def _present_vod_job(self, number: int, version: int) -> VodJob | None:
        """Return the present job. Return None if it is another one, or if the Event has followed this outcome or a later one."""
        present = self.details.vod_job
        return present if present is not None and present.number == number and version > present.version else None

    def _begin_vod_job(self, job: VodJob, *, at: datetime, **captured: datetime) -> None:
        self._trigger(events.VodJobStarted, at=at, vod_job=job)
        if self.deleted:
            return
        if job.workflow is VodWorkflow.CAPTURE:
            self._change_capture({"capturing_live2_vod": True, **captured}, at=at)
        if job.workflow is not VodWorkflow.PACKAGE:  # which leaves the MP4 as it is
            self.change_mp4_state(at, Mp4State.GENERATING)
        if job.workflow is VodWorkflow.COMPOSE:
            self.change_state(at, EventState.COMPOSE_GENERATING, trigger=Trigger.COMPOSE)
        elif self._shows_recording(job, at=at):
            return
        elif self.details.state in BEFORE_VOD or self._is_given_a_film(job):
            self.change_state(at, EventState.VOD_INGESTING, trigger=Trigger.JOB)

    def _shows_recording(self, job: VodJob, *, at: datetime) -> bool:
        """Return True if the recorded stream is shown, or is about to be, while it is captured."""
        start = self.details.auto_instant_vod_at
        is_due = start is not None and start <= at
        return job.workflow is VodWorkflow.CAPTURE and (is_due or self.details.state is EventState.INSTANT_VOD)

    def _is_given_a_film(self, job: VodJob) -> bool:
        """Return True if a client publishes its own film in place of a live stream that never took place."""
        never_live = self.details.state is EventState.PRE_LIVE and self.details.actual_live_start is None
        return never_live and job.workflow is VodWorkflow.INGEST and job.publish is not None

    def _settle_vod_job(self, job: VodJob, *, at: datetime) -> None:
        """Show the end of the job. States that the job did not change stay."""
        self._change_capture({"capturing_live2_vod": False}, at=at)
        completed = job.ended is VodJobEnd.COMPLETED
        if completed and job.result is not None:
            self._take_over(job.result, at=at)
        if completed or job.workflow is not VodWorkflow.PACKAGE:
            self.change_mp4_state(at, Mp4State.AVAILABLE if completed else Mp4State.FAILED)
        if job.workflow is VodWorkflow.COMPOSE:
            self._settle_composed(job, at=at)
        elif self.details.state in BEFORE_VOD | {EventState.VOD_INGESTING} or (
            completed and self.details.state is EventState.INSTANT_VOD
        ):
            publish = self.details.auto_publish if job.publish is None else job.publish
            withheld = self.details.quality is not None and self.details.quality.withholds
            on_demand = EventState.VOD_PUBLIC if publish and not withheld else EventState.VOD_PRIVATE
            on_demand = self.details.public_or_private(on_demand, at=at)
            self.change_state(at, on_demand if completed else EventState.VOD_ERROR, trigger=Trigger.JOB)
        elif completed and job.workflow is not VodWorkflow.PACKAGE:
            self._withhold(at=at)

    def _note_quality(self, quality: Quality | None, *, at: datetime) -> bool:
        """Record the quality, and return True if it was not known before."""
        present = self.details.quality
        before = None if present is None else present.model_copy(update={"measured_at": None})
        if quality != before:
            measured = None if quality is None else quality.model_copy(update={"measured_at": max(at, self.modified_on)})
            self._trigger(events.QualityMeasured, at=at, quality=measured)
        return quality != before

    def _withhold(self, *, at: datetime) -> None:
        """Make a public film private if it must not be public."""
        if self.details.state is EventState.VOD_PUBLIC and self.details.quality is not None and self.details.quality.withholds:
            self.change_state(at, EventState.VOD_PRIVATE, trigger=Trigger.JOB)

    def _settle_composed(self, job: VodJob, *, at: datetime) -> None:
        if self.details.state is EventState.COMPOSE_GENERATING:
            made = EventState.COMPOSE_PUBLIC if job.publish else EventState.COMPOSE_PRIVATE
            made = self.details.public_or_private(made, at=at)
            state = made if job.ended is VodJobEnd.COMPLETED else EventState.COMPOSE_ERROR
            self.change_state(at, state, trigger=Trigger.COMPOSE)

    def _show_earlier_film(self, *, at: datetime) -> None:
        film = self.details.vod_file is not None
        self.change_mp4_state(at, Mp4State.AVAILABLE if film else Mp4State.NONE)

    def _stop_composing(self, *, reason: str = "the playlist was removed", at: datetime) -> VodJob | None:
        """End the job that makes a film of the playlist, and return it as it has ended; None if there is none."""
        present = self.details.vod_job
        if present is None or self.composing_job is None:
            return None
        stopped = {"ended": VodJobEnd.BROKEN, "ended_at": max(at, self.modified_on), "reason": reason}
        job = present.again(version=present.version, **stopped)
        self._trigger(events.VodJobEnded, at=at, vod_job=job)
        return job

    def _take_over(self, result: VodResult, *, at: datetime) -> None:
        """Adopt the result of a job. A thumbnail that a client chose stays."""
        if result.duration is not None or result.size is not None:
            self._change_vod_file(VodFile(duration=result.duration, size=result.size), at=at)
        changes = {} if result.drm_json is None else {"drm_json": result.drm_json}
        if result.thumbnail is not None and not self.details.thumbnail:
            changes["thumbnail"] = result.thumbnail
        self.amend(at, changes)

    def _change_capture(self, facts: Mapping[str, Any], *, at: datetime) -> None:
        changed = {name: value for name, value in facts.items() if value != getattr(self.details, name)}
        if changed:
            self._trigger(events.CapturingChanged, at=at, **changed)

    def _change_vod_file(self, file: VodFile, *, at: datetime) -> None:
        if file != self.details.vod_file:
            self._trigger(events.VodFileChanged, at=at, vod_file=file)

    # --- state

    def when(self, event: DomainEvent) -> None:
        applier = getattr(self, f"_when_{event.verb()}", None)
        if applier is not None:
            applier(event)
        if isinstance(event, events.EncodingEvent):
            return
        facts = event.facts()
        for note in _NOTES:
            facts.pop(note, None)
        self.details.__dict__.update(facts)

    def _when_state_changed(self, event: events.StateChanged) -> None:
        """Remember which times of the schedule are over. An Event that goes live after its scheduled end is meant to stay live. A
        new start, or another state than live, ends the wait for a channel."""
        if event.state not in LIVE or event.trigger in ENCODER_TRIGGERS:
            self._stop_waiting()
        details = self.details
        if event.trigger is Trigger.SCHEDULE and event.state in LIVE:
            details.started_for = details.scheduled_start
        ended = event.trigger is Trigger.SCHEDULE and event.state is EventState.STOPPED
        begins = event.trigger is Trigger.OPERATOR and event.state in STREAMING and details.state not in STREAMING
        if details.scheduled_end is not None and (ended or (begins and details.scheduled_end <= event.timestamp)):
            details.ended_for = details.scheduled_end
        details.settle_windows(event.state, event.previous, trigger=event.trigger, at=event.timestamp)

    def _when_registered(self, event: events.EventRegistered) -> None:
        self._open_window(event.facts())

    def _when_publication_window_changed(self, event: events.PublicationWindowChanged) -> None:
        self._open_window(event.facts())

    def _open_window(self, facts: Mapping[str, Any]) -> None:
        for name, bound in _WINDOW.items():
            if name in facts:
                setattr(self.details, bound, facts[name])

    def _when_force_stopped(self, event: events.ForceStopped) -> None:
        self.details.state = EventState.STOPPED
        self.details.public_since = None
        self._stop_waiting()

    def _when_deleted(self, event: events.EventDeleted) -> None:
        self.details.date_deleted = event.timestamp
        self._stop_waiting()

    def _when_restored(self, event: events.EventRestored) -> None:
        self.details.date_deleted = None
        self.details.count_as_done(until=event.timestamp)

    # --- links

    def links(self) -> frozenset[str]:
        """Return the records that must not be deleted; none for a deleted Event."""
        targets = () if self.deleted else links_of(self.details)
        return frozenset(f"{kind}:{key}" for kind, key in targets) if targets else NO_LINKS

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        return self.details.model_dump(mode="json", exclude_none=True)

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        self.details = EventDetails.model_validate(details)

    def in_progress(self) -> bool:
        """Return True while the Event is on the air, or has a job that makes its film."""
        return self._encoding.channel_id is not None or self.details.vod_job is not None

    @decision
    def take_channel(self, at: datetime, /) -> None:
        """Go on the air on the channel that the Event waits for, because another Event was on the air on it."""
        if (channel_id := self.details.awaited_channel_id) is not None:
            self._go_on_air(ChannelUse(channel_id), order=self._encoding.order, at=at)

    @decision
    def release_channel(self, at: datetime, /, channel_id: UUID) -> None:
        """Go off the air until the next order, whatever the state of the Event."""
        if self._encoding.channel_id == channel_id:
            self._go_off_air(at=at)

    @decision
    def record_encoder_start(self, at: datetime, /, session: int) -> None:
        """Record the start of a session. It is not recorded if the Event was stopped meanwhile: the session ends, and nothing
        starts after a stop."""
        if session > self._encoding.session and self._encoding.channel_id is not None:
            self._trigger(events.EncoderStarted, at=at, session=session)

    @decision
    def record_encoder_stop(self, at: datetime, /, session: int, *, reason: str = "") -> None:
        """Record the end of a session. `reason` is empty if the end was ordered."""
        if self._encoding.running and session == self._encoding.session:
            self._trigger(events.EncoderStopped, at=at, session=session, reason=reason)

    @decision
    def record_encoder_failure(self, at: datetime, /, version: int, *, session: int | None, reason: str) -> None:
        """Give the encoder up and free the channel for others. `version` is the version of the event that took it, because there
        may be a later order already."""
        encoding = self._encoding
        if encoding.channel_id is not None and encoding.version == version:
            self._trigger(events.EncoderFailed, at=at, session=session, reason=reason)
            self._trigger(events.ChannelReleased, at=at, channel_id=encoding.channel_id)

    @decision
    def record_audio_inputs(self, at: datetime, /, audio_inputs: Sequence[AudioInput]) -> None:
        new_inputs = tuple(audio_inputs)
        if self.details.date_deleted is None and new_inputs != (self.details.audio_inputs or ()):
            self._trigger(events.AudioInputsChanged, at=at, audio_inputs=new_inputs)

    @property
    def _encoding(self) -> Encoding:
        return self.details.encoding or _NO_ENCODING

    def _go_on_air(self, channel: ChannelUse, *, order: int, at: datetime) -> None:
        """Take the channel, as requested by the state change of version `order`, or record that another Event has it. If the Event
        is still on the air on a former channel, that one is released when it takes this one."""
        if channel.id != self.details.channel_id:
            raise PlanOutdated(self.KIND, self.key)
        if channel.id == self._encoding.channel_id:
            return
        if channel.holder is not None:
            self._trigger(events.ChannelRefused, at=at, channel_id=channel.id, holder=channel.holder, order=order)
            return
        self._go_off_air(at=at)
        self._trigger(events.ChannelTaken, at=at, channel_id=channel.id, order=order)

    def _go_off_air(self, *, at: datetime) -> None:
        """Release the channel in the append that stops the encoder, so that it is free for the next Event at once."""
        if (channel_id := self._encoding.channel_id) is not None:
            self._trigger(events.ChannelReleased, at=at, channel_id=channel_id)

    def _when_channel_refused(self, event: events.ChannelRefused) -> None:
        self._encode(order=event.order, waits_for=event.channel_id)

    def _when_channel_taken(self, event: events.ChannelTaken) -> None:
        self._encode(order=event.order, channel_id=event.channel_id, version=event.originator_version, waits_for=None)

    def _when_channel_released(self, event: events.ChannelReleased) -> None:
        self._encode(channel_id=None, version=0)

    def _when_encoder_started(self, event: events.EncoderStarted) -> None:
        self._encode(session=event.session, running=True)

    def _when_encoder_stopped(self, event: events.EncoderStopped) -> None:
        self._encode(running=False)

    def _when_encoder_failed(self, event: events.EncoderFailed) -> None:
        self._encode(running=False)

    def _encode(self, **facts: Any) -> None:
        self.details.encoding = self._encoding.model_copy(update=facts)

    def _stop_waiting(self) -> None:
        if self._encoding.waits_for is not None:
            self._encode(waits_for=None)

    def claims(self) -> frozenset[Claim]:
        channel_id = self.details.on_air_channel_id
        return NO_CLAIMS if channel_id is None else frozenset({Claim(ON_AIR, str(channel_id), self.id)})


events.EventRegistered.AGGREGATE = MediaEvent
