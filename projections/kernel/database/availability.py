"""Circuit breaker of the database: while the database is lost no request waits for it, and when it is back all requests continue at
once.

Every connection of a process is made through one breaker. When a connection breaks or cannot be made, the breaker checks whether
the database is lost: no new connection can be made, and no open connection answers. Then only the breaker keeps trying, at a fixed
short interval; a growing pause would outlast the outage. The breaker alone logs the loss, its duration and the recovery.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import psycopg

from projections.kernel.background_task import start_task

T = TypeVar("T")
EVERY: Final = 0.25
"""The number of seconds between two tries while the database is lost."""
REMINDER: Final = 30.0
CONNECTING: Final = 5.0
"""The time limit of one try in seconds, whatever limit the address has."""
_MOST: Final = 8
"""The number of concurrent tries. A try without an answer does not prevent the next one."""

_log = logging.getLogger(__name__)


class DatabaseLost(psycopg.OperationalError):
    """Raised without an attempt to connect while the database is lost."""


class Watched(Protocol):
    """A pool of connections."""

    async def answers(self, since: float) -> bool:
        """Return True if one of its open connections has reached the database since then, or reaches it now."""
        ...

    async def renew(self) -> None:
        """Replace all connections."""
        ...


class Availability:
    """The circuit breaker of a process.

    `connect` makes one connection and closes it, or raises. `explain` returns a cause that the error of a connection does not
    mention, such as a full disk.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[None]],
        *,
        explain: Callable[[], str] = lambda: "",
        reminder: float = REMINDER,
        every: float = EVERY,
    ) -> None:
        self.explain = explain
        self.pools: list[Watched] = []
        self._connect = connect
        self._reminder = reminder
        self._every = every
        self._reason = ""
        self._lost_since: float | None = None
        self._waits: set[asyncio.Timeout] = set()
        self._look: asyncio.Task[None] | None = None
        self._broke = float("-inf")
        self._stopped = False

    @property
    def lost(self) -> bool:
        return self._lost_since is not None

    @property
    def looking(self) -> bool:
        """True while the breaker checks whether the database is lost, or waits for it to come back."""
        return self._look is not None and not self._look.done()

    def check(self) -> None:
        """Raise `DatabaseLost` if the database is lost."""
        if self._lost_since is not None:
            raise DatabaseLost(f"the database is unavailable: {self._reason}")

    async def unless_lost(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a wait for the database. Raise `DatabaseLost` if the database is lost, or becomes lost during the
        wait."""
        self.check()
        limit = asyncio.timeout(None)
        self._waits.add(limit)
        try:
            async with limit:
                return await wait()
        except TimeoutError:
            if limit.expired():
                raise DatabaseLost("the database was lost during the wait") from None
            raise
        finally:
            self._waits.discard(limit)

    def suspect(self, fault: BaseException) -> None:
        """Check whether the database is lost, after a connection broke or could not be made."""
        if not (self._stopped or self.looking):
            self._look = start_task(self._look_into(_line(fault)), what="availability of the database")

    def start(self) -> None:
        """Allow checks again after a stop."""
        self._stopped = False

    async def stop(self) -> None:
        """Stop all checks: a pool that is closing may find its connections broken."""
        self._stopped = True
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait({self._look})

    async def _look_into(self, fault: str) -> None:
        if await self._reaches():
            self._report_broken(fault)
            return
        self._lose()
        try:
            await self._until_back()
        finally:
            since, self._lost_since = self._lost_since, None
        _log.warning("the database is back after %.0f s", time.monotonic() - (since or 0.0))
        for pool in self.pools:
            await pool.renew()

    async def _reaches(self) -> bool:
        since = time.monotonic()
        try:
            async with asyncio.timeout(CONNECTING):
                await self._connect()
        except Exception as fault:
            if any(await asyncio.gather(*(pool.answers(since) for pool in self.pools))):
                return True
            self._reason = _line(fault)
            return False
        return True

    def _report_broken(self, fault: str) -> None:
        """Log a broken connection while the database answers. A single server process may have ended, or the server was restarted
        quickly."""
        if time.monotonic() - self._broke >= self._reminder:
            self._broke = time.monotonic()
            _log.warning("a connection to the database failed (%s); the database answers", fault)

    def _lose(self) -> None:
        """Mark the database as lost, and end the waits of all requests now."""
        self._lost_since = time.monotonic()
        _log.error("the database is lost: %s; requests get 503 until it is back", self._why())
        now = asyncio.get_running_loop().time()
        for limit in self._waits:
            limit.reschedule(now)

    def _why(self) -> str:
        return "; ".join(filter(None, (self.explain(), self._reason)))

    async def _until_back(self) -> None:
        tries: set[asyncio.Task[bool]] = set()
        logged_at = time.monotonic()
        try:
            while True:
                await asyncio.sleep(self._every)
                if len(tries) < _MOST:
                    tries.add(start_task(self._reaches(), what="try to reach the database"))
                done, tries = await asyncio.wait(tries, timeout=self._every, return_when=asyncio.FIRST_COMPLETED)
                if any(attempt.result() for attempt in done):
                    return
                if time.monotonic() - logged_at >= self._reminder:
                    logged_at = time.monotonic()
                    _log.error(
                        "the database is still unavailable after %.0f s: %s",
                        logged_at - (self._lost_since or logged_at),
                        self._why(),
                    )
        finally:
            for attempt in tries:
                attempt.cancel()
            await asyncio.gather(*tries, return_exceptions=True)


def _line(fault: BaseException) -> str:
    """Return the first line of a connection's error, which contains no password."""
    if isinstance(fault, TimeoutError):
        return f"no answer within {CONNECTING:g} s"
    line = next((line.strip() for line in str(fault).splitlines() if line.strip()), type(fault).__name__)
    return line.removeprefix("connection failed: ").removeprefix("connection is bad: ")
