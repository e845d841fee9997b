"""Samples of publishing points, as their prober writes them.

Only the member with the lease on a point's shard writes: a process that was frozen until after its lease writes nothing. Two
samples are compared here, so that the comparison goes on when another process becomes the prober.

The clock of the database may be set back. A sample of the future counts as none, the next one takes its place, and nothing has
moved or failed since later than the present.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg import DataError

from domain.configuration.points import UNKNOWN
from projections.kernel.arrays import bigints, booleans, instants, texts, uuids
from projections.kernel.database import Database
from projections.media_event.view import STREAMING_STATES

CONSUMER: Final = "prober"
FRESH: Final = 15.0
"""Seconds after which a sample says nothing any more, and in which data must have come for a point to be receiving."""
_KEPT: Final = 3600.0
_REFUSED: Final = (DataError, UnicodeEncodeError)
"""A text that the database cannot hold; the second one is found before it is asked."""

_log = logging.getLogger(__name__)

_WRITE = f"""
WITH sample AS (
    SELECT u.*, clock_timestamp() - u.age * interval '1 microsecond' AS at
    FROM unnest(
        %(channels)s::uuid[], %(encoders)s::bigint[], %(points)s::bigint[], %(shards)s::bigint[], %(epochs)s::bigint[],
        %(addresses)s::bigint[], %(strategies)s::bigint[], %(states)s::text[], %(updated)s::timestamptz[], %(marks)s::text[],
        %(said)s::boolean[], %(counted)s::boolean[], %(faults)s::text[], %(ages)s::bigint[]
    ) AS u (channel_id, encoder, point, shard, epoch, address, strategy, state, last_updated, mark, said, counted, fault, age)
    JOIN consumer_shards s ON s.consumer = '{CONSUMER}' AND s.shard = u.shard AND s.epoch = u.epoch AND s.owner = %(member)s
), compared AS (
    SELECT sample.*, b.mark AS mark_before, b.failing_since AS failing_before,
        CASE WHEN sample.mark <> b.mark OR b.moved_at > sample.at THEN sample.at ELSE b.moved_at END AS moved_at
    FROM sample LEFT JOIN publishing_point_probes b
        ON b.channel_id = sample.channel_id AND b.encoder = sample.encoder AND b.point = sample.point
        AND b.address = sample.address AND b.sampled_at > sample.at - interval '{FRESH} seconds'
), judged AS (
    SELECT *, state <> '{UNKNOWN}' AND coalesce(said, true)
        AND coalesce(CASE WHEN mark IS NULL THEN said ELSE moved_at > at - interval '{FRESH} seconds' END, false) AS receiving
    FROM compared
)
INSERT INTO publishing_point_probes AS p (
    channel_id, encoder, point, address, strategy, state, receiving, last_updated, mark, moved_at, failing_since, fault, sampled_at
)
SELECT channel_id, encoder, point, address, strategy, state, receiving, last_updated, coalesce(mark, mark_before), moved_at,
    CASE WHEN counted AND NOT (state = 'started' AND receiving) THEN least(failing_before, at) END, fault, at
FROM judged
ON CONFLICT (channel_id, encoder, point) DO UPDATE SET
    address = excluded.address, strategy = excluded.strategy, state = excluded.state, receiving = excluded.receiving,
    last_updated = coalesce(excluded.last_updated, CASE WHEN p.address = excluded.address THEN p.last_updated END),
    mark = excluded.mark, moved_at = excluded.moved_at, failing_since = excluded.failing_since, fault = excluded.fault,
    sampled_at = excluded.sampled_at
