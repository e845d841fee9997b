"""The live stream of a publication, as a part of the aggregate: it is started, pushed, stopped and recreated."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from domain.publication import events
from domain.publication.values import PublicationKind, PublicationState


class StreamedPublication(AggregateRoot):
    """The live stream of a publication. `run` is the version of the event that started the present push, 0 before the first one;
    `served_by` is the channel whose streaming server pushes it, if one does. `arrived` says that the target had the stream once.
    `open` says that the target has yet to be notified of its end. `creations` counts the recreations. `start_awaited` says that
    it starts when its Event goes live."""

    kind: PublicationKind
    state: PublicationState
    destination_id: UUID
    withdrawn: bool

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

    # --- decisions

    def start(self, details: dict[str, Any] | None, *, served_by: UUID | None = None, at: datetime) -> None:
        """Start the push. A publication that is InProgress continues; one that has ended must be recreated first."""
        self._must_stream()
        if self.state is PublicationState.InProgress:
            return
        if self.state is not PublicationState.Scheduled:
            raise Refused(f"the publication is {self.state.name}; recreate it first")
        self._trigger(events.Started, at=at, details=details, **({} if served_by is None else {"served_by": served_by}))

    def await_start(self, *, at: datetime) -> None:
        """Start when the Event goes live. Refuses what `start` refuses."""
        self._must_stream()
        if self.state not in (PublicationState.InProgress, PublicationState.Scheduled):
            raise Refused(f"the publication is {self.state.name}; recreate it first")
        if self.state is PublicationState.Scheduled and not self.start_awaited:
            self._trigger(events.StartAwaited, at=at)

    def fail_start(self, state: PublicationState, reason: str, *, at: datetime) -> None:
        """Record that the target or the streaming server refused the start."""
        self._must_stream()
        if self.state is not PublicationState.Scheduled:
            raise PlanOutdated(self.KIND, self.key)
        self._trigger(events.Failed, at=at, state=state, reason=reason)

    def arrive(self, run: int, *, details: dict[str, Any], at: datetime) -> None:
        """Record that the push `run` has reached the target. A push that was stopped meanwhile is ignored."""
        if self._is_run(run) and not (self.arrived and details == self.details):
            self._trigger(events.Arrived, at=at, details=details)

    def fail_push(self, run: int, *, state: PublicationState, reason: str, at: datetime) -> None:
        """Record that the push is given up."""
        if self._is_run(run):
            self._trigger(events.Failed, at=at, state=state, reason=reason)

    def stop(self, reason: str, *, at: datetime) -> None:
        """Stop the push. A publication that waits for its Event stops waiting; any other that is not being pushed stays as it
        is."""
        self._must_stream()
        if self.state is PublicationState.InProgress:
            self._trigger(events.Stopped, at=at, reason=reason)
        elif self.start_awaited:
            self._trigger(events.StartAwaited, at=at, awaited=False)

    def recreate(self, closing: str | None, *, at: datetime) -> None:
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

    def close_target(self, fault: str, *, at: datetime) -> None:
        """Record that the target was closed, unless the push continues or was started again meanwhile."""
        if self.open and (self.withdrawn or self.state is not PublicationState.InProgress):
            self._trigger(events.TargetClosed, at=at, fault=fault)

    def _must_stream(self) -> None:
        if self.withdrawn or self.kind is not PublicationKind.LIVE:
            raise NotFound(self.KIND, self.key)

    def _is_run(self, run: int) -> bool:
        return not self.withdrawn and self.state is PublicationState.InProgress and run == self.run

    # --- state

    def _when_started(self, event: events.Started) -> None:
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
