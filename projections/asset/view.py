"""The view of assets. Its rows are also the queue of files to be deleted."""

from __future__ import annotations

from typing import Any

from domain.asset.aggregate import Asset
from projections.kernel.schema.view import Column, View

_COLUMNS = (
    Column("id", "uuid", wire_type="text"),
    Column("version", "bigint"),
    Column("event_id", "uuid", wire_type="text"),
    Column("type", "smallint"),
    Column("state", "smallint"),
    Column("name", "text"),
    Column("path", "text"),
    Column("job", "bigint"),
    Column("size", "bigint"),
    Column("file_modified", "timestamptz"),
    Column("removed", "boolean"),
    Column("holds_path", "boolean"),
    Column("date_created", "timestamptz"),
    Column("date_modified", "timestamptz"),
    Column("shown_version", "bigint"),
    Column("language", "text"),
    Column("kind", "text"),
)


def row(asset: Asset) -> tuple[Any, ...]:
    return (
        asset.key,
        asset.version,
        str(asset.event_id),
        asset.type,
        asset.state,
        asset.name,
        asset.path,
        asset.job,
        asset.size,
        asset.modified,
        asset.removed,
        asset.holds_path,
        asset.created_on,
        asset.shown_on,
        asset.shown_version,
        asset.language,
        asset.kind,
    )


ASSET_VIEW = View(
    name="asset_view",
    version=3,
    kinds=(Asset.KIND,),
    columns=_COLUMNS,
    row=row,
    key=("id",),
    indexes={
        "event": "{table} (event_id, date_created, id) WHERE holds_path",
        "path": "{table} (path) WHERE holds_path",
        "created": "{table} (date_created, id) WHERE NOT removed",
        "name": "{table} (name, date_created, id) WHERE NOT removed",
        "job": "{table} (job) WHERE NOT removed AND job IS NOT NULL",
        "found": "{table} (event_id, path) WHERE type = 4 AND job IS NULL",
        "file_left": "{table} (id) WHERE removed AND holds_path",
    },
)
