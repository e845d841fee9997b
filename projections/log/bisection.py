"""Binary search in the log by time: positions and versions have no gaps, and recorded times never decrease.

A search takes a few look-ups, however large the log is, and does not depend on the table's statistics.
"""

from __future__ import annotations

from datetime import datetime

from projections.kernel.database.database import Pool
from projections.log.reader import HEAD

_SEARCH = """
WITH RECURSIVE halved (low, high) AS (
    SELECT 0::bigint, {last}
  UNION ALL
    SELECT CASE WHEN early THEN middle ELSE low END, CASE WHEN early THEN high ELSE middle - 1 END
    FROM (SELECT low, high, middle,
            (SELECT recorded_at {compared} %(moment)s FROM {table} {number} = middle) AS early
          FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM halved WHERE low < high) AS step) AS seen
)
SELECT low FROM halved WHERE low = high
"""
_POSITIONS = {"last": f"({HEAD})", "table": "events WHERE", "number": "position"}
_POSITION_AT = _SEARCH.format(compared="<=", **_POSITIONS)
_POSITION_BEFORE = _SEARCH.format(compared="<", **_POSITIONS)
_VERSION_AT = _SEARCH.format(
    last="(SELECT coalesce(max(version), 0) FROM stream_versions WHERE stream = stream_key(%(stream)s))",
    table="stream_events WHERE stream = stream_key(%(stream)s) AND",
    number="version",
    compared="<=",
)


async def position_at(pool: Pool, moment: datetime) -> int:
    """Return the last position that was recorded at or before this time; 0 if there is none."""
    return await _number(pool, _POSITION_AT, moment=moment)


async def position_before(pool: Pool, moment: datetime) -> int:
    """Return the last position that was recorded before this time; 0 if there is none."""
    return await _number(pool, _POSITION_BEFORE, moment=moment)


async def version_at(pool: Pool, stream: str, *, moment: datetime) -> int:
    """Return the last version of a stream that was recorded at or before this time; 0 if there is none."""
    return await _number(pool, _VERSION_AT, moment=moment, stream=stream)


async def _number(pool: Pool, question: str, **named: object) -> int:
    row = await pool.row(question, named)
    return int(row[0]) if row is not None else 0
