"""The view of all kinds of simple records: the name for aggregates that link to the record, and the details as a document.

There is one table for all kinds: a new resource needs only a kind and a route file, and one query finds the names of links of all
kinds.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.record.record import Record
from domain.webhook.aggregate import Webhook
from projections.kernel.schema.view import Column, View


def _parent(record: Record) -> str | None:
    parent = getattr(record.details, record.PARENT) if record.PARENT else None
    return None if parent is None else str(parent)


def record_view(kinds: Sequence[type[Record]]) -> View[Record]:
    """Return the view of these kinds of records."""
    return View[Record](
        name="record_view",
        version=3,
        kinds=tuple(kind.KIND for kind in kinds),
        columns=(
            Column("kind", "text", lambda record: record.KIND),
            Column("id", "text", lambda record: record.key),
            Column("version", "bigint", lambda record: record.version),
            Column("deleted", "boolean", lambda record: record.deleted),
            Column("name", "text", lambda record: getattr(record.details, "name", None)),
            Column("label", "text", lambda record: getattr(record.details, "label", None)),
            Column("reference_id", "text", lambda record: getattr(record.details, "reference_id", None)),
            Column("parent", "text", _parent),
            Column("date_created", "timestamptz", lambda record: record.created_on),
            Column("date_modified", "timestamptz", lambda record: record.modified_on),
            Column("document", "text", lambda record: record.details.model_dump_json(exclude_none=True)),
        ),
        key=("kind", "id"),
        indexes={
            "name": "{table} (kind, name, id) WHERE NOT deleted",
            "label": "{table} (kind, label, id) WHERE NOT deleted AND label IS NOT NULL",
            "parent": "{table} (kind, parent) WHERE parent IS NOT NULL",
            "system_wide": f"{{table}} (id) WHERE kind = '{Webhook.KIND}' AND parent IS NULL AND NOT deleted",
            "reference": "{table} (kind, reference_id) WHERE NOT deleted AND reference_id IS NOT NULL",
        },
    )