WHERE p.sampled_at < excluded.sampled_at OR p.sampled_at > clock_timestamp()
"""
_LIVE_CHANNELS = f"""
WITH live AS MATERIALIZED (
    SELECT DISTINCT ON (channel_id) channel_id, id FROM event_view
    WHERE NOT deleted AND state IN ({STREAMING_STATES}) AND channel_id IS NOT NULL
    ORDER BY channel_id, on_air_channel_id IS DISTINCT FROM channel_id, id
)
SELECT c.id::uuid, c.version, p.event_id, p.version FROM live
JOIN record_view c ON c.kind = 'channel' AND NOT c.deleted AND c.id = live.channel_id::text
LEFT JOIN provision_view p ON p.event_id = live.id
"""
_AGES = """
SELECT channel_id, encoder, point, address, extract(epoch FROM clock_timestamp() - sampled_at)::float8
FROM publishing_point_probes WHERE channel_id = ANY(%s) AND sampled_at > clock_timestamp() - make_interval(secs => %s)
"""
_FORGET = "DELETE FROM publishing_point_probes WHERE sampled_at < clock_timestamp() - make_interval(secs => %s)"


class PointKey(NamedTuple):
    """A publishing point of a channel."""

    channel: UUID
    encoder: int
    point: int


class LiveChannel(NamedTuple):
    """A channel of live Events in its present version, and the Event whose hosts count for its points, with the version of what is
    provisioned for it: the one on the air, else any; None where nothing is."""

    version: int
    event: UUID | None = None
    provision: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """What one look at a point found. `receiving` is what its server says itself; `counted`: a point that is not on the air counts
    as failing; `age` is in seconds."""

    key: PointKey
    shard: int
    epoch: int
    address: int
    strategy: int
    age: float
    state: str = UNKNOWN
    last_updated: datetime | None = None
    mark: str = ""
    receiving: bool | None = None
    counted: bool = True
    fault: str = ""


class Samples:
    """The samples of the whole installation, and which channels are to be sampled."""

    def __init__(self, database: Database, *, member: UUID) -> None:
        self._database = database
        self._member = member
        self._refused: set[PointKey] = set()

    async def write(self, samples: Sequence[Sample]) -> int:
        """Of several samples of one point there must be one at most. Returns how many were written: those of shards that the member
        does not hold any more are left out, and so is one that the database refuses for what it holds. The halves of what it
        refuses are written on their own."""
        if not samples:
            return 0
        try:
            return await self._write(samples)
        except _REFUSED as fault:
            if len(samples) == 1:
                self._leave_out(samples[0].key, fault)
                return 0
        half = len(samples) // 2
        return await self.write(samples[:half]) + await self.write(samples[half:])

    def _leave_out(self, key: PointKey, fault: Exception) -> None:
        if key not in self._refused:
            self._refused.add(key)
            point = f"publishing point {key.point} of encoder {key.encoder} of the channel {key.channel}"
            _log.warning("the database refuses a sample of the %s: %s; it is left out", point, type(fault).__name__)

    async def _write(self, samples: Sequence[Sample]) -> int:
        return await self._database.execute(
            _WRITE,
            {
                "member": self._member,
                "channels": uuids([one.key.channel for one in samples]),
                "encoders": bigints([one.key.encoder for one in samples]),
                "points": bigints([one.key.point for one in samples]),
                "shards": bigints([one.shard for one in samples]),
                "epochs": bigints([one.epoch for one in samples]),
                "addresses": bigints([one.address for one in samples]),
                "strategies": bigints([one.strategy for one in samples]),
                "states": texts([one.state for one in samples]),
                "updated": instants([one.last_updated for one in samples]),
                "marks": texts([one.mark or None for one in samples]),
                "said": booleans([one.receiving for one in samples]),
                "counted": booleans([one.counted for one in samples]),
                "faults": texts([one.fault or None for one in samples]),
                "ages": bigints([round(one.age * 1_000_000) for one in samples]),
            },
        )

    async def live_channels(self) -> dict[UUID, LiveChannel]:
        """The channels of live Events."""
        return {channel: LiveChannel(*found) for channel, *found in await self._database.rows(_LIVE_CHANNELS)}

    async def ages(self, channels: Sequence[UUID]) -> dict[tuple[PointKey, int], float]:
        """How many seconds ago each point of these channels was sampled, by anybody, with the fingerprint of what was asked."""
        rows = await self._database.rows(_AGES, (uuids(channels), FRESH))
        return {(PointKey(channel, encoder, point), address): age for channel, encoder, point, address, age in rows}

    async def forget(self) -> None:
        """Delete what was sampled long ago. Points whose samples are refused are told of again."""
        self._refused.clear()
        await self._database.execute(_FORGET, (_KEPT,))
