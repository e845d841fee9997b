"""Asset: a file of an Event that a client requested or a synchronisation found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, Self
from uuid import UUID

from domain.asset import events
from domain.asset.values import AssetState, AssetType, CaptionKind
from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.command import creation, decision
from domain.kernel.errors import NotFound, PlanOutdated, Refused
from domain.kernel.event import DomainEvent

PATH: Final = "asset.path"
"""The scope in which each asset claims its path."""
CAPTION: Final = "asset.caption"
"""The scope in which each caption that a client added claims its Event, language, kind and name."""


class Asset(AggregateRoot):
    """A file of an Event. The content of an Event has the Event's id.

    `job` is the present job, `jobs` are all that may have published the file, and `followed` is the latest version of the present
    job that the asset has followed. A removed asset keeps its path until its file is deleted.
    """

    KIND: ClassVar[str] = "asset"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS

    event_id: UUID
    type: AssetType
    name: str
    path: str
    state: AssetState

    def begin(self) -> None:
        self.jobs: tuple[int, ...] = ()
        self.language: str | None = None
        self.kind: CaptionKind | None = None
        self.followed = 0
        self.reason = ""
        self.size: int | None = None
        self.modified: datetime | None = None
        self.removed = False
        self.holds_path = True

    @property
    def job(self) -> int | None:
        return self.jobs[-1] if self.jobs else None

    @property
    def running_job(self) -> int | None:
        """The job that must be cancelled when the asset is removed."""
        return self.job if self.state is AssetState.GENERATING else None

    # --- decisions

    @creation
    @classmethod
    def request(cls, key: UUID, at: datetime, /, *, event_id: UUID, type: AssetType, name: str, path: str, job: int) -> Self:
        return cls._begin(events.AssetRequested, key, at, event_id=event_id, type=type, name=name, path=path, job=job)

    @creation
    @classmethod
    def request_caption(
        cls, key: UUID, at: datetime, /, *, event_id: UUID, name: str, path: str, language: str, kind: CaptionKind, job: int
    ) -> Self:
        facts = {"event_id": event_id, "name": name, "path": path, "language": language, "kind": kind, "job": job}
        return cls._begin(events.CaptionRequested, key, at, **facts)

    @creation
    @classmethod
    def discover(cls, key: UUID, at: datetime, /, *, event_id: UUID, name: str, path: str, size: int, modified: datetime) -> Self:
        return cls._begin(events.Discovered, key, at, event_id=event_id, name=name, path=path, size=size, modified=modified)

    @creation
    @classmethod
    def discover_caption(
        cls,
        key: UUID,
        at: datetime,
        /,
        *,
        event_id: UUID,
        name: str,
        path: str,
        language: str,
        kind: CaptionKind,
        size: int,
        modified: datetime,
    ) -> Self:
        facts = {"event_id": event_id, "name": name, "path": path, "language": language, "kind": kind}
        return cls._begin(events.CaptionDiscovered, key, at, **facts, size=size, modified=modified)

    @decision
    def complete(self, at: datetime, /, job: int, *, job_version: int, sizes: Mapping[str, int]) -> None:
        """Record that the job has ended. `sizes` has the sizes of the files that it published, by their paths."""
        if not self._is_news(job, job_version) or self.state is AssetState.COMPLETED:
            return
        if (size := sizes.get(self.path)) is None:
            self.fail(at, job, job_version=job_version, reason="the job has made another file")
        else:
            self._trigger(events.AssetCompleted, at=at, job_version=job_version, size=size)

    @decision
    def fail(self, at: datetime, /, job: int, *, job_version: int, reason: str) -> None:
        """Record that the job has failed. A completed asset has its file, whatever becomes of the job."""
        if self._is_news(job, job_version) and self.state is AssetState.GENERATING:
            self._trigger(events.AssetFailed, at=at, job_version=job_version, reason=reason)

    @decision
    def restart(self, at: datetime, /, job: int, *, job_version: int, rerun_of: int | None = None) -> None:
        """Record that the present job continues after its end, or that `job` repeats it and is the present one now. The append that
        accepts the job records this too."""
        if rerun_of is None:
            restarted = self._is_news(job, job_version) and self.state is not AssetState.GENERATING
        else:
            restarted = not self.removed and rerun_of == self.job != job
        if restarted:
            self._trigger(events.Restarted, at=at, job=job, job_version=job_version)

    @decision
    def resume(self, at: datetime, /, job: int, *, job_version: int, rerun_of: int | None = None) -> None:
        """Let a client resume the job, or repeat it by another one. Refuse what would make a second file, or one that is never
        deleted."""
        if self.removed or self.job != (job if rerun_of is None else rerun_of):
            raise Refused("the asset of the job was deleted, or another job makes it")
        self.restart(at, job, job_version=job_version, rerun_of=rerun_of)

    @decision
    def replace(self, at: datetime, /, job: int, *, running_job: int | None) -> None:
        """Let `job` make another text. `running_job` is the job that is cancelled in the same append. The previous text stays until
        there is a new one."""
        self._must_exist()
        if running_job != self.running_job:
            raise PlanOutdated(self.KIND, self.key)
        self._trigger(events.CaptionReplaced, at=at, job=job)

    @decision
    def rename(self, at: datetime, /, name: str) -> None:
        self._must_exist()
        if self.type is AssetType.CAPTION:
            raise Refused("a caption cannot be renamed: delete it, and send it again with the new name")
        if name != self.name:
            self._trigger(events.Renamed, at=at, name=name)

    @decision
    def change_file(self, at: datetime, /, *, size: int, modified: datetime, name: str | None = None) -> None:
        """Record that the file has changed. `name` is the name by which the film lists a caption now."""
        if not self.removed and (size, modified) != (self.size, self.modified):
            self._trigger(events.FileChanged, at=at, size=size, modified=modified)
        if not self.removed and name is not None and name != self.name:
            self._trigger(events.Renamed, at=at, name=name)

    @decision
    def remove(self, at: datetime, /, *, running_job: int | None) -> None:
        """Remove the asset. `running_job` is the job that is cancelled in the same append."""
        self._must_exist()
        if self.type is AssetType.SYSTEM:
            raise Refused("assets of the type SYSTEM cannot be deleted")
        if running_job != self.running_job:
            raise PlanOutdated(self.KIND, self.key)
        self._trigger(events.AssetRemoved, at=at, file_left=True)

    @decision
    def forget(self, at: datetime, /) -> None:
        """Remove the asset because its file no longer exists."""
        if not self.removed and self.state is AssetState.COMPLETED:
            self._trigger(events.AssetRemoved, at=at, file_left=False)

    @decision
    def release_path(self, at: datetime, /) -> None:
        """Release the path of a removed asset whose file is deleted."""
        if self.removed and self.holds_path:
            self._trigger(events.FileDeleted, at=at)

    def _must_exist(self) -> None:
        if self.removed:
            raise NotFound(self.KIND, self.key)

    def _is_news(self, job: int, job_version: int) -> bool:
        """Return True if the asset must follow this outcome of its job. Outcomes arrive in order, and each at least once."""
        return not self.removed and job == self.job and job_version > self.followed

    # --- state

    def _when_requested(self, event: events.AssetRequested) -> None:
        self.event_id, self.type, self.name, self.path = event.event_id, event.type, event.name, event.path
        self.state = AssetState.GENERATING
        self.jobs = (event.job,)

    def _when_caption_requested(self, event: events.CaptionRequested) -> None:
        self.event_id, self.type, self.name, self.path = event.event_id, AssetType.CAPTION, event.name, event.path
        self.language, self.kind = event.language, event.kind
        self.state = AssetState.GENERATING
        self.jobs = (event.job,)

    def _when_caption_replaced(self, event: events.CaptionReplaced) -> None:
        self.state, self.reason, self.followed = AssetState.GENERATING, "", 0
        self.jobs = (*self.jobs, event.job)

    def _when_discovered(self, event: events.Discovered) -> None:
        self.event_id, self.type, self.name, self.path = event.event_id, AssetType.SYSTEM, event.name, event.path
        self.state = AssetState.COMPLETED
        self.size, self.modified = event.size, event.modified

    def _when_caption_discovered(self, event: events.CaptionDiscovered) -> None:
        self.event_id, self.type, self.name, self.path = event.event_id, AssetType.CAPTION, event.name, event.path
        self.language, self.kind = event.language, event.kind
        self.state = AssetState.COMPLETED
        self.size, self.modified = event.size, event.modified

    def _when_completed(self, event: events.AssetCompleted) -> None:
        self.state, self.reason, self.size, self.followed = AssetState.COMPLETED, "", event.size, event.job_version

    def _when_failed(self, event: events.AssetFailed) -> None:
        self.state, self.reason, self.followed = AssetState.FAILED, event.reason, event.job_version

    def _when_restarted(self, event: events.Restarted) -> None:
        self.state, self.reason, self.followed = AssetState.GENERATING, "", event.job_version
        if event.job != self.job:
            self.jobs = (*self.jobs, event.job)

    def _when_renamed(self, event: events.Renamed) -> None:
        self.name = event.name

    def _when_file_changed(self, event: events.FileChanged) -> None:
        self.size, self.modified = event.size, event.modified

    def _when_removed(self, event: events.AssetRemoved) -> None:
        self.removed, self.holds_path = True, event.file_left

    def _when_file_deleted(self, event: events.FileDeleted) -> None:
        self.holds_path = False

    def claims(self) -> frozenset[Claim]:
        claims = {Claim(PATH, self.path, self.id)} if self.holds_path else set[Claim]()
        if self.type is AssetType.CAPTION and self.jobs and not self.removed:
            claims.add(Claim(CAPTION, f"{self.event_id}/{self.kind}/{self.language}/{self.name}", self.id))
        return frozenset(claims) if claims else NO_CLAIMS

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        return {
            "event_id": str(self.event_id),
            "type": int(self.type),
            "state": int(self.state),
            "language": self.language,
            "kind": self.kind,
            "modified": self.modified and self.modified.isoformat(),
            **{name: getattr(self, name) for name in _PLAIN},
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        for name in _PLAIN:
            setattr(self, name, details[name])
        self.event_id = UUID(details["event_id"])
        self.type, self.state = AssetType(details["type"]), AssetState(details["state"])
        self.language, kind = details.get("language"), details.get("kind")
        self.kind = None if kind is None else CaptionKind(kind)
        self.modified = details["modified"] and datetime.fromisoformat(details["modified"])
        self.jobs = tuple(self.jobs)


_PLAIN: Final = ("name", "path", "jobs", "followed", "reason", "size", "removed", "holds_path")
events.AssetRequested.AGGREGATE = Asset
events.CaptionRequested.AGGREGATE = Asset
events.Discovered.AGGREGATE = Asset
events.CaptionDiscovered.AGGREGATE = Asset
