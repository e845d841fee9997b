"""The view of compositions. A removed one stays, because its row has the number of its last film."""

from __future__ import annotations

from typing import Any

from domain.composition.aggregate import Composition
from projections.kernel.schema.view import Column, View

_COLUMNS = (
    Column("id", "uuid", wire_type="text"),
    Column("version", "bigint"),
    Column("event_id", "uuid", wire_type="text"),
    Column("kind", "smallint"),
    Column("content", "text"),
    Column("state", "smallint"),
    Column("live_stream_start", "timestamptz"),
    Column("private", "boolean"),
    Column("client", "text"),
    Column("job", "bigint"),
    Column("generation", "bigint"),
    Column("reason", "text"),
    Column("removed", "boolean"),
    Column("shown_version", "bigint"),
    Column("awaits_sources", "boolean"),
)


def row(composition: Composition) -> tuple[Any, ...]:
    return (
        composition.key,
        composition.version,
        str(composition.event_id),
        composition.kind,
        composition.playlist.model_dump_json(),
        composition.state,
        composition.live_stream_start,
        composition.private,
        composition.client,
        composition.job,
        composition.generation,
        composition.reason,
        composition.removed,
        composition.shown_version,
        composition.awaits_sources,
    )


COMPOSITION_VIEW = View(
    name="composition_view",
    version=2,
    kinds=(Composition.KIND,),
    columns=_COLUMNS,
    row=row,
    key=("id",),
    indexes={
        "event": "{table} (event_id)",
        "waiting": "{table} (live_stream_start) WHERE state = 0 AND NOT removed AND NOT awaits_sources",
        "awaiting": "{table} (event_id) WHERE awaits_sources AND NOT removed",
    },
)
