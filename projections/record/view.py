"""The view of all kinds of simple records: the name for aggregates that link to the record, and the details as a document.

There is one table for all kinds: a new resource needs only a kind and a route file, and one query finds the names of links of all
kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.record.record import Record
from domain.webhook.aggregate import Webhook
from projections.kernel.schema.view import Column, View

_COLUMNS = (
    Column("kind", "text"),
    Column("id", "text"),
    Column("version", "bigint"),
    Column("deleted", "boolean"),
    Column("name", "text"),
    Column("label", "text"),
    Column("reference_id", "text"),
    Column("parent", "text"),
    Column("date_created", "timestamptz"),
    Column("date_modified", "timestamptz"),
    Column("document", "text"),
)


def row(record: Record) -> tuple[Any, ...]:
    details = record.details
    parent = getattr(details, record.PARENT) if record.PARENT else None
    return (
        record.KIND,
        record.key,
        record.version,
        record.deleted,
        getattr(details, "name", None),
        getattr(details, "label", None),
        getattr(details, "reference_id", None),
        None if parent is None else str(parent),
        record.created_on,
        record.modified_on,
        details.model_dump_json(exclude_none=True),
    )


def record_view(kinds: Sequence[type[Record]]) -> View:
    """Return the view of these kinds of records."""
    return View(
        name="record_view",
        version=3,
        kinds=tuple(kind.KIND for kind in kinds),
        columns=_COLUMNS,
        row=row,
        key=("kind", "id"),
        indexes={
            "name": "{table} (kind, name, id) WHERE NOT deleted",
            "label": "{table} (kind, label, id) WHERE NOT deleted AND label IS NOT NULL",
            "parent": "{table} (kind, parent) WHERE parent IS NOT NULL",
            "system_wide": f"{{table}} (id) WHERE kind = '{Webhook.KIND}' AND parent IS NULL AND NOT deleted",
            "reference": "{table} (kind, reference_id) WHERE NOT deleted AND reference_id IS NOT NULL",
        },
    )
