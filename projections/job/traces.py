"""The trace in which a job was submitted."""

from __future__ import annotations

from domain.job.aggregate import Job
from projections.kernel.database import Database

_PARENT = "SELECT metadata->>'trace_parent' FROM stream_events WHERE stream = stream_key(%s) AND version = 1"


class JobTraces:
    """Reads trace contexts of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def parent(self, job: int) -> str | None:
        """Return the trace context of a job; None if it was submitted without a trace."""
        rows = await self._database.rows(_PARENT, (Job.stream(job),))
        return None if not rows else rows[0][0]
