"""The view of content keys, looked up by id and by content id. The keys themselves are in the vault."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic_core import to_json

from domain.content_key.aggregate import ContentKey
from projections.kernel.schema.view import Column, View

_UNUSED = (0, None, None, "[]", "[]")


def row(content_key: ContentKey) -> tuple[Any, ...]:
    purpose = content_key.purpose
    return (
        UUID(content_key.key),
        content_key.version,
        purpose.client,
        purpose.content_id,
        purpose.period,
        purpose.kid,
        content_key.iv,
        content_key.sealed_key.reference,
        content_key.imported,
        content_key.created_on,
        *_usage(content_key),
        content_key.counted,
    )


def _usage(content_key: ContentKey) -> tuple[Any, ...]:
    usage = content_key.usage
    if usage is None:
        return _UNUSED
    return usage.count, usage.first_at, usage.last_at, to_json(usage.systems).decode(), to_json(usage.speke_versions).decode()


CONTENT_KEY_VIEW = View(
    name="content_key_view",
    version=2,
    kinds=(ContentKey.KIND,),
    columns=(
        Column("id", "uuid"),
        Column("version", "bigint"),
        Column("client", "text"),
        Column("content_id", "text"),
        Column("period", "text"),
        Column("kid", "uuid"),
        Column("iv", "text"),
        Column("sealed_key", "uuid"),
        Column("imported", "boolean"),
        Column("issued_at", "timestamptz"),
        Column("answers", "bigint"),
        Column("first_answered_at", "timestamptz"),
        Column("last_answered_at", "timestamptz"),
        Column("systems", "text"),
        Column("speke_versions", "text"),
        Column("counted", "bigint"),
    ),
    row=row,
    key=("id",),
    indexes={"content": "{table} (content_id, client, issued_at, id)", "client": "{table} (client)"},
)
