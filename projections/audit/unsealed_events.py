"""The amount of the log without a checkpoint, and the age of checkpoints that are stored only in the database. For operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from projections.kernel.database.database import Pool

_NOW: Final = """
WITH last AS (SELECT position FROM checkpoints ORDER BY number DESC LIMIT 1),
anchored AS (SELECT checkpoint FROM checkpoint_anchors ORDER BY checkpoint DESC LIMIT 1)
SELECT coalesce((SELECT max(last_position) FROM commits), 0) - coalesce((SELECT position FROM last), 0),
    coalesce(extract(epoch FROM clock_timestamp() - (
        SELECT recorded_at FROM commits WHERE last_position > coalesce((SELECT position FROM last), 0)
        ORDER BY last_position LIMIT 1
    )), 0)::float8,
    coalesce(extract(epoch FROM clock_timestamp() - (
        SELECT sealed_at FROM checkpoints WHERE number > (SELECT checkpoint FROM anchored) ORDER BY number LIMIT 1
    )), 0)::float8
"""


@dataclass(frozen=True, slots=True)
class UnsealedEvents:
    """The events after the last checkpoint. `seconds` is the age of the first of them.

    `unanchored` is the age in seconds of the first checkpoint after the last one that is stored outside; 0 if there is no such
    place.
    """

    events: int
    seconds: float
    unanchored: float


class Unsealed:
    """Reads the unsealed events from the tables of the log."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def now(self) -> UnsealedEvents:
        [row] = await self._pool.rows(_NOW)
        return UnsealedEvents(*row)
