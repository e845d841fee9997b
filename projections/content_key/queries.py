"""Look-ups of content keys: by id for issuing, with the encrypted key; by content id for operators, without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic_core import from_json

from domain.content_key.aggregate import ContentKey
from domain.content_key.ports import StoredKey
from domain.kernel.encryption import EncryptedSecret
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import uuids
from projections.kernel.database.database import Database
from projections.kernel.database.page import FIRST_PAGE, Page, Window
from projections.kernel.sql.where import where

# The columns include uses that no event records yet.
_COLUMNS = """
k.systems, k.speke_versions, coalesce(u.systems, '{}'), coalesce(u.speke_versions, '{}'), k.id, k.client, k.content_id, k.period,
k.kid, k.iv, k.imported, k.issued_at, k.answers + greatest(coalesce(u.count, 0) - k.counted, 0),
least(k.first_answered_at, u.first_at), greatest(k.last_answered_at, u.last_at)
"""
_STORED = """
SELECT k.id, k.content_id, k.kid, k.iv, v.reference, v.key_id, v.fingerprint, v.nonce, v.ciphertext
FROM content_key_view k JOIN vault v ON v.reference = k.sealed_key WHERE k.id = ANY(%s)
"""
_COUNT = "SELECT count(*) FROM (SELECT FROM content_key_view WHERE client = %s LIMIT %s) AS counted"


@dataclass(frozen=True, slots=True)
class ContentKeyRow:
    """A content key without its key. `answers` and the fields after it lag by some seconds."""

    systems: tuple[str, ...]
    speke_versions: tuple[str, ...]
    id: UUID
    client: str
    content_id: str
    period: str
    kid: UUID
    iv: str
    imported: bool
    issued_at: datetime
    answers: int
    first_answered_at: datetime | None
    last_answered_at: datetime | None

    @classmethod
    def of(cls, content_key: ContentKey) -> Self:
        """Return the row of an aggregate, possibly in a past state."""
        purpose, usage = content_key.purpose, content_key.usage
        return cls(
            id=UUID(content_key.key),
            client=purpose.client,
            content_id=purpose.content_id,
            period=purpose.period,
            kid=purpose.kid,
            iv=content_key.iv,
            imported=content_key.imported,
            issued_at=content_key.created_on,
            answers=usage.count if usage else 0,
            first_answered_at=usage.first_at if usage else None,
            last_answered_at=usage.last_at if usage else None,
            systems=usage.systems if usage else (),
            speke_versions=usage.speke_versions if usage else (),
        )


class ContentKeyQueries:
    """Look-ups of content keys. Look-ups by id at the same moment share one query."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._loader = DataLoader[UUID, StoredKey](self._load)

    async def stored(self, ids: Sequence[UUID]) -> Mapping[UUID, StoredKey]:
        return await self._loader.many(ids)

    async def count_of(self, client: str, *, most: int) -> int:
        """Return the number of the client's keys, counted up to `most`."""
        row = await self._database.row(_COUNT, (client, most))
        return int(row[0]) if row else 0

    async def of_content(self, content_id: str, *, client: str | None = None, window: Window = FIRST_PAGE) -> Page[ContentKeyRow]:
        """Return the keys of a content id, of one client or of all, client by client in the order in which they were issued."""
        conditions, parameters = where(
            [("content_id", content_id, "k.content_id = %(content_id)s"), ("client", client, "k.client = %(client)s")]
        )
        matching = f"WHERE {' AND '.join(conditions)}"
        rows, total = await self._database.lists.page(
            f"SELECT {_COLUMNS} FROM content_key_view k LEFT JOIN content_key_usage u ON u.key = k.id {matching}"
            " ORDER BY k.client, k.issued_at, k.id LIMIT %(limit)s OFFSET %(offset)s",
            f"SELECT count(*) FROM content_key_view k {matching}",
            content=("content_id",),
            parameters={**parameters, "limit": window.limit, "offset": window.offset},
        )
        return Page(window.limit, total, [_row(*values) for values in rows])

    async def _load(self, ids: Sequence[UUID]) -> dict[UUID, StoredKey]:
        """Load keys by id. The owner is computed, not read, so a row that was changed to refer to the secret of another key cannot
        be decrypted."""
        rows = await self._database.rows(_STORED, (uuids(ids),))
        return {
            key: StoredKey(content_id, kid, bytes.fromhex(iv), EncryptedSecret(reference, ContentKey.stream(key), *secret))
            for key, content_id, kid, iv, reference, *secret in rows
        }


def _row(systems: str, speke_versions: str, later_systems: list[str], later_versions: list[str], *plain: Any) -> ContentKeyRow:
    return ContentKeyRow(
        tuple(sorted({*from_json(systems), *later_systems})), tuple(sorted({*from_json(speke_versions), *later_versions})), *plain
    )
