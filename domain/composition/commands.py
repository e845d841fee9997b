"""Commands of compositions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.composition.aggregate import Composition
from domain.composition.values import CompositionKind, Playlist
from domain.kernel.command import Command


@dataclass(frozen=True)
class _CompositionCommand(Command[Composition]):
    key: UUID

    def kind(self) -> type[Composition]:
        return Composition


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """The first step for a new playlist of which a film is made. `job` makes the film, and is accepted in the same append.
    `awaits_sources` says that Events in the playlist do not have their films yet. `fault` is the reason for which no film is made.
    Without any of them the playlist waits for its time, or an encoder plays it."""

    job: int | None = None
    awaits_sources: bool = False
    fault: str = ""

    def take(self, root: Composition, *, at: datetime) -> None:
        if self.job is not None:
            root.start_generation(at, self.job)
        elif self.fault:
            root.fail_sources(at, self.fault)
        elif self.awaits_sources:
            root.await_sources(at)


@dataclass(frozen=True, kw_only=True)
class ComposePlaylist(_CompositionCommand):
    """Give an Event a playlist."""

    event_id: UUID
    composition: CompositionKind
    playlist: Playlist
    client: str
    private: bool = False
    live_stream_start: datetime | None = None
    generation: int = 0
    cloned_from: UUID | None = None
    step: FirstStep = FirstStep()

    @property
    def creates(self) -> bool:
        return True

    def decide(self, root: Composition | None, *, at: datetime) -> Composition:
        if root is not None:  # a key is made once, so this is a repeat of the same command
            return root
        made = Composition.compose(
            self.key,
            at,
            event_id=self.event_id,
            kind=self.composition,
            playlist=self.playlist,
            client=self.client,
            private=self.private,
            live_stream_start=self.live_stream_start,
            generation=self.generation,
            cloned_from=self.cloned_from,
        )
        self.step.take(made, at=at)
        return made


@dataclass(frozen=True, kw_only=True)
class _PlannedCommand(_CompositionCommand):
    """A command that follows a plan. `seen` is the version of the composition that the plan was made from."""

    seen: int


@dataclass(frozen=True, kw_only=True)
class ReplacePlaylist(_PlannedCommand):
    """Replace a playlist. If `cloned_from` is given, the new one is a copy of that Event's playlist."""

    playlist: Playlist
    client: str
    step: FirstStep = FirstStep()
    cloned_from: UUID | None = None

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_unchanged(self.seen)
        if self.cloned_from is None:
            root.replace(at, self.playlist, client=self.client)
        else:
            root.clone(at, self.cloned_from, self.playlist, client=self.client)
        self.step.take(root, at=at)


@dataclass(frozen=True, kw_only=True)
class TakeStep(_PlannedCommand):
    """Take a step for a playlist whose time has come or whose sources have changed."""

    step: FirstStep

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_unchanged(self.seen)
        self.step.take(root, at=at)


@dataclass(frozen=True, kw_only=True)
class GiveUpGeneration(_PlannedCommand):
    """End the generation because the Event is deleted. A running job is cancelled in the same append."""

    reason: str

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_unchanged(self.seen)
        root.give_up(at, self.reason)


@dataclass(frozen=True, kw_only=True)
class RemoveComposition(_PlannedCommand):
    """Remove a playlist. A running job is cancelled in the same append."""

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_unchanged(self.seen)
        root.remove(at)


@dataclass(frozen=True)
class CheckStandard(_CompositionCommand):
    """Refuse a playlist for an encoder. This changes nothing, because the requested change is one of the Event."""

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_standard()


@dataclass(frozen=True, kw_only=True)
class CompleteGeneration(_CompositionCommand):
    """Record that the job has ended."""

    job: int
    job_version: int

    def act(self, root: Composition, *, at: datetime) -> None:
        root.complete(at, self.job, job_version=self.job_version)


@dataclass(frozen=True, kw_only=True)
class FailGeneration(_CompositionCommand):
    """Record that the job has failed or was cancelled."""

    job: int
    job_version: int
    reason: str

    def act(self, root: Composition, *, at: datetime) -> None:
        root.fail(at, self.job, job_version=self.job_version, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class RestartGeneration(_CompositionCommand):
    """Record that the job continues after its end, or that it repeats the job `rerun_of`."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Composition, *, at: datetime) -> None:
        if self.rerun_of is None:
            root.resume(at, self.job, job_version=self.job_version)
        else:
            root.rerun(at, self.job, job_version=self.job_version, rerun_of=self.rerun_of)


@dataclass(frozen=True, kw_only=True)
class GoOnWithGeneration(_CompositionCommand):
    """Let a client resume the job, or repeat it by `job`, in the same append. `job_version` is the version of the job
    afterwards."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Composition, *, at: datetime) -> None:
        root.go_on(at, self.job, job_version=self.job_version, rerun_of=self.rerun_of)
