"""Places that store checkpoints outside of the database, so that anyone who has the database cannot rewrite the log unnoticed.

Each place gets the last checkpoint if it lacks it; a checkpoint covers all events before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from domain.kernel.errors import Unavailable
from projections.kernel.database import Database
from workers.checkpoint_ports import Anchor, StoredNote
from workers.kernel.quiet import QuietMode

_LAST: Final = """
SELECT c.number, c.position, c.note, ARRAY(SELECT a.kind || ' ' || a.place FROM checkpoint_anchors a WHERE a.checkpoint = c.number)
FROM checkpoints c ORDER BY c.number DESC LIMIT 1
"""
_STORED: Final = "INSERT INTO checkpoint_anchors (checkpoint, kind, place, evidence) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"

_log = logging.getLogger(__name__)


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
