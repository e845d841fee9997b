"""Samples of publishing points, as their prober writes them.

Only the member with the lease on a point's shard writes, so a process that was frozen beyond the end of its lease writes nothing.
Two samples are compared here, so that the comparison continues when another process becomes the prober.

The clock of the database may be set back. A sample from the future does not count and the next one replaces it; no time of a
movement or failure is later than the present.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from psycopg import DataError

from domain.channel.points import UNKNOWN
from projections.event.view import STREAMING_STATES
from projections.kernel.database.arrays import bigints, booleans, instants, texts, uuids
from projections.kernel.database.database import Database

CONSUMER: Final = "prober"
FRESH: Final = 15.0
"""The number of seconds after which a sample is outdated, and within which data must have arrived for a point to be receiving."""
_KEPT: Final = 3600.0
_REFUSED: Final = (DataError, UnicodeEncodeError)
"""The errors of a text that the database cannot store; the second one is raised before it is sent."""

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
    """A channel of live Events in its present version, and the Event whose hosts apply to its points: the one on the air, else any.

    `provision` is the version of what is provisioned for that Event. Both are None if nothing is provisioned.
    """

    version: int
    event: UUID | None = None
    provision: int | None = None


@dataclass(frozen=True, slots=True)
class PointSample:
    """The result of probing a point once.

    `receiving` is the server's own report; `counted` means that a point that is not on the air counts as failing; `age` is in
    seconds.
    """

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
    """The samples of the whole installation, and the channels to be sampled."""

    def __init__(self, database: Database, *, member: UUID) -> None:
        self._database = database
        self._member = member
        self._refused: set[PointKey] = set()

    async def write(self, samples: Sequence[PointSample]) -> int:
        """Write samples, at most one for each point, and return the number of written ones.

        Samples of shards that the member no longer holds are left out, and so is a sample whose content the database refuses. A
        refused batch is halved, and each half is written separately.
        """
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

    async def _write(self, samples: Sequence[PointSample]) -> int:
        return await self._database.execute(
            _WRITE,
            {
                "member": self._member,
                "channels": uuids([sample.key.channel for sample in samples]),
                "encoders": bigints([sample.key.encoder for sample in samples]),
                "points": bigints([sample.key.point for sample in samples]),
                "shards": bigints([sample.shard for sample in samples]),
                "epochs": bigints([sample.epoch for sample in samples]),
                "addresses": bigints([sample.address for sample in samples]),
                "strategies": bigints([sample.strategy for sample in samples]),
                "states": texts([sample.state for sample in samples]),
                "updated": instants([sample.last_updated for sample in samples]),
                "marks": texts([sample.mark or None for sample in samples]),
                "said": booleans([sample.receiving for sample in samples]),
                "counted": booleans([sample.counted for sample in samples]),
                "faults": texts([sample.fault or None for sample in samples]),
                "ages": bigints([round(sample.age * 1_000_000) for sample in samples]),
            },
        )

    async def live_channels(self) -> dict[UUID, LiveChannel]:
        """Return the channels of live Events."""
        return {channel: LiveChannel(*columns) for channel, *columns in await self._database.rows(_LIVE_CHANNELS)}

    async def ages(self, channels: Sequence[UUID]) -> dict[tuple[PointKey, int], float]:
        """Return the number of seconds since each point of these channels was sampled by any process, by point and fingerprint of
        the sampled address."""
        rows = await self._database.rows(_AGES, (uuids(channels), FRESH))
        return {(PointKey(channel, encoder, point), address): age for channel, encoder, point, address, age in rows}

    async def forget(self) -> None:
        """Delete old samples. Refusals of samples are logged again afterwards."""
        self._refused.clear()
        await self._database.execute(_FORGET, (_KEPT,))
