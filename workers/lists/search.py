"""Fills the search indexes: the handler of the consumer `search`.

It reads the texts from the views, which are never older than the log. A text may therefore be newer than the checkpoint that is
written with it; the changes in between are tested by each query until the consumer has passed them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.kernel.database.database import Database
from projections.kernel.sql.search import SearchIndex, grams
from projections.log.reader import LoggedEvent

Entries = Mapping[SearchIndex, Mapping[Any, set[int]]]
"""The 3-grams of the texts that have changed, by their index and id."""


class SearchIndexer:
    """Keeps the indexes up to date."""

    def __init__(self, database: Database, indexes: Sequence[SearchIndex]) -> None:
        self._database = database
        self._indexes = {index.kind: index for index in indexes}
        self.topics: frozenset[str] | None = frozenset(self._indexes)

    async def begin(self, position: int) -> None:
        """Do nothing: no state is in memory."""

    async def prepare(self, records: Sequence[LoggedEvent]) -> Entries | None:
        changed: dict[SearchIndex, dict[str, None]] = {}
        for record in records:
            index = self._indexes.get(record.kind)
            if index is not None and (record.version == 1 or not index.fixed):
                changed.setdefault(index, {})[record.key] = None
        return {index: await self._entries(index, list(keys)) for index, keys in changed.items()} or None

    async def _entries(self, index: SearchIndex, keys: Sequence[str]) -> dict[Any, set[int]]:
        texts = await index.texts(self._database, keys)
        return await asyncio.to_thread(lambda: {key: grams(text) for key, text in texts})  # a text may be a megabyte long

    async def write(self, connection: AsyncConnection[TupleRow], effects: Entries) -> None:
        for index, entries in effects.items():
            await index.write(connection, entries)

    def wrote(self, effects: Entries) -> None:
        """Do nothing: queries read the index itself."""
