"""Verifies the log in the background: what was added since the last time, and a part of what is older.

It runs in every process that has workers or the API; an advisory lock, which ends with its connection, lets one at a time do it.
Each piece has its own connection and snapshots, so no snapshot is long. After each piece the task rests as long as the piece took:
otherwise requests of the same process would wait for a processor.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import ClassVar, Final

from prometheus_client import CollectorRegistry, Gauge

from projections.audit.chain import Link
from projections.audit.verify import Extent, Verification, verify
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database

_LOCK: Final = 0x6D6C20766572  # "ml ver"
_PART: Final = 20_000
_PIECE: Final = 2_000
"""The number of events that are verified without a rest."""
_STORED: Final = """
SELECT cursor, position, number, chain_hash, extract(epoch FROM clock_timestamp() - verified_at)::float8, bad_position
FROM log_verification
"""
_GOOD: Final = """
INSERT INTO log_verification (cursor, position, number, chain_hash) VALUES (%s, %s, %s, %s) ON CONFLICT (cursor) DO UPDATE
SET position = excluded.position, number = excluded.number, chain_hash = excluded.chain_hash, verified_at = clock_timestamp(),
    bad_position = NULL, reason = NULL
"""
_BAD: Final = """
INSERT INTO log_verification (cursor, bad_position, reason) VALUES (%s, %s, %s) ON CONFLICT (cursor) DO UPDATE
SET verified_at = clock_timestamp(), bad_position = excluded.bad_position, reason = excluded.reason
"""
_log = logging.getLogger(__name__)


class LogVerifier(BackgroundTask):
    """Verifies, once a minute, the new events and `part` of the older ones. Every process shows the progress in its metrics."""

    WHAT: ClassVar[str] = "verification of the log"

    def __init__(self, database: Database, registry: CollectorRegistry, *, part: int = _PART, pause: float = 60.0) -> None:
        self._database = database
        self._piece = min(part, _PIECE)
        self._pieces = part // self._piece
        self._pause = pause
        self._position = Gauge("medialedger_log_verified_position", "Position up to which the log was verified", registry=registry)
        self._age = Gauge("medialedger_log_verified_age_seconds", "Seconds since the log was verified", registry=registry)
        self._bad = Gauge("medialedger_log_bad_position", "First damaged position of the log; 0: none", registry=registry)

    async def look(self) -> None:
        """Verify what is due, unless another process does so, and update the metrics."""
        connection = await self._database.connect("verification")
        try:
            locked = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))).fetchone()
            if locked and locked[0]:
                while await self._next("tail"):
                    pass
                for _ in range(self._pieces):
                    if not await self._next("scrub"):
                        break
        finally:
            await connection.close()
        await self._show()

    async def _next(self, cursor: str) -> bool:
        """Verify the next piece. Return True if there is another one."""
        began = time.monotonic()
        stored = {name: link for name, *link, _, _ in await self._database.rows(_STORED)}
        position, number, chain_hash = stored.get(cursor, (0, 0, None))
        after = None if chain_hash is None else Link(position, number, chain_hash)
        verification = await asyncio.to_thread(
            partial(verify, self._database.conninfo, extent=Extent(after=after, most=self._piece))
        )
        await self._keep(cursor, verification)
        await asyncio.sleep(time.monotonic() - began)
        return verification.next is not None

    async def _keep(self, cursor: str, verification: Verification) -> None:
        if not verification.valid:
            _log.error("the log is damaged at position %s: %s", verification.first_bad_position, verification.reason)
            await self._database.execute(_BAD, (cursor, verification.first_bad_position, verification.reason))
        elif cursor == "scrub" and verification.next is None:  # start again from the beginning
            await self._database.execute(_GOOD, (cursor, 0, 0, None))
        else:
            end = verification.end or Link(0, 0, b"")
            await self._database.execute(_GOOD, (cursor, end.position, end.number, end.chain_hash if end.position else None))

    async def _show(self) -> None:
        rows = {name: (position, age, bad) for name, position, _, _, age, bad in await self._database.rows(_STORED)}
        position, age, _ = rows.get("tail", (0, 0.0, None))
        self._position.set(position)
        self._age.set(age)
        self._bad.set(min((bad for _, _, bad in rows.values() if bad is not None), default=0))

    async def _turn(self) -> None:
        await self.look()
        await asyncio.sleep(self._pause)
