"""The view of publications of all kinds. A withdrawn one stays as long as something of it may exist at its target."""

from __future__ import annotations

from pydantic_core import to_json

from domain.publication.aggregate import Publication
from projections.kernel.schema.view import Column, View

PUBLICATION_VIEW = View[Publication](
    name="publication_view",
    version=3,
    kinds=(Publication.KIND,),
    columns=(
        Column("id", "uuid", lambda publication: publication.key, wire_type="text"),
        Column("version", "bigint", lambda publication: publication.version),
        Column("kind", "smallint", lambda publication: publication.kind),
        Column("content_id", "text", lambda publication: publication.content_id),
        Column("destination_id", "uuid", lambda publication: str(publication.destination_id), wire_type="text"),
        Column("target", "smallint", lambda publication: publication.target),
        Column("transaction_id", "uuid", lambda publication: str(publication.transaction_id), wire_type="text"),
        Column("client", "text", lambda publication: publication.client),
        Column("state", "smallint", lambda publication: publication.state),
        Column("reason", "text", lambda publication: publication.reason),
        Column("job", "bigint", lambda publication: publication.job),
        Column(
            "details", "text", lambda publication: None if publication.details is None else to_json(publication.details).decode()
        ),
        Column("published", "boolean", lambda publication: publication.published),
        Column("withdrawn", "boolean", lambda publication: publication.withdrawn),
        Column("content", "text", lambda publication: publication.text.model_dump_json()),
        Column("date_created", "timestamptz", lambda publication: publication.created_on),
        Column("date_started", "timestamptz", lambda publication: publication.started),
        Column("date_completed", "timestamptz", lambda publication: publication.completed),
        Column("audio_input_id", "text", lambda publication: publication.audio_input_id),
        Column("run", "bigint", lambda publication: publication.run),
        Column("arrived", "boolean", lambda publication: publication.arrived),
        Column("open", "boolean", lambda publication: publication.open),
        Column("creations", "integer", lambda publication: publication.creations),
        Column(
            "served_by",
            "uuid",
            lambda publication: None if publication.served_by is None else str(publication.served_by),
            wire_type="text",
        ),
        Column("start_awaited", "boolean", lambda publication: publication.start_awaited),
    ),
    key=("id",),
    indexes={
        "created": "{table} (kind, date_created, id) WHERE NOT withdrawn",
        "content": "{table} (content_id, kind, date_created, id) WHERE NOT withdrawn",
        "destination": "{table} (destination_id, id) WHERE NOT withdrawn",
        "transaction": "{table} (transaction_id) WHERE NOT withdrawn",
        "pushed": "{table} (id) WHERE kind = 1 AND state = 2 AND NOT withdrawn",
    },
)
