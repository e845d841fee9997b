"""Publication: a content at a destination, from the request to its removal."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from domain.destination.targets import Target
from domain.kernel.aggregate import NO_CLAIMS, NO_LINKS, NO_SECRETS, AggregateRoot, Claim
from domain.kernel.command import creation, decision
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from domain.kernel.event import DomainEvent
from domain.kernel.named_callback import callback_scope
from domain.publication import events
from domain.publication.values import RUNNING, PublicationKind, PublicationState, PublicationText

_DESTINATION: Final = "destination"


class Publication(AggregateRoot):
    """A publication. `jobs` are all that may have published it, the last of which is the present one; `followed` is the latest
    version of that job which the publication has followed. While the publication is running, and until the target knows of the
    end of a live stream, it links to its destination, which then cannot be deleted.

    `run` is the version of the event that started the present push, 0 before the first one; `served_by` is the channel whose
    streaming server pushes, if one does. `arrived` is True once the target has received the stream; `open` is True until the target
    knows that the stream has ended. `creations` counts how often the publication was created anew. `start_awaited` is True if the
    publication starts when its Event goes live.
    """

    KIND: ClassVar[str] = "publication"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS
    SNAPSHOT_VERSION: ClassVar[int] = 3

    kind: PublicationKind
    state: PublicationState
    destination_id: UUID
    withdrawn: bool

    content_id: str
    target: Target
    transaction_id: UUID
    client: str
    text: PublicationText

    def begin(self) -> None:
        self.audio_input_id: str | None = None
        self.run = 0
        self.served_by: UUID | None = None
        self.arrived = False
        self.open = False
        self.creations = 0
        self.start_awaited = False
        self.reason = ""
        self.details: dict[str, Any] | None = None
        self.started: datetime | None = None
        self.completed: datetime | None = None
        self.jobs: tuple[int, ...] = ()
        self.followed = 0
        self.published = False
        self.withdrawn = False
        self.target_left = False

    @property
    def job(self) -> int | None:
        return self.jobs[-1] if self.jobs else None

    @property
    def running_job(self) -> int | None:
        """The job that must be cancelled when the publication is withdrawn."""
        return self.job if self.state is PublicationState.Processing else None

    # --- decisions

    @creation
    @classmethod
    def schedule(
        cls,
        key: UUID,
        at: datetime,
        /,
        *,
        kind: PublicationKind,
        content_id: str,
        destination_id: UUID,
        target: Target,
        transaction_id: UUID,
        client: str,
        text: PublicationText,
        audio_input_id: str | None = None,
        job: int | None = None,
        fault: tuple[PublicationState, str] | None = None,
    ) -> Self:
        """Schedule a publication. `job` publishes it, and is accepted in the same append; with `fault` it fails at once."""
        scheduled = cls._begin(
            events.PublicationScheduled,
            key,
            at,
            kind=kind,
            content_id=content_id,
            destination_id=destination_id,
            target=target,
            transaction_id=transaction_id,
            client=client,
            text=text,
            **({} if audio_input_id is None else {"audio_input_id": audio_input_id}),
        )
        if job is not None:
            scheduled._trigger(events.Processed, at=at, job=job)
        if fault is not None:
            scheduled._fail(*fault, at=at)
        return scheduled

    @decision
    def complete(self, at: datetime, /, job: int, *, job_version: int, details: dict[str, Any]) -> None:
        if self._is_news(job, job_version) and self.state is not PublicationState.Completed:
            self._trigger(events.PublicationCompleted, at=at, job_version=job_version, details=details)

    def _fail(self, state: PublicationState, reason: str, *, at: datetime) -> None:
        """Fail without a job, or in spite of its job's success: for a destination that is not active, or an update that the
        target refuses."""
        if not self.withdrawn and (self.state, self.reason) != (state, reason):
            self._trigger(events.PublicationFailed, at=at, state=state, reason=reason, job_version=self.followed)

    @decision
    def fail_job(self, at: datetime, /, job: int, *, job_version: int, state: PublicationState, reason: str) -> None:
        """Record that the job has failed. A completed publication is at its target, whatever becomes of the job."""
        if self._is_news(job, job_version) and self.state is PublicationState.Processing:
            self._trigger(events.PublicationFailed, at=at, state=state, reason=reason, job_version=job_version)

    @decision
    def restart(self, at: datetime, /, job: int, *, job_version: int, rerun_of: int | None = None) -> None:
        """Record that the present job continues after its end, or that `job` repeats it and is the present one now."""
        if rerun_of is None:
            restarted = self._is_news(job, job_version) and self.state is not PublicationState.Processing
        else:
            restarted = not self.withdrawn and rerun_of == self.job != job
        if restarted:
            self._trigger(events.Processed, at=at, job=job, job_version=job_version)

    @decision
    def resume(self, at: datetime, /, job: int, *, job_version: int, rerun_of: int | None = None) -> None:
        """Let a client resume the job, or repeat it by another one. Refuse a job that the publication would not follow."""
        if self.withdrawn or self.job != (job if rerun_of is None else rerun_of):
            raise Refused("the publication of the job was deleted, or another job publishes it")
        self.restart(at, job, job_version=job_version, rerun_of=rerun_of)

    @decision
    def show(self, at: datetime, /, published: bool) -> None:
        """Record that the target has made the content public, or private."""
        self._must_exist()
        if published != self.published:
            self._trigger(events.PublicationPublished if published else events.Unpublished, at=at)

    @decision
    def amend(self, at: datetime, /, text: PublicationText, *, still: PublicationText, refusal: str | None = None) -> None:
        """Change the text. `still` is the text that the command was made from. `refusal` is the target's reason for refusing the
        new text."""
        if self.text != still:
            raise PlanOutdated(self.KIND, self.key)
        self._must_exist()
        if text != self.text:
            self._trigger(events.Amended, at=at, text=text)
        if refusal is not None:
            self._fail(PublicationState.FailedPublication, refusal, at=at)

    @decision
    def withdraw(self, at: datetime, /, *, hard: bool, running_job: int | None) -> None:
        """Withdraw the publication. `running_job` is the job that is cancelled in the same append. Whatever it still brings to
        the target is removed later, and so is a live stream whose end the target does not know yet."""
        self._must_exist()
        if running_job != self.running_job:
            raise PlanOutdated(self.KIND, self.key)
        remains = hard and (running_job is not None or self.open)
        self._trigger(events.Withdrawn, at=at, hard=hard, target_left=remains, **({"open": True} if self.open else {}))

    @decision
    def clear_target(self, at: datetime, /) -> None:
        if self.target_left:
            self._trigger(events.TargetCleared, at=at)

    def _must_exist(self) -> None:
        if self.withdrawn:
            raise NotFound(self.KIND, self.key)

    def _is_news(self, job: int, job_version: int) -> bool:
        """Return True if the publication must follow this outcome of its job. Outcomes arrive in order, and each at least once."""
        return not self.withdrawn and job == self.job and job_version > self.followed

    # --- state

    def _when_scheduled(self, event: events.PublicationScheduled) -> None:
        for name in _SCHEDULED:
            setattr(self, name, getattr(event, name))
        self.state = PublicationState.Processing if event.kind is PublicationKind.VOD else PublicationState.Scheduled

    def _when_processed(self, event: events.Processed) -> None:
        self.state, self.reason, self.followed = PublicationState.Processing, "", event.job_version
        self.started, self.completed = event.timestamp, None
        if event.job != self.job:
            self.jobs = (*self.jobs, event.job)

    def _when_completed(self, event: events.PublicationCompleted) -> None:
        self.state, self.reason, self.followed = PublicationState.Completed, "", event.job_version
        self.details, self.completed = event.details, event.timestamp

    def _when_failed(self, event: events.PublicationFailed) -> None:
        self.state, self.reason, self.followed = event.state, event.reason, event.job_version
        self.start_awaited = False

    def _when_published(self, event: events.PublicationPublished) -> None:
        self.published = True

    def _when_unpublished(self, event: events.Unpublished) -> None:
        self.published = False

    def _when_amended(self, event: events.Amended) -> None:
        self.text = event.text

    def _when_withdrawn(self, event: events.Withdrawn) -> None:
        self.withdrawn, self.target_left = True, event.target_left

    def _when_target_cleared(self, event: events.TargetCleared) -> None:
        self.target_left = False

    # --- references

    def links(self) -> frozenset[str]:
        holds = self.open or (self.target_left if self.withdrawn else self.state in RUNNING)
        return frozenset({f"{_DESTINATION}:{self.destination_id}"}) if holds else NO_LINKS

    def claims(self) -> frozenset[Claim]:
        """Claim the callbacks as long as there may be a change to report to them."""
        if self.withdrawn:
            return NO_CLAIMS
        return frozenset(Claim(callback_scope(callback.id), str(self.key), self.id) for callback in self.text.callbacks)

    def secrets(self) -> frozenset[UUID]:
        if self.withdrawn and not (self.target_left or self.open):
            return NO_SECRETS
        sealed = [callback.sealed_url for callback in self.text.callbacks if callback.sealed_url is not None]
        return frozenset(ref.reference for ref in (*self.text.secrets.values(), *sealed))

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: int(getattr(self, name)) for name in ("kind", "target", "state")},
            **{name: str(getattr(self, name)) for name in ("destination_id", "transaction_id")},
            "served_by": self.served_by and str(self.served_by),
            **{name: (moment := getattr(self, name)) and moment.isoformat() for name in ("started", "completed")},
            "text": self.text.model_dump(mode="json"),
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        for name in _PLAIN:
            setattr(self, name, details[name])
        self.jobs = tuple(self.jobs)
        self.kind, self.target = PublicationKind(details["kind"]), Target(details["target"])
        self.state = PublicationState(details["state"])
        self.destination_id, self.transaction_id = UUID(details["destination_id"]), UUID(details["transaction_id"])
        self.started, self.completed = (
            moment and datetime.fromisoformat(moment) for moment in (details["started"], details["completed"])
        )
        self.served_by = details["served_by"] and UUID(details["served_by"])
        self.text = PublicationText.model_validate(details["text"])

    @decision
    def start(self, at: datetime, /, details: dict[str, Any] | None, *, served_by: UUID | None = None) -> None:
        """Start the push. A publication that is InProgress continues; one that has ended must be recreated first."""
        self._must_stream()
        if self.state is PublicationState.InProgress:
            return
        if self.state is not PublicationState.Scheduled:
            raise Refused(f"the publication is {self.state.name}; recreate it first")
        self._trigger(events.PublicationStarted, at=at, details=details, **({} if served_by is None else {"served_by": served_by}))

    @decision
    def await_start(self, at: datetime, /) -> None:
        """Start when the Event goes live. Refuses what `start` refuses."""
        self._must_stream()
        if self.state not in (PublicationState.InProgress, PublicationState.Scheduled):
            raise Refused(f"the publication is {self.state.name}; recreate it first")
        if self.state is PublicationState.Scheduled and not self.start_awaited:
            self._trigger(events.StartAwaited, at=at)

    @decision
    def fail_start(self, at: datetime, /, state: PublicationState, reason: str) -> None:
        """Record that the target or the streaming server refused the start."""
        self._must_stream()
        if self.state is not PublicationState.Scheduled:
            raise PlanOutdated(self.KIND, self.key)
        self._trigger(events.PublicationFailed, at=at, state=state, reason=reason)

    @decision
    def arrive(self, at: datetime, /, run: int, *, details: dict[str, Any]) -> None:
        """Record that the push `run` has reached the target. A push that was stopped meanwhile is ignored."""
        if self._is_run(run) and not (self.arrived and details == self.details):
            self._trigger(events.Arrived, at=at, details=details)

    @decision
    def fail_push(self, at: datetime, /, run: int, *, state: PublicationState, reason: str) -> None:
        """Record that the push is given up."""
        if self._is_run(run):
            self._trigger(events.PublicationFailed, at=at, state=state, reason=reason)

    @decision
    def stop(self, at: datetime, /, reason: str = "") -> None:
        """Stop the push. A publication that waits for its Event stops waiting; any other that is not being pushed stays as it
        is."""
        self._must_stream()
        if self.state is PublicationState.InProgress:
            self._trigger(events.Stopped, at=at, reason=reason)
        elif self.start_awaited:
            self._trigger(events.StartAwaited, at=at, awaited=False)

    @decision
    def recreate(self, at: datetime, /, closing: str | None = None) -> None:
        """Start over. `closing` is the error of notifying the target of the end of the stream, or empty; None means that the
        target was not notified."""
        self._must_stream()
        if self.state is PublicationState.InProgress:
            raise Refused("the publication is InProgress; stop it first")
        if self.open:
            if closing is None:
                raise PlanOutdated(self.KIND, self.key)
            self._trigger(events.TargetClosed, at=at, fault=closing)
        if self.state is not PublicationState.Scheduled or self.details is not None or self.start_awaited:
            self._trigger(events.Recreated, at=at)

    @decision
    def close_target(self, at: datetime, /, fault: str = "") -> None:
        """Record that the target was closed, unless the push continues or was started again meanwhile."""
        if self.open and (self.withdrawn or self.state is not PublicationState.InProgress):
            self._trigger(events.TargetClosed, at=at, fault=fault)

    def _must_stream(self) -> None:
        if self.withdrawn or self.kind is not PublicationKind.LIVE:
            raise NotFound(self.KIND, self.key)

    def _is_run(self, run: int) -> bool:
        return not self.withdrawn and self.state is PublicationState.InProgress and run == self.run

    def _when_started(self, event: events.PublicationStarted) -> None:
        self.state, self.reason, self.details = PublicationState.InProgress, "", event.details
        self.run, self.open, self.arrived = event.originator_version, True, False
        self.started, self.completed, self.served_by = event.timestamp, None, event.served_by
        self.start_awaited = False

    def _when_arrived(self, event: events.Arrived) -> None:
        self.arrived, self.details = True, event.details

    def _when_stopped(self, event: events.Stopped) -> None:
        self.state, self.reason, self.completed = PublicationState.Completed, event.reason, event.timestamp

    def _when_start_awaited(self, event: events.StartAwaited) -> None:
        self.start_awaited = event.awaited

    def _when_recreated(self, event: events.Recreated) -> None:
        self.state, self.reason, self.details = PublicationState.Scheduled, "", None
        self.started = self.completed = None
        self.arrived = self.start_awaited = False
        self.creations += 1

    def _when_target_closed(self, event: events.TargetClosed) -> None:
        self.open = False


_SCHEDULED: Final = ("kind", "content_id", "destination_id", "target", "transaction_id", "client", "text", "audio_input_id")
_UPLOADED: Final = ("content_id", "client", "jobs", "followed", "reason", "details", "published", "withdrawn", "target_left")
_PLAIN: Final = (*_UPLOADED, "audio_input_id", "run", "arrived", "open", "creations", "start_awaited")
events.PublicationScheduled.AGGREGATE = Publication
