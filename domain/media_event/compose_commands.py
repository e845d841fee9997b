"""Commands of Events that have a playlist: docs/reference/api/compositions.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.kernel.command import Command
from domain.kernel.errors import Malformed, PlanOutdated
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import AddOrUpdateEvent
from domain.media_event.values import VodJob, VodWorkflow


@dataclass(frozen=True)
class _EventCommand(Command[MediaEvent]):
    key: UUID

    def kind(self) -> type[MediaEvent]:
        return MediaEvent


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
