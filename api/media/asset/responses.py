"""Responses of the asset routes. See docs/reference/api/assets.md."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Instant, NamedInt, Wire
from domain.asset.row import AssetRow
from domain.asset.values import AssetState, AssetType, CaptionKind
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.ports import Outcome


class Asset(Wire):
    """A file of an Event that was requested, or that the system made."""

    id: UUID = Field(description="Id of the asset.")
    event_id: UUID = Field(description="Id of the Event.")
    name: str = Field(description="Name of the asset; for an asset of the system, the name of its file.")
    path: str = Field(description="Path of the file below the media root.")
    extension: str = Field(description='Extension of the file, such as .jpg; "" without one.')
    job_id: str | None = Field(description="Id of the job that produces the file; null for an asset of the system.")
    content_id: str = Field(description="Id of the content, which is the id of the Event.")
    state: Annotated[AssetState, NamedInt(AssetState)] = Field(description="State of the asset.")
    state_string: str = Field(description="Name of the state.")
    type: Annotated[AssetType, NamedInt(AssetType)] = Field(description="Type of the asset.")
    type_string: str = Field(description="Name of the type.")
    language: str | None = Field(description="Language of a caption, a tag of BCP 47; null for all others.")
    kind: CaptionKind | None = Field(description="Kind of a caption; null for all others.")
    date_created: Instant = Field(description="The time when it was requested or detected.")
    date_modified: Instant = Field(description="The time when it last changed.")
    url: str | None = Field(
        description="Public URL of the file: storageUrlPublic of the flow of the Event, followed by the path. null without "
        "such a flow, and"
        " for an unencrypted file of an Event with vodDrm, which is never served."
    )

    @classmethod
    def of(cls, row: AssetRow, *, url: str | None) -> Asset:
        file = row.path.rpartition("/")[2]
        stem, dot, extension = file.rpartition(".")
        return cls.model_construct(
            id=row.id,
            event_id=row.event_id,
            name=row.name,
            path=row.path,
            extension=f"{dot}{extension}" if stem else "",
            job_id=None if row.job is None else str(row.job),
            content_id=str(row.event_id),
            state=row.state,
            state_string=row.state.name,
            type=row.type,
            type_string=row.type.name,
            language=row.language,
            kind=row.kind,
            date_created=row.date_created,
            date_modified=row.date_modified,
            url=url,
        )


class AssetSync(Wire):
    """The result of a synchronisation."""

    has_vod_file_changed: bool = Field(
        description="True if the size or modification time of the VOD file has changed since the last synchronisation; false "
        "at the first."
    )
    created_assets_count: int = Field(description="Number of new files that became assets.")
    deleted_assets_count: int = Field(description="Number of assets that were removed because their files are gone.")
    path_evaluated: str = Field(description="The folder that was evaluated, below the media root.")

    @classmethod
    def of(cls, outcome: Outcome[AggregateRoot]) -> AssetSync:
        result = outcome.result
        return cls.model_construct(
            has_vod_file_changed=result["changed"],
            created_assets_count=result["created"],
            deleted_assets_count=result["deleted"],
            path_evaluated=result["path"],
        )
