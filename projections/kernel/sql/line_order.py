"""The order of the lines of a log, such as a job's: a line that is committed later has a higher number.

Readers continue after the highest number that they have seen, so a line that was committed later with a lower number would be lost
to them. A process that inserts lines therefore locks their jobs until its commit, and assigns numbers only afterwards.
"""

from __future__ import annotations

from typing import Final

_LINES: Final = 1_819_240_307
"""The key that sets these locks apart from others: any number that nothing else uses."""
_LOCKS: Final = 1024
"""The most locks that one statement takes: jobs share them."""


def numbered_lines(lines: str) -> str:
    """Return the common table expression `numbered`: the rows of `lines` with the column `id`, the number of each row in the log of
    its job.

    The rows of a job are numbered by their column `turn`. `lines` names another expression, which also has the column `job`. Locks
    are always taken in the same order, which avoids deadlocks.
    """
    return f"""locked AS MATERIALIZED (
    SELECT count(pg_advisory_xact_lock({_LINES}, number)) AS jobs
    FROM (SELECT DISTINCT mod(job, {_LOCKS})::integer AS number FROM {lines} ORDER BY 1) AS ordered
), last_numbers AS MATERIALIZED (
    SELECT job, last_number_in_job_log(job) AS number FROM (SELECT DISTINCT job FROM {lines}) AS named, locked WHERE locked.jobs > 0
), numbered AS (
    SELECT number + row_number() OVER (PARTITION BY job ORDER BY turn) AS id, {lines}.* FROM {lines} JOIN last_numbers USING (job)
)"""
