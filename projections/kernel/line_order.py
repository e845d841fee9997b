"""The order of the lines of a log, such as a job's: one that is committed later has a higher number.

Readers go on after the highest number that they have seen: a line that is committed after it with a lower number would be lost to
them. Whoever inserts lines locks their jobs first, until its commit; numbers are given after that.
"""

from __future__ import annotations

from typing import Final

_LINES: Final = 1_819_240_307
"""Sets these locks apart from others. Any number that nothing else has."""
_LOCKS: Final = 1024
"""So many at most for one statement: jobs share them."""


def numbered_lines(lines: str) -> str:
    """The common table expression `numbered`: the rows of `lines` with the column `id`, the number of each in the log of its
    job. Rows of a job are numbered by their column `turn`. `lines` names another expression, with the column `job` too.

    Locks are taken always in the same order, against deadlocks."""
    return f"""locked AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock({_LINES}, number)) AS jobs
    FROM (SELECT DISTINCT mod(job, {_LOCKS})::integer AS number FROM {lines} ORDER BY 1) AS ordered
), last_numbers AS MATERIALIZED (
    SELECT job, last_number_in_job_log(job) AS number FROM (SELECT DISTINCT job FROM {lines}) AS named, locked WHERE locked.jobs > 0
), numbered AS (
    SELECT number + row_number() OVER (PARTITION BY job ORDER BY turn) AS id, {lines}.* FROM {lines} JOIN last_numbers USING (job)
)"""
