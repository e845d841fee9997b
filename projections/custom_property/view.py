"""The view of custom properties of all kinds of owners. It is separate from other records, because properties are searched by other
fields."""

from __future__ import annotations

from typing import Any

from domain.record.kinds.custom_property import PROPERTIES, CustomProperty
from projections.kernel.schema.view import Column, View

_COLUMNS = (
    Column("kind", "text"),
    Column("id", "text"),
    Column("version", "bigint"),
    Column("deleted", "boolean"),
    Column("owner_id", "text"),
    Column("category", "text"),
    Column("key", "text"),
    Column("value", "text"),
    Column("client", "text"),
    Column("date_created", "timestamptz"),
    Column("date_modified", "timestamptz"),
)


def row(property: CustomProperty) -> tuple[Any, ...]:
    details = property.details
    return (
        property.KIND,
        property.key,
        property.version,
        property.deleted,
        str(details.owner_id),
        details.category,
        details.key,
        details.value,
        getattr(details, "client", None),
        property.created_on,
        property.modified_on,
    )


CUSTOM_PROPERTY_VIEW = View(
    name="custom_property_view",
    version=2,
    kinds=tuple(kind.KIND for kind in PROPERTIES),
    columns=_COLUMNS,
    row=row,
    key=("kind", "id"),
    indexes={
        "owner": "{table} (kind, owner_id)",
        "category": "{table} (kind, category) WHERE NOT deleted",
        "property_key": "{table} (kind, key) WHERE NOT deleted",
        "value": "{table} (kind, md5(value)) WHERE NOT deleted AND value IS NOT NULL",
    },
)
