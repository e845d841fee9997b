"""Recordings at the built-in origin that were removed to make room before they were captured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from projections.kernel.database import Database

_ADD: Final = "INSERT INTO lost_recordings (point, session) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_LATEST: Final = """
SELECT point, session, lost_at FROM lost_recordings
WHERE lost_at > clock_timestamp() - interval '1 day' ORDER BY lost_at DESC LIMIT 100
"""


@dataclass(frozen=True, slots=True)
class LostRecording:
    """A recording of one session at a publishing point."""

    point: str
    session: int
    lost_at: datetime


class LostRecordings:
    """The lost recordings of the last day, the latest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, point: str, session: int) -> None:
        await self._database.execute(_ADD, (point, session))

    async def latest(self) -> Sequence[LostRecording]:
        return [LostRecording(*row) for row in await self._database.lists.rows(_LATEST)]


async def remove_lost_recordings(database: Database, before: datetime) -> int:
    """Remove entries from before that time, and return their number."""
    return await database.execute("DELETE FROM lost_recordings WHERE lost_at < %s", (before,))
