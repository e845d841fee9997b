"""Composition: the playlist of an Event, and the film that is made of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from domain.composition import events
from domain.composition.values import NO_STEP, CompositionKind, CompositionState, FirstStep, Playlist
from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.command import creation, decision
from domain.kernel.errors import NotFound, Refused
from domain.kernel.event import DomainEvent

EVENT: Final = "composition.event"
"""The scope in which each composition claims its Event."""


class Composition(AggregateRoot):
    """The playlist of an Event. `job` is the present or last job, `followed` the latest version of it that the composition has
    followed, and `generation` the number of its film. The fields of the Event that show this change in the same append."""

    KIND: ClassVar[str] = "composition"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS
    SNAPSHOT_VERSION: ClassVar[int] = 2

    event_id: UUID
    kind: CompositionKind
    playlist: Playlist
    private: bool
    client: str
    state: CompositionState

    def begin(self) -> None:
        self.live_stream_start: datetime | None = None
        self.job: int | None = None
        self.followed = 0
        self.generation = 0
        self.reason = ""
        self.removed = False
        self.awaits_sources = False

    @property
    def running_job(self) -> int | None:
        """The job that must be cancelled when another playlist arrives."""
        return self.job if self.state is CompositionState.GENERATING else None

    # --- decisions

    @creation
    @classmethod
    def compose(
        cls,
        key: UUID,
        at: datetime,
        /,
        *,
        event_id: UUID,
        kind: CompositionKind,
        playlist: Playlist,
        client: str,
        private: bool = False,
        live_stream_start: datetime | None = None,
        generation: int = 0,
        cloned_from: UUID | None = None,
        step: FirstStep = NO_STEP,
    ) -> Self:
        composed = cls._begin(
            events.Composed,
            key,
            at,
            event_id=event_id,
            kind=kind,
            playlist=playlist,
            client=client,
            private=private,
            live_stream_start=live_stream_start,
            generation=generation,
            cloned_from=cloned_from,
        )
        composed.take_step(at, step)
        return composed

    @decision
    def replace(
        self, at: datetime, /, playlist: Playlist, *, client: str, step: FirstStep = NO_STEP, cloned_from: UUID | None = None
    ) -> None:
        """Replace the playlist. If `cloned_from` is given, the new one is a copy of that Event's playlist."""
        self._must_exist()
        if cloned_from is not None:
            if playlist != self.playlist or self.live_stream_start is not None:
                self._trigger(events.Cloned, at=at, source_event_id=cloned_from, playlist=playlist, client=client)
        elif playlist != self.playlist:
            self._trigger(events.PlaylistReplaced, at=at, playlist=playlist, client=client)
        self.take_step(at, step)

    @decision
    def take_step(self, at: datetime, /, step: FirstStep) -> None:
        """Take the first step for a new playlist, or for one whose time has come or whose sources have changed."""
        if step.job is not None:
            self._start_generation(step.job, at=at)
        elif step.fault:
            self._fail_sources(step.fault, at=at)
        elif step.awaits_sources:
            self._await_sources(at=at)

    def _start_generation(self, job: int, *, at: datetime) -> None:
        """Record that a new job makes the film of the present playlist. The previous job is cancelled in the same append."""
        self._must_exist()
        if self.kind is not CompositionKind.STANDARD:
            raise Refused("an encoder plays this playlist; no film is made of it")
        self._trigger(events.GenerationStarted, at=at, job=job, generation=self.generation + 1)

    def _await_sources(self, *, at: datetime) -> None:
        """Wait until the Events in the playlist have their films. A running job is cancelled in the same append."""
        self._must_exist()
        if not self.awaits_sources:
            self._trigger(events.SourcesAwaited, at=at)

    def _fail_sources(self, reason: str, *, at: datetime) -> None:
        """Fail because an Event in the playlist gets no film. A running job is cancelled in the same append."""
        self._must_exist()
        self._trigger(events.GenerationFailed, at=at, reason=reason, job_version=self.followed)

    @decision
    def complete(self, at: datetime, /, job: int, *, job_version: int) -> None:
        if self._is_news(job, job_version) and self.state is not CompositionState.GENERATED:
            self._trigger(events.Generated, at=at, job_version=job_version)

    @decision
    def fail(self, at: datetime, /, job: int, *, job_version: int, reason: str) -> None:
        """Record that the job has failed. A generated film exists, whatever becomes of its job."""
        if self._is_news(job, job_version) and self.state is CompositionState.GENERATING:
            self._trigger(events.GenerationFailed, at=at, job_version=job_version, reason=reason)

    @decision
    def restart(self, at: datetime, /, job: int, *, job_version: int, rerun_of: int | None = None) -> None:
        """Record that the present job continues after its end, or that `job` repeats it and is the present one now."""
        if rerun_of is None:
            restarted = self._is_news(job, job_version) and self.state is not CompositionState.GENERATING
        else:
            restarted = not self.removed and rerun_of == self.job != job
        if restarted:
            self._trigger(events.GenerationStarted, at=at, job=job, job_version=job_version, generation=self.generation)

    @decision
    def resume(self, at: datetime, /, job: int, *, job_version: int, rerun_of: int | None = None) -> None:
        """Let a client resume the job, or repeat it by another one. Refuse the film of an earlier playlist."""
        if self.removed or self.job != (job if rerun_of is None else rerun_of):
            raise Refused("the playlist of the job was deleted, or another job makes its film")
        self.restart(at, job, job_version=job_version, rerun_of=rerun_of)

    @decision
    def give_up(self, at: datetime, /, reason: str) -> None:
        """End all generating and waiting. A running job is cancelled in the same append."""
        if not self.removed and self.state in (CompositionState.WAITING, CompositionState.GENERATING):
            self._trigger(events.GenerationFailed, at=at, reason=reason, job_version=self.followed)

    @decision
    def remove(self, at: datetime, /) -> None:
        """Remove the playlist. A running job is cancelled in the same append."""
        self._must_exist()
        self._trigger(events.CompositionRemoved, at=at)

    @decision
    def check_standard(self, at: datetime, /) -> None:
        """Refuse a playlist for an encoder. This changes nothing, because the requested change is one of the Event."""
        self._must_exist()
        if self.kind is not CompositionKind.STANDARD:
            raise Refused("the playlist is for an encoder")

    def _must_exist(self) -> None:
        if self.removed:
            raise NotFound(self.KIND, self.key)

    def _is_news(self, job: int, job_version: int) -> bool:
        """Return True if the composition must follow this outcome of its job. Outcomes arrive in order, and each at least once."""
        return not self.removed and job == self.job and job_version > self.followed

    # --- state

    def _when_composed(self, event: events.Composed) -> None:
        for name in ("event_id", "kind", "playlist", "private", "live_stream_start", "client", "generation"):
            setattr(self, name, getattr(event, name))
        standard = event.kind is CompositionKind.STANDARD
        self.state = CompositionState.WAITING if standard else CompositionState.READY

    def _when_playlist_replaced(self, event: events.PlaylistReplaced) -> None:
        self.playlist, self.client = event.playlist, event.client

    def _when_cloned(self, event: events.Cloned) -> None:
        self.playlist, self.client, self.live_stream_start = event.playlist, event.client, None

    def _when_sources_awaited(self, event: events.SourcesAwaited) -> None:
        self.state, self.reason, self.awaits_sources = CompositionState.WAITING, "", True

    def _when_generation_started(self, event: events.GenerationStarted) -> None:
        self.awaits_sources = False
        self.state, self.reason = CompositionState.GENERATING, ""
        self.job, self.followed, self.generation = event.job, event.job_version, event.generation

    def _when_generated(self, event: events.Generated) -> None:
        self.state, self.reason, self.followed = CompositionState.GENERATED, "", event.job_version

    def _when_generation_failed(self, event: events.GenerationFailed) -> None:
        self.state, self.reason, self.followed = CompositionState.FAILED, event.reason, event.job_version
        self.awaits_sources = False

    def _when_removed(self, event: events.CompositionRemoved) -> None:
        self.removed = True

    # --- references

    def claims(self) -> frozenset[Claim]:
        return NO_CLAIMS if self.removed else frozenset({Claim(EVENT, str(self.event_id), self.id)})

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "event_id": str(self.event_id),
            "kind": int(self.kind),
            "state": int(self.state),
            "live_stream_start": self.live_stream_start and self.live_stream_start.isoformat(),
            "playlist": self.playlist.model_dump(mode="json"),
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        for name in _PLAIN:
            setattr(self, name, details[name])
        self.event_id = UUID(details["event_id"])
        self.kind, self.state = CompositionKind(details["kind"]), CompositionState(details["state"])
        start = details["live_stream_start"]
        self.live_stream_start = start and datetime.fromisoformat(start)
        self.playlist = Playlist.model_validate(details["playlist"])


_PLAIN: Final = ("private", "client", "job", "followed", "generation", "reason", "removed", "awaits_sources")
events.Composed.AGGREGATE = Composition
