"""Fills the index of the audit: the positions of the log by kind, type, actor, end user and transaction."""

from __future__ import annotations

from typing import Final

from projections.kernel.database.database import Database

_PART: Final = 10_000
_LOCK: Final = 0x6D6C206175646974
"""An advisory lock, “ml audit”.

An erasure of causes changes the index in its append: it waits for a part that is being inserted, and a part waits for it. A lock of
the table would not do: waiting for one ends an autovacuum of the table, and holding it prevents one.
"""
_BEHIND: Final = """
SELECT 1 WHERE (SELECT coalesce(max(position), 0) FROM audit_index) < (SELECT coalesce(max(last_position), 0) FROM commits)
"""
_FILL: Final = f"""
WITH reached AS MATERIALIZED (SELECT coalesce(max(position), 0) AS position FROM audit_index)
INSERT INTO audit_index
SELECT e.position, split_part(e.originator_id, ':', 1), e.topic, e.metadata->>'actor', e.metadata->>'end_user',
    e.metadata->>'correlation_id'
FROM events e, reached r WHERE e.position > r.position AND e.position <= r.position + {_PART}
ORDER BY e.position
"""


async def fill(database: Database) -> bool:
    """Add the next part of the log, and return True if there may be more."""
    if not await database.rows(_BEHIND):
        return False
    async with database.connection() as connection, connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        added = (await connection.execute(_FILL.encode())).rowcount
    return added == _PART
