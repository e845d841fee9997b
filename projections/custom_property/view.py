"""The view of custom properties of every kind of owner: they are searched by fields that no other record has."""

from __future__ import annotations

from typing import Any

from domain.records.kinds.custom_property import PROPERTIES, CustomProperty
from projections.kernel.view import Column, View

_COLUMNS = (
    Column("kind", "text"),
    Column("id", "text"),
    Column("version", "bigint"),
    Column("withdrawn", "boolean"),
    Column("owner_id", "text"),
    Column("category", "text"),
    Column("key", "text"),
    Column("value", "text"),
    Column("date_created", "timestamptz"),
    Column("date_modified", "timestamptz"),
)


def row(one: CustomProperty) -> tuple[Any, ...]:
    details = one.details
    return (
        one.KIND,
        one.key,
        one.version,
        one.withdrawn,
        str(details.owner_id),
        details.category,
        details.key,
        details.value,
        one.created_on,
        one.modified_on,
    )


CUSTOM_PROPERTY_VIEW = View(
    name="custom_property_view",
    version=1,
    kinds=tuple(kind.KIND for kind in PROPERTIES),
    columns=_COLUMNS,
    row=row,
    key=("kind", "id"),
    indexes={
        "owner": "{table} (kind, owner_id)",
        "category": "{table} (kind, category) WHERE NOT withdrawn",
        "property_key": "{table} (kind, key) WHERE NOT withdrawn",
        "value": "{table} (kind, md5(value)) WHERE NOT withdrawn AND value IS NOT NULL",
    },
)
