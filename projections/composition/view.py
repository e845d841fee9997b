"""The view of compositions. A removed one stays, because its row has the number of its last film."""

from __future__ import annotations

from domain.composition.aggregate import Composition
from projections.kernel.schema.view import Column, View

COMPOSITION_VIEW = View[Composition](
    name="composition_view",
    version=2,
    kinds=(Composition.KIND,),
    columns=(
        Column("id", "uuid", lambda composition: composition.key, wire_type="text"),
        Column("version", "bigint", lambda composition: composition.version),
        Column("event_id", "uuid", lambda composition: str(composition.event_id), wire_type="text"),
        Column("kind", "smallint", lambda composition: composition.kind),
        Column("content", "text", lambda composition: composition.playlist.model_dump_json()),
        Column("state", "smallint", lambda composition: composition.state),
        Column("live_stream_start", "timestamptz", lambda composition: composition.live_stream_start),
        Column("private", "boolean", lambda composition: composition.private),
        Column("client", "text", lambda composition: composition.client),
        Column("job", "bigint", lambda composition: composition.job),
        Column("generation", "bigint", lambda composition: composition.generation),
        Column("reason", "text", lambda composition: composition.reason),
        Column("removed", "boolean", lambda composition: composition.removed),
        Column("shown_version", "bigint", lambda composition: composition.shown_version),
        Column("awaits_sources", "boolean", lambda composition: composition.awaits_sources),
    ),
    key=("id",),
    indexes={
        "event": "{table} (event_id)",
        "waiting": "{table} (live_stream_start) WHERE state = 0 AND NOT removed AND NOT awaits_sources",
        "awaiting": "{table} (event_id) WHERE awaits_sources AND NOT removed",
    },
)
