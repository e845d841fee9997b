"""The result of a look-up of an asset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.asset.aggregate import Asset
from domain.asset.values import AssetState, AssetType, CaptionKind


@dataclass(frozen=True, slots=True)
class AssetRow:
    """An asset as a look-up returns it. `event_id` is also the contentId. `version` and `date_modified` belong to the last change
    that a GET shows."""

    id: UUID
    version: int
    event_id: UUID
    type: AssetType
    state: AssetState
    name: str
    path: str
    job: int | None
    size: int | None
    file_modified: datetime | None
    removed: bool
    date_created: datetime
    date_modified: datetime
    language: str | None = None
    kind: CaptionKind | None = None

    @classmethod
    def of(cls, asset: Asset) -> AssetRow:
        return cls(
            UUID(asset.key),
            asset.shown_version,
            asset.event_id,
            asset.type,
            asset.state,
            asset.name,
            asset.path,
            asset.job,
            asset.size,
            asset.modified,
            asset.removed,
            asset.created_on,
            asset.shown_on,
            asset.language,
            asset.kind,
        )

    @property
    def is_found(self) -> bool:
        """True if the caption is a text track from the source of the film, which no client has added."""
        return self.type is AssetType.CAPTION and self.job is None

    @property
    def running_job(self) -> int | None:
        """The job that must be cancelled when the asset is removed."""
        return self.job if self.state is AssetState.GENERATING else None
