"""The numbers that archiver streams are known by: document 2, "Archiver Stream"; decisions.md: ids are never reused."""

from __future__ import annotations

from projections.kernel.database import Database


class ArchiverStreamNumbers:
    """Gives out numbers, each once. One that is drawn and not used is lost, which does no harm."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def draw(self) -> int:
        row = await self._database.row("SELECT nextval('archiver_stream_numbers')")
        assert row is not None, "nextval gives one row"
        return int(row[0])
