"""The view of custom properties of all kinds of owners. It is separate from other records, because properties are searched by other
fields."""

from __future__ import annotations

from domain.record.kinds.custom_property import PROPERTIES, CustomProperty
from projections.kernel.schema.view import Column, View

CUSTOM_PROPERTY_VIEW = View[CustomProperty](
    name="custom_property_view",
    version=2,
    kinds=tuple(kind.KIND for kind in PROPERTIES),
    columns=(
        Column("kind", "text", lambda property: property.KIND),
        Column("id", "text", lambda property: property.key),
        Column("version", "bigint", lambda property: property.version),
        Column("deleted", "boolean", lambda property: property.deleted),
        Column("owner_id", "text", lambda property: str(property.details.owner_id)),
        Column("category", "text", lambda property: property.details.category),
        Column("key", "text", lambda property: property.details.key),
        Column("value", "text", lambda property: property.details.value),
        Column("client", "text", lambda property: getattr(property.details, "client", None)),
        Column("date_created", "timestamptz", lambda property: property.created_on),
        Column("date_modified", "timestamptz", lambda property: property.modified_on),
    ),
    key=("kind", "id"),
    indexes={
        "owner": "{table} (kind, owner_id)",
        "category": "{table} (kind, category) WHERE NOT deleted",
        "property_key": "{table} (kind, key) WHERE NOT deleted",
        "value": "{table} (kind, md5(value)) WHERE NOT deleted AND value IS NOT NULL",
    },
)
