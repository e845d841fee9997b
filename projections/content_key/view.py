"""The view of content keys, looked up by id and by content id. The keys themselves are in the vault."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pydantic_core import to_json

from domain.content_key.aggregate import ContentKey
from projections.kernel.schema.view import Column, View


def _json(texts: Sequence[str]) -> str:
    return to_json(texts).decode()


CONTENT_KEY_VIEW = View[ContentKey](
    name="content_key_view",
    version=2,
    kinds=(ContentKey.KIND,),
    columns=(
        Column("id", "uuid", lambda key: UUID(key.key)),
        Column("version", "bigint", lambda key: key.version),
        Column("client", "text", lambda key: key.purpose.client),
        Column("content_id", "text", lambda key: key.purpose.content_id),
        Column("period", "text", lambda key: key.purpose.period),
        Column("kid", "uuid", lambda key: key.purpose.kid),
        Column("iv", "text", lambda key: key.iv),
        Column("sealed_key", "uuid", lambda key: key.sealed_key.reference),
        Column("imported", "boolean", lambda key: key.imported),
        Column("issued_at", "timestamptz", lambda key: key.created_on),
        Column("answers", "bigint", lambda key: key.usage.count if key.usage else 0),
        Column("first_answered_at", "timestamptz", lambda key: key.usage.first_at if key.usage else None),
        Column("last_answered_at", "timestamptz", lambda key: key.usage.last_at if key.usage else None),
        Column("systems", "text", lambda key: _json(key.usage.systems) if key.usage else "[]"),
        Column("speke_versions", "text", lambda key: _json(key.usage.speke_versions) if key.usage else "[]"),
        Column("counted", "bigint", lambda key: key.counted),
    ),
    key=("id",),
    indexes={"content": "{table} (content_id, client, issued_at, id)", "client": "{table} (client)"},
)
