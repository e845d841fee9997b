"""The view of assets. Its rows are also the queue of files to be deleted."""

from __future__ import annotations

from domain.asset.aggregate import Asset
from projections.kernel.schema.view import Column, View

ASSET_VIEW = View[Asset](
    name="asset_view",
    version=3,
    kinds=(Asset.KIND,),
    columns=(
        Column("id", "uuid", lambda asset: asset.key, wire_type="text"),
        Column("version", "bigint", lambda asset: asset.version),
        Column("event_id", "uuid", lambda asset: str(asset.event_id), wire_type="text"),
        Column("type", "smallint", lambda asset: asset.type),
        Column("state", "smallint", lambda asset: asset.state),
        Column("name", "text", lambda asset: asset.name),
        Column("path", "text", lambda asset: asset.path),
        Column("job", "bigint", lambda asset: asset.job),
        Column("size", "bigint", lambda asset: asset.size),
        Column("file_modified", "timestamptz", lambda asset: asset.modified),
        Column("removed", "boolean", lambda asset: asset.removed),
        Column("holds_path", "boolean", lambda asset: asset.holds_path),
        Column("date_created", "timestamptz", lambda asset: asset.created_on),
        Column("date_modified", "timestamptz", lambda asset: asset.shown_on),
        Column("shown_version", "bigint", lambda asset: asset.shown_version),
        Column("language", "text", lambda asset: asset.language),
        Column("kind", "text", lambda asset: asset.kind),
    ),
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
