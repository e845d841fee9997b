"""The sealer: signs a checkpoint of the log every minute in which something was written, or after 10,000 events, and has it stored
outside of the database. See ADR 0068.

One member is active and the others stand by. If two were active, one would wait for the other: a lock of the database lets one seal
at a time, and each checkpoint begins where the last one ends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from domain.kernel.errors import Unavailable
from projections.audit.chain import LogDamaged
from projections.audit.sealing import due, seal
from projections.audit.stored_log import StoredLog
from projections.consumers.leases import Assignment, ShardLeases
from projections.kernel.background_task import OperatorNeeded
from projections.kernel.database.database import Database, unavailable
from projections.vault.vault import Vault
from projections.webhook.checkpoint_deliveries import note_receivers, notify_of_checkpoint
from workers.kernel.leased_worker import LeasedWorker
from workers.kernel.quiet import QuietMode
from workers.kernel.wakeups import POLL, Waker
from workers.ports.checkpoints import Anchor, StoredNote

# Places that store checkpoints outside of the database, so that anyone who has the database cannot rewrite the log unnoticed.
# Each place gets the last checkpoint if it lacks it; a checkpoint covers all events before it.

_LAST: Final = """
SELECT c.number, c.position, c.note, ARRAY(SELECT a.kind || ' ' || a.place FROM checkpoint_anchors a WHERE a.checkpoint = c.number)
FROM checkpoints c ORDER BY c.number DESC LIMIT 1
"""
_STORED: Final = "INSERT INTO checkpoint_anchors (checkpoint, kind, place, evidence) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"


class Anchoring:
    """All places of this installation. While it is quiet, no place gets a checkpoint."""

    def __init__(self, database: Database, anchors: Sequence[Anchor], *, quiet: QuietMode | None = None) -> None:
        self._database = database
        self._anchors = anchors
        self._quiet = quiet or QuietMode()

    async def run(self) -> str | None:
        """Send the last checkpoint to the places that lack it. Return the faults of those that did not take it; None if all did."""
        last = await self._database.row(_LAST) if self._anchors and not self._quiet.on else None
        if last is None:
            return None
        number, events, note, stored = last
        lacking = [anchor for anchor in self._anchors if f"{anchor.kind} {anchor.place}" not in stored]
        faults = await asyncio.gather(*(self._keep(anchor, StoredNote(number, events, note)) for anchor in lacking))
        return "; ".join(fault for fault in faults if fault) or None

    async def _keep(self, anchor: Anchor, checkpoint: StoredNote) -> str | None:
        try:
            evidence = await anchor.keep(checkpoint)
        except (Unavailable, OSError) as fault:
            _log.warning(
                "the checkpoint of %d events is not stored by %s %s: %s", checkpoint.events, anchor.kind, anchor.place, fault
            )
            return f"{anchor.kind} {anchor.place}: {fault}"
        await self._database.execute(_STORED, (checkpoint.number, anchor.kind, anchor.place, evidence))
        return None


CONSUMER: Final = "sealer"
_STATEMENT: Final = 60.0
"""Seconds for a statement of a checkpoint, and between two of them. A checkpoint has about 10,000 events, however long the log is.
"""
_ANCHORS_REST: Final = 30.0
"""Seconds after which a failed place is retried, and receivers that took a checkpoint are looked up."""

_log = logging.getLogger(__name__)


class Sealer(LeasedWorker):
    """A member of the sealer: active, or standing by."""

    def __init__(
        self,
        database: Database,
        vault: Vault,
        *,
        anchoring: Anchoring,
        seconds: float,
        leases: ShardLeases,
        position: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`position` returns the end of the log as far as this process has read it; None if it does not read it."""
        super().__init__(leases, Waker())
        self._position = position
        self._sealed_at: int | None = None
        self._database = database
        self._vault = vault
        self._anchoring = anchoring
        self._seconds = seconds
        self._unanchored: str | None = None
        self._anchor_at = 0.0
        self._unnotified = False

    @property
    def _warning(self) -> str | None:
        return self._unanchored

    async def _turn(self) -> None:
        await self._renew()
        if not self._assignment.leases or time.monotonic() >= self._assignment.until:
            await self._waker.sleep(self._leases.lease / 5)
            return
        is_due = await self._is_due()
        began = time.monotonic()
        sealed = is_due and await asyncio.to_thread(self._seal)
        took = time.monotonic() - began
        self._unnotified = self._unnotified or sealed
        if self._unnotified:
            self._unnotified = not await notify_of_checkpoint(self._database)
        if sealed or time.monotonic() >= self._anchor_at:
            self._unanchored = await self._anchoring.run()
            await note_receivers(self._database)
            self._anchor_at = time.monotonic() + _ANCHORS_REST
        # There may be more to seal at once. Until then the other tasks of the process have a processor.
        await self._waker.sleep(took if sealed else POLL)

    async def _is_due(self) -> bool:
        """Return True if a checkpoint is due. A log that is sealed up to the end, and has not grown since, is not looked at."""
        position = self._position()
        if position is not None and position == self._sealed_at:
            return False
        unsealed = await due(self._database, seconds=self._seconds)
        self._sealed_at = None if unsealed.events else position
        return unsealed.now

    def _seal(self) -> bool:
        """Seal the log. Return True if there is a new checkpoint; then there may be more to seal at once."""
        conninfo = self._database.conninfo
        try:
            with unavailable(), StoredLog.connected(conninfo, purpose="sealer", seconds=_STATEMENT) as stored:
                sealed = seal(stored, self._vault)
        except LogDamaged as damage:
            raise OperatorNeeded(
                f"the log is damaged at position {damage.position}: {damage.reason}; nothing is sealed until it is repaired"
            ) from damage
        if sealed is None:
            return False
        _log.info("the log is sealed up to position %d", sealed.checkpoint.events)
        return True

    async def _apply_assignment(self, assignment: Assignment) -> None:
        """Notify again: the previous member may have ended between a checkpoint and its notifications."""
        self._unnotified = self._unnotified or (bool(assignment.leases) and not self._assignment.leases)
