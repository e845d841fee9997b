"""The order of the lines of a log, such as a job's: one that is committed later has a higher number.

Readers go on after the highest number that they have seen: a line that is committed after it with a lower number would be lost to
them. Whoever inserts lines locks their jobs first, until its commit; numbers are drawn after that.
"""

from __future__ import annotations

from typing import Final

_LINES: Final = 1_819_240_307
"""Sets these locks apart from others. Any number that nothing else has."""
_LOCKS: Final = 1024
"""So many at most for one statement: jobs share them."""


def line_locks(jobs: str) -> str:
    """The common table expression `locked`, a row that is there when the jobs are locked: an INSERT of lines selects from it too.
    `jobs` is a query that gives the column `job`. Always in the same order, against deadlocks."""
    return f"""locked AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock({_LINES}, number)) AS jobs
    FROM (SELECT DISTINCT mod(job, {_LOCKS})::integer AS number FROM ({jobs}) AS named ORDER BY 1) AS ordered
)"""
