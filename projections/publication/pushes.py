"""The sessions that push live publications, as recorded in their rows."""

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
"""The time without statistics after which no session counts as pushing: statistics arrive every two seconds, and a takeover takes
less than ten."""
_STATISTICS: Final = (
    "SELECT number, statistics, statistics_at FROM sessions WHERE kind = %s AND key = %s AND statistics IS NOT NULL"
)


class PushesSeen:
    """Reads `sessions`."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, publication: PublicationRow) -> Mapping[str, Any] | None:
        """Return the statistics of the present or the last session; empty if there was none. Return None if the publication is
        InProgress but no session reports."""
        pushed = publication.state is PublicationState.InProgress
        row = await self._database.row(_STATISTICS, (KIND, str(publication.id)))
        if row is None:
            return None if pushed else {}
        number, statistics, reported_at = row
        if not pushed:
            return {
                **statistics,
                "session": number,
                "connected": False,
                "uptime": 0.0,
                "bitrate": 0.0,
                "fps": 0.0,
                "time": reported_at,
            }
        return None if self._clock() - reported_at > _SILENT else {**statistics, "session": number, "time": reported_at}
