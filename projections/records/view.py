"""The view of every kind of simple record: its name for whoever links to it, its fields as a document.

One table serves all kinds: a new resource brings a kind and a route file, and its display name is found by every link at once.
"""

from __future__ import annotations

from typing import Any

from domain.catalogue import RECORDS
from domain.records.kinds.custom_property import PROPERTIES
from domain.records.record import Record
from projections.kernel.view import Column, View

_COLUMNS = (
    Column("kind", "text"),
    Column("id", "text"),
    Column("version", "bigint"),
    Column("withdrawn", "boolean"),
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
        record.withdrawn,
        getattr(details, "name", None),
        getattr(details, "label", None),
        getattr(details, "reference_id", None),
        None if parent is None else str(parent),
        record.created_on,
        record.modified_on,
        details.model_dump_json(exclude_none=True),
    )


RECORD_VIEW = View(
    name="record_view",
    version=2,
    kinds=tuple(kind.KIND for kind in RECORDS if kind not in PROPERTIES),
    columns=_COLUMNS,
    row=row,
    key=("kind", "id"),
    indexes={
        "name": "{table} (kind, name, id) WHERE NOT withdrawn",
        "label": "{table} (kind, label, id) WHERE NOT withdrawn AND label IS NOT NULL",
        "parent": "{table} (kind, parent) WHERE parent IS NOT NULL",
        "reference": "{table} (kind, reference_id) WHERE NOT withdrawn AND reference_id IS NOT NULL",
    },
)
