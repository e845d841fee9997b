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
    """What is done with a new playlist of which a film is made. `job` makes the film, and is accepted in the same append.
    `awaits_sources`: Events that it shows are still to get their films. `fault`: why no film is made. Without any of them it waits
    for its time, or an encoder plays it."""

    job: int | None = None
    awaits_sources: bool = False
    fault: str = ""

    def take(self, root: Composition, *, at: datetime) -> None:
        if self.job is not None:
            root.start_generation(self.job, at=at)
        elif self.fault:
            root.fail_sources(self.fault, at=at)
        elif self.awaits_sources:
            root.await_sources(at=at)


@dataclass(frozen=True, kw_only=True)
class ComposePlaylist(_CompositionCommand):
    """The Event gets a playlist."""

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
            event_id=self.event_id,
            kind=self.composition,
            playlist=self.playlist,
            client=self.client,
            private=self.private,
            live_stream_start=self.live_stream_start,
            generation=self.generation,
            cloned_from=self.cloned_from,
            at=at,
        )
        self.step.take(made, at=at)
        return made


@dataclass(frozen=True, kw_only=True)
class _PlannedCommand(_CompositionCommand):
    """`seen` is the version of the composition that the plan was made from."""

    seen: int


@dataclass(frozen=True, kw_only=True)
class ReplacePlaylist(_PlannedCommand):
    """It is a copy of the playlist of the Event `cloned_from`, if that is given."""

    playlist: Playlist
    client: str
    step: FirstStep = FirstStep()
    cloned_from: UUID | None = None

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_seen(self.seen)
        if self.cloned_from is None:
            root.replace(self.playlist, client=self.client, at=at)
        else:
            root.clone(self.cloned_from, self.playlist, client=self.client, at=at)
        self.step.take(root, at=at)


@dataclass(frozen=True, kw_only=True)
class TakeStep(_PlannedCommand):
    """Its time has come, or its sources have changed."""

    step: FirstStep

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_seen(self.seen)
        self.step.take(root, at=at)


@dataclass(frozen=True, kw_only=True)
class GiveUpGeneration(_PlannedCommand):
    """The Event is deleted. A running job is broken off in the same append."""

    reason: str

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_seen(self.seen)
        root.give_up(self.reason, at=at)


@dataclass(frozen=True, kw_only=True)
class RemoveComposition(_PlannedCommand):
    """A running job is broken off in the same append."""

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_seen(self.seen)
        root.remove(at=at)


@dataclass(frozen=True)
class CheckStandard(_CompositionCommand):
    """Refuses a playlist for an encoder. Changes nothing: what is asked for changes the Event."""

    def act(self, root: Composition, *, at: datetime) -> None:
        root.check_standard()


@dataclass(frozen=True, kw_only=True)
class CompleteGeneration(_CompositionCommand):
    """The job has ended."""

    job: int
    job_version: int

    def act(self, root: Composition, *, at: datetime) -> None:
        root.complete(self.job, job_version=self.job_version, at=at)


@dataclass(frozen=True, kw_only=True)
class FailGeneration(_CompositionCommand):
    """The job has failed, or was broken off."""

    job: int
    job_version: int
    reason: str

    def act(self, root: Composition, *, at: datetime) -> None:
        root.fail(self.job, job_version=self.job_version, reason=self.reason, at=at)


@dataclass(frozen=True, kw_only=True)
class RestartGeneration(_CompositionCommand):
    """The job goes on after its end; with `rerun_of` it repeats that one."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Composition, *, at: datetime) -> None:
        if self.rerun_of is None:
            root.resume(self.job, job_version=self.job_version, at=at)
        else:
            root.rerun(self.job, job_version=self.job_version, rerun_of=self.rerun_of, at=at)


@dataclass(frozen=True, kw_only=True)
class GoOnWithGeneration(_CompositionCommand):
    """A client has the job resumed, or repeated by `job`: in the same append. `job_version` is that of the job afterwards."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Composition, *, at: datetime) -> None:
        root.go_on(self.job, job_version=self.job_version, rerun_of=self.rerun_of, at=at)
