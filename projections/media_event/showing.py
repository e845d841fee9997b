"""Finds the Events that show a record, such as a room, and that may be on display: live Events, and those that come next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.media_event.values import LIVE
from projections.kernel.arrays import uuids
from projections.kernel.database import Database

MOST_LIVE: Final = 10_000
MOST_AHEAD: Final = 1_000
_STATES: Final = ", ".join(str(int(state)) for state in sorted(LIVE))
_CONDITIONS: Final = {
    "room_id": "room_id = ANY(%(keys)s::uuid[])",
    "event_type_id": "event_type_id = ANY(%(keys)s::uuid[])",
    "category_ids": "category_ids && %(keys)s::uuid[]",
}
_SHOWING: Final = f"""
(SELECT id FROM event_view WHERE NOT deleted AND state IN ({_STATES}) AND {{condition}}
 ORDER BY scheduled_start, id LIMIT {MOST_LIVE})
UNION
(SELECT id FROM event_view WHERE NOT deleted AND scheduled_start >= %(at)s AND {{condition}}
 ORDER BY scheduled_start, id LIMIT {MOST_AHEAD})
ORDER BY id
"""


async def events_that_show(database: Database, keys: Sequence[UUID], *, link: str, at: datetime) -> Sequence[str]:
    """Return the ids of live Events, at most `MOST_LIVE`, and of the next `MOST_AHEAD` by their scheduled start from `at` on, whose
    field `link` names one of the records."""
    question = _SHOWING.format(condition=_CONDITIONS[link])
    return [str(key) for (key,) in await database.rows(question, {"keys": uuids(list(keys)), "at": at})]
