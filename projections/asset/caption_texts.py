"""Texts of captions that clients have sent, stored until their jobs have read them."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from projections.kernel.database import Database

_STORE: Final = "INSERT INTO caption_texts (id, content) VALUES (%s, %s) ON CONFLICT DO NOTHING"


class CaptionTexts:
    """The adapter of the port `domain.asset.ports.CaptionTexts`, also used by workers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, key: UUID, content: bytes) -> None:
        await self._database.execute(_STORE, (key, content))

    async def read(self, key: UUID) -> bytes | None:
        row = await self._database.row("SELECT content FROM caption_texts WHERE id = %s", (key,))
        return None if row is None else bytes(row[0])

    async def forget(self, key: UUID) -> None:
        """Delete a text once its job has converted it to WebVTT."""
        await self._database.execute("DELETE FROM caption_texts WHERE id = %s", (key,))


async def remove_texts(database: Database, before: datetime) -> int:
    """Remove texts whose jobs have failed, or were never accepted, and return their number."""
    return await database.execute("DELETE FROM caption_texts WHERE sent_at < %s", (before,))
