"""The sessions that push live publications, as their rows tell of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from domain.kernel.clock import Clock
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationState
from projections.kernel.database import Database
from projections.sessions.store import WantedQuery

KIND: Final = "publication"
WANTED: Final = WantedQuery(
    KIND,
    "SELECT id::text, id::text, run FROM publication_view WHERE kind = 1 AND state = 2 AND NOT withdrawn AND served_by IS NULL",
)
_SILENT: Final = timedelta(seconds=20)
"""After which nobody is taken to push: statistics come every two seconds, and a takeover takes less than ten."""
_FOUND: Final = "SELECT number, statistics, statistics_at FROM sessions WHERE kind = %s AND key = %s AND statistics IS NOT NULL"


class PushesSeen:
    """Reads `sessions`."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, publication: PublicationRow) -> Mapping[str, Any] | None:
        """Of the present or the last session; empty where there was none. None: it is InProgress, and nobody tells of it."""
        pushed = publication.state is PublicationState.InProgress
        found = await self._database.row(_FOUND, (KIND, str(publication.id)))
        if found is None:
            return None if pushed else {}
        number, statistics, told = found
        if not pushed:
            return {**statistics, "session": number, "connected": False, "uptime": 0.0, "bitrate": 0.0, "fps": 0.0, "time": told}
        return None if self._clock() - told > _SILENT else {**statistics, "session": number, "time": told}
