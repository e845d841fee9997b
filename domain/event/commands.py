"""The commands of media Events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.event.checks import check
from domain.event.values import (
    EventState,
    Mp4State,
    Trigger,
    VodWorkflow,
)
from domain.kernel.command import Command
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from domain.kernel.ids import new_id


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
            root = MediaEvent.register(self.key, at, self.changes)
        else:
            root.must_not_be_deleted()
            root.amend(at, self.changes)
        _set_states(root, self.state, self.mp4_state, trigger=self.trigger, at=at)
        return root


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
    """PATCH /event/{id}, POST /event/stream/dvrwindowlength/{id} and POST /event/flow/add/: all steps apply, or none."""

    steps: tuple[Expectation | Replacement, ...] = field(default=())
    trigger: Trigger = Trigger.METADATA

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
        root.amend(at, changes)
        _set_states(root, state, mp4_state, trigger=self.trigger, at=at)


def _set_states(root: MediaEvent, state: EventState | None, mp4_state: Mp4State | None, *, trigger: Trigger, at: datetime) -> None:
    if state is not None:
        root.change_state(at, state, trigger=trigger)
    if mp4_state is not None:
        root.change_mp4_state(at, mp4_state)


def flow_task(
    key: UUID | None, task_engine_json: str, *, state: EventState | None = None, mp4_state: Mp4State | None = None
) -> Command[MediaEvent]:
    """Return the command that sets the flow task of an Event or, without a key, adds an Event with the task."""
    if key is None:
        task = {"task_engine_json": task_engine_json}
        return AddOrUpdateEvent(new_id(), task, state=state, mp4_state=mp4_state, trigger=Trigger.FLOW, new=True)
    changes = {"task_engine_json": task_engine_json, "state": state, "mp4_state": mp4_state}
    steps = tuple(Replacement(name, value) for name, value in changes.items() if value is not None)
    return AmendEvent(key, steps, trigger=Trigger.FLOW)


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
            root.wait_to_compose(at, fault=self.fault)
            return
        root.start_vod_job(at, self.job, VodWorkflow.COMPOSE, publish=self.publish, rerun_of=self.replaces)
