"""Commands of assets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.asset.aggregate import Asset
from domain.asset.values import AssetType, CaptionKind
from domain.kernel.command import Command
from domain.kernel.errors import NotFound, PlanOutdated


@dataclass(frozen=True)
class _AssetCommand(Command[Asset]):
    key: UUID

    def kind(self) -> type[Asset]:
        return Asset


@dataclass(frozen=True)
class _NewAssetCommand(_AssetCommand):
    """A command that creates an asset. A key is made once, so an existing asset is the result of the same command."""

    @property
    def creates(self) -> bool:
        return True

    def decide(self, root: Asset | None, *, at: datetime) -> Asset:
        return self._create(at=at) if root is None else root

    def _create(self, *, at: datetime) -> Asset:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class RequestAsset(_NewAssetCommand):
    """Request an asset from a job, which is accepted in the same append."""

    event_id: UUID
    type: AssetType
    name: str
    path: str
    job: int

    def _create(self, *, at: datetime) -> Asset:
        return Asset.request(self.key, at, event_id=self.event_id, type=self.type, name=self.name, path=self.path, job=self.job)


@dataclass(frozen=True, kw_only=True)
class RequestCaption(_NewAssetCommand):
    """Request a caption from a job, which is accepted in the same append."""

    event_id: UUID
    name: str
    path: str
    language: str
    caption_kind: CaptionKind
    job: int

    def _create(self, *, at: datetime) -> Asset:
        return Asset.request_caption(
            self.key,
            at,
            event_id=self.event_id,
            name=self.name,
            path=self.path,
            language=self.language,
            kind=self.caption_kind,
            job=self.job,
        )


@dataclass(frozen=True, kw_only=True)
class ReplaceCaption(_AssetCommand):
    """Replace a caption by the text that `job` makes. `job` is accepted and `running_job` cancelled in the same append. The plan
    has found the caption, so if it no longer exists, the plan must be made again."""

    job: int
    running_job: int | None

    def act(self, root: Asset, *, at: datetime) -> None:
        try:
            root.replace(at, self.job, running_job=self.running_job)
        except NotFound:
            raise PlanOutdated(root.KIND, root.key) from None


@dataclass(frozen=True, kw_only=True)
class DiscoverAsset(_NewAssetCommand):
    """Add an asset for a file that belongs to none."""

    event_id: UUID
    name: str
    path: str
    size: int
    modified: datetime

    def _create(self, *, at: datetime) -> Asset:
        return Asset.discover(
            self.key, at, event_id=self.event_id, name=self.name, path=self.path, size=self.size, modified=self.modified
        )


@dataclass(frozen=True, kw_only=True)
class DiscoverCaption(_NewAssetCommand):
    """Add a caption for a text track of the film's source that belongs to no asset."""

    event_id: UUID
    name: str
    path: str
    language: str
    caption_kind: CaptionKind
    size: int
    modified: datetime

    def _create(self, *, at: datetime) -> Asset:
        return Asset.discover_caption(
            self.key,
            at,
            event_id=self.event_id,
            name=self.name,
            path=self.path,
            language=self.language,
            kind=self.caption_kind,
            size=self.size,
            modified=self.modified,
        )


@dataclass(frozen=True, kw_only=True)
class CompleteAsset(_AssetCommand):
    """Record that the job has ended. `sizes` holds the sizes of the files that it published, by their paths."""

    job: int
    job_version: int
    sizes: dict[str, int]

    def act(self, root: Asset, *, at: datetime) -> None:
        root.complete(at, self.job, job_version=self.job_version, size=self.sizes.get(root.path))


@dataclass(frozen=True, kw_only=True)
class FailAsset(_AssetCommand):
    """Record that the job has failed or was cancelled."""

    job: int
    job_version: int
    reason: str

    def act(self, root: Asset, *, at: datetime) -> None:
        root.fail(at, self.job, job_version=self.job_version, reason=self.reason)


@dataclass(frozen=True, kw_only=True)
class RestartAsset(_AssetCommand):
    """Record that the job continues after its end, or that it repeats the job `rerun_of`."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Asset, *, at: datetime) -> None:
        if self.rerun_of is None:
            root.resume(at, self.job, job_version=self.job_version)
        else:
            root.rerun(at, self.job, job_version=self.job_version, rerun_of=self.rerun_of)


@dataclass(frozen=True, kw_only=True)
class GoOnWithAsset(_AssetCommand):
    """Let a client resume the job, or repeat it by `job`, in the same append. `job_version` is the version of the job
    afterwards."""

    job: int
    job_version: int
    rerun_of: int | None = None

    def act(self, root: Asset, *, at: datetime) -> None:
        root.go_on(at, self.job, job_version=self.job_version, rerun_of=self.rerun_of)


@dataclass(frozen=True)
class RenameAsset(_AssetCommand):
    name: str

    def act(self, root: Asset, *, at: datetime) -> None:
        root.rename(at, self.name)


@dataclass(frozen=True, kw_only=True)
class ChangeAssetFile(_AssetCommand):
    """Record that the file has changed. `name` is the name by which the film lists a caption now."""

    size: int
    modified: datetime
    name: str | None = None

    def act(self, root: Asset, *, at: datetime) -> None:
        root.change_file(at, size=self.size, modified=self.modified, name=self.name)


@dataclass(frozen=True, kw_only=True)
class RemoveAsset(_AssetCommand):
    """Remove an asset; `running_job` is cancelled in the same append. `looked_up` says that the plan has found the asset, so if it
    no longer exists, the plan must be made again."""

    running_job: int | None
    looked_up: bool = False

    def act(self, root: Asset, *, at: datetime) -> None:
        try:
            root.remove(at, running_job=self.running_job)
        except NotFound:
            if self.looked_up:
                raise PlanOutdated(root.KIND, root.key) from None
            raise


@dataclass(frozen=True)
class ForgetAsset(_AssetCommand):
    """Remove an asset whose file no longer exists."""

    def act(self, root: Asset, *, at: datetime) -> None:
        root.forget(at)


@dataclass(frozen=True)
class ReleaseAssetPath(_AssetCommand):
    """Release the path of a removed asset whose file is deleted."""

    def act(self, root: Asset, *, at: datetime) -> None:
        root.release_path(at)
