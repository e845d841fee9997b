"""Categories and custom properties as answers show them: decisions.md, "Records the documents only name"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from projections.records.queries import RecordRow


def category_object(row: RecordRow, properties: Sequence[RecordRow]) -> dict[str, Any]:
    details = row.details
    return {
        "id": row.id,
        "name": details.name,
        "label": details.label,
        "description": details.description,
        "customProperties": [property_object(one) for one in properties],
    }


def property_object(row: RecordRow) -> dict[str, Any]:
    """Flat, without its owner: as Events and categories show their properties, and document 2 a category's."""
    details = row.details
    return {"id": row.id, "category": details.category, "key": details.key, "value": details.value}
