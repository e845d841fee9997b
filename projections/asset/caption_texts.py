"""Texts of captions that clients have sent, until their jobs have read them."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from projections.kernel.database import Database

_STORE: Final = "INSERT INTO caption_texts (id, content) VALUES (%s, %s) ON CONFLICT DO NOTHING"


class CaptionTexts:
    """The port `domain.asset.ports.CaptionTexts`, and its other end in workers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, key: UUID, content: bytes) -> None:
        await self._database.execute(_STORE, (key, content))

    async def read(self, key: UUID) -> bytes | None:
        found = await self._database.row("SELECT content FROM caption_texts WHERE id = %s", (key,))
        return None if found is None else bytes(found[0])

    async def forget(self, key: UUID) -> None:
        """Delete a text once its job has made WebVTT of it."""
        await self._database.execute("DELETE FROM caption_texts WHERE id = %s", (key,))


async def remove_texts(database: Database, before: datetime) -> int:
    """Texts whose jobs have failed, or were never accepted."""
    return await database.execute("DELETE FROM caption_texts WHERE sent_at < %s", (before,))
