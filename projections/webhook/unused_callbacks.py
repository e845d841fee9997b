"""Callbacks that may be removed; see docs/adr/0036-callbacks-are-a-kind-of-their-own.md.

A callback is unused if no job has named it for a day, no unfinished job names it, and all deliveries to it are finished. The last
is certain only when the fan-out has read everything that these jobs did: then it makes no further delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from uuid import UUID

from domain.kernel.named_callback import callback_scope
from domain.webhook.callback import Callback
from projections.kernel.database.arrays import texts, uuids
from projections.kernel.database.database import Database
from projections.log.reader import HEAD

AT_ONCE = 500

# The label of a callback is the day on which it was last named. A single statement reads the claims of jobs and the head at one
# moment: what happens to these jobs after it names the callback again. There is a subquery for each callback, since a join might
# read all claims. It reads in the order of the index: if a few callbacks have nearly all claims, the planner would otherwise
# expect to find one early in a scan of the table.
_WITHOUT_JOBS = f"""
SELECT ({HEAD}), r.label, r.id::uuid FROM record_view r
WHERE r.kind = '{Callback.KIND}' AND NOT r.deleted AND r.label < %(before)s AND (r.label, r.id) > (%(label)s, %(id)s)
  AND (SELECT true FROM unique_claims c WHERE c.scope = '{callback_scope("")}' || r.id ORDER BY c.value LIMIT 1) IS NULL
ORDER BY r.label, r.id LIMIT {AT_ONCE}
"""
_READ_TO = "SELECT coalesce(min(position), 0) FROM consumer_shards WHERE consumer = %s"
_WITHOUT_PENDING = """
SELECT asked.webhook FROM unnest(%s::uuid[]) AS asked (webhook)
WHERE NOT EXISTS (SELECT FROM pending_deliveries d WHERE d.webhook = asked.webhook)
"""
_FORGET = f"""
WITH forgotten AS (
    DELETE FROM record_view WHERE kind = '{Callback.KIND}' AND id = ANY(%s::text[]) AND deleted RETURNING id
)
DELETE FROM delivery_endpoints USING forgotten WHERE webhook = forgotten.id::uuid
"""

Place = tuple[str, str]
"""The place of a callback in the order of these pages: the day on which it was last named, and its id."""
FIRST: Final[Place] = ("", "")


@dataclass(frozen=True, slots=True)
class WithoutJobs:
    """A page of callbacks that no unfinished job named at a position of the log. `last` is the place of the last one."""

    position: int
    callbacks: Sequence[UUID]
    last: Place


async def without_jobs(database: Database, *, named_before: date, after: Place) -> WithoutJobs | None:
    """Return the page after a place, of up to `AT_ONCE` callbacks; None if there are no more."""
    rows = await database.rows(_WITHOUT_JOBS, {"before": named_before.isoformat(), "label": after[0], "id": after[1]})
    if not rows:
        return None
    position, day, last = rows[-1]
    return WithoutJobs(position, [callback for *_, callback in rows], (day, str(last)))


async def read_to(database: Database, consumer: str) -> int:
    """Return the position up to which a fan-out has read."""
    [(position,)] = await database.rows(_READ_TO, (consumer,))
    return int(position)


async def without_pending(database: Database, callbacks: Sequence[UUID]) -> Sequence[UUID]:
    return [callback for (callback,) in await database.rows(_WITHOUT_PENDING, (uuids(callbacks),))]


async def forget(database: Database, callbacks: Sequence[UUID]) -> None:
    """Delete the rows of deleted callbacks. Their events stay in the log; a callback that is created again gets new rows."""
    await database.execute(_FORGET, (texts([str(callback) for callback in callbacks]),))
