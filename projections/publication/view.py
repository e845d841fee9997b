"""The view of publications of all kinds. A withdrawn one stays as long as something of it may exist at its target."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from domain.publication.aggregate import Publication
from projections.kernel.schema.view import Column, View

_COLUMNS = (
    Column("id", "uuid", wire_type="text"),
    Column("version", "bigint"),
    Column("kind", "smallint"),
    Column("content_id", "text"),
    Column("destination_id", "uuid", wire_type="text"),
    Column("target", "smallint"),
    Column("transaction_id", "uuid", wire_type="text"),
    Column("client", "text"),
    Column("state", "smallint"),
    Column("reason", "text"),
    Column("job", "bigint"),
    Column("details", "text"),
    Column("published", "boolean"),
    Column("withdrawn", "boolean"),
    Column("content", "text"),
    Column("date_created", "timestamptz"),
    Column("date_started", "timestamptz"),
    Column("date_completed", "timestamptz"),
    Column("audio_input_id", "text"),
    Column("run", "bigint"),
    Column("arrived", "boolean"),
    Column("open", "boolean"),
    Column("creations", "integer"),
    Column("served_by", "uuid", wire_type="text"),
    Column("start_awaited", "boolean"),
)


def row(publication: Publication) -> tuple[Any, ...]:
    return (
        publication.key,
        publication.version,
        publication.kind,
        publication.content_id,
        str(publication.destination_id),
        publication.target,
        str(publication.transaction_id),
        publication.client,
        publication.state,
        publication.reason,
        publication.job,
        None if publication.details is None else to_json(publication.details).decode(),
        publication.published,
        publication.withdrawn,
        publication.text.model_dump_json(),
        publication.created_on,
        publication.started,
        publication.completed,
        publication.audio_input_id,
        publication.run,
        publication.arrived,
        publication.open,
        publication.creations,
        None if publication.served_by is None else str(publication.served_by),
        publication.start_awaited,
    )


PUBLICATION_VIEW = View(
    name="publication_view",
    version=3,
    kinds=(Publication.KIND,),
    columns=_COLUMNS,
    row=row,
    key=("id",),
    indexes={
        "created": "{table} (kind, date_created, id) WHERE NOT withdrawn",
        "content": "{table} (content_id, kind, date_created, id) WHERE NOT withdrawn",
        "destination": "{table} (destination_id, id) WHERE NOT withdrawn",
        "transaction": "{table} (transaction_id) WHERE NOT withdrawn",
        "pushed": "{table} (id) WHERE kind = 1 AND state = 2 AND NOT withdrawn",
    },
)
