"""The lease of a worker: one row for a process and queue, whose renewal keeps all runs that it has started.

It is timed by the database's clock. An expired lease is never renewed, since the runs may have been given to other workers. The
worker then begins a new lease under a new name.
"""

from __future__ import annotations

import time
from typing import Final

from domain.kernel.ids import new_id
from projections.kernel.database.database import Database

LEASE: Final = 30.0
_LEFT_OVER: Final = "1 hour"
_BEGIN = "INSERT INTO job_workers (worker, until) VALUES (%s, clock_timestamp() + make_interval(secs => %s))"
_RENEW = """
UPDATE job_workers SET until = clock_timestamp() + make_interval(secs => %s)
WHERE worker = %s AND until > clock_timestamp()
"""
_END = "DELETE FROM job_workers WHERE worker = %s"
_TIDY = f"DELETE FROM job_workers WHERE until < clock_timestamp() - interval '{_LEFT_OVER}'"


class WorkerLease:
    """The lease of a worker, which may be silent for `seconds`. `worker` is its present name, which events record too."""

    def __init__(self, database: Database, *, host: str, seconds: float = LEASE) -> None:
        self._database = database
        self._host = host
        self._until = float("-inf")
        self.seconds = seconds
        self.worker = ""

    @property
    def is_valid(self) -> bool:
        """True while no process can have reported the worker's runs as lost."""
        return self.remaining > 0.0

    @property
    def remaining(self) -> float:
        """The number of seconds until the lease expires."""
        return max(self._until - time.monotonic(), 0.0)

    async def keep(self) -> bool:
        """Renew the lease, or begin a new one. Return True if it is the same lease as before."""
        asked = time.monotonic()
        if self.worker and await self._database.execute(_RENEW, (self.seconds, self.worker)):
            self._until = asked + self.seconds
            return True
        self.worker, self._until = f"{self._host} {new_id().hex[:12]}", float("-inf")
        await self._database.execute(_BEGIN, (self.worker, self.seconds))
        self._until = asked + self.seconds
        return False

    async def end(self) -> None:
        """End the lease, so that unfinished runs are lost at once."""
        self._until = float("-inf")
        await self._database.execute(_END, (self.worker,))

    async def tidy(self) -> None:
        """Delete the leases of workers that died long ago."""
        await self._database.execute(_TIDY)
