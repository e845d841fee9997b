"""Queries of the state of publishing points of live Events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from domain.channel.channel import StatusCheckStrategy
from domain.channel.points import UNKNOWN, WatchedPoint
from projections.event.view import STREAMING_STATES
from projections.kernel.data_loader import DataLoader
from projections.kernel.database.arrays import uuids
from projections.kernel.database.database import Database
from projections.publishing_point.samples import FRESH

_FRESH: Final = f"""(p.sampled_at > clock_timestamp() - interval '{FRESH} seconds'
    AND p.sampled_at < clock_timestamp() + interval '1 second')"""
"""A condition for samples that are still valid. A sample from further ahead was taken before the clock was set back; one second is
tolerated for clocks that differ, for example after a failover."""
_PROBES: Final = f"""
p.encoder, p.point, p.address, p.strategy, CASE WHEN {_FRESH} THEN p.state ELSE '{UNKNOWN}' END, p.receiving AND {_FRESH},
p.last_updated
"""
_LIVE: Final = f"NOT e.deleted AND e.state IN ({STREAMING_STATES})"
_OF_EVENTS: Final = f"""
SELECT e.id, {_LIVE}, c.id::uuid, c.version, {_PROBES} FROM event_view e
LEFT JOIN record_view c ON c.kind = 'channel' AND c.id = e.channel_id::text AND NOT c.deleted
LEFT JOIN publishing_point_probes p ON p.channel_id = e.channel_id
"""
_OF_CHANNEL: Final = f"""
SELECT e.id, e.id IS NOT NULL, c.id::uuid, c.version, {_PROBES} FROM record_view c
LEFT JOIN event_view e ON e.channel_id = c.id::uuid AND {_LIVE}
LEFT JOIN publishing_point_probes p ON p.channel_id = c.id::uuid
WHERE c.kind = 'channel' AND c.id = %s AND NOT c.deleted
"""
_OF_POINTS: Final = f"SELECT p.channel_id, {_PROBES} FROM publishing_point_probes p WHERE p.channel_id = ANY(%s)"
ON_AIR: Final = "on_air"
NOT_RECEIVING: Final = "not_receiving"
NOT_STARTED: Final = "not_started"
_COUNTED: Final = f"""
SELECT CASE WHEN NOT {_FRESH} OR p.state = '{UNKNOWN}' THEN '{UNKNOWN}' WHEN p.state <> 'started' THEN '{NOT_STARTED}'
    WHEN p.receiving THEN '{ON_AIR}' ELSE '{NOT_RECEIVING}' END, count(*)
FROM publishing_point_probes p
WHERE p.channel_id = ANY(ARRAY(SELECT e.channel_id FROM event_view e WHERE {_LIVE} AND e.channel_id IS NOT NULL)) GROUP BY 1
"""
_SETTLED: Final = 60.0
_FAILING: Final = f"""
SELECT max(failing_since) FROM publishing_point_probes p
WHERE channel_id = %s AND sampled_at > clock_timestamp() - interval '{_SETTLED} seconds'
HAVING bool_and(failing_since IS NOT NULL AND {_FRESH})
"""


@dataclass(frozen=True, slots=True)
class PointState:
    """The state of a point; unknown if there is no sample of the last seconds. `address` is the fingerprint of the
    sampled address."""

    address: int
    strategy: int
    state: str
    receiving: bool
    last_updated: datetime | None

    @property
    def has_started(self) -> bool:
        return self.state == "started"


States = Mapping[tuple[int, int], PointState]
"""The states by the index of the encoder and that of the point."""


def state_of(point: WatchedPoint, states: States) -> PointState | None:
    """Return the state of a point. Samples of another address do not count, and a point that is not checked has none."""
    state = states.get((point.encoder, point.index))
    unchecked = point.strategy is StatusCheckStrategy.NONE
    return None if state is None or unchecked or state.address != point.fingerprint else state


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """A live Event, its channel, if it has one, and the states of that channel's points."""

    id: UUID
    channel: UUID | None
    version: int | None
    states: dict[tuple[int, int], PointState] = field(default_factory=dict)


class PointStates:
    """Queries of publishing points. The database's clock decides which samples are valid."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._of_channel = DataLoader[UUID, States](self._load)

    async def of_live_events(self) -> list[LiveEvent]:
        return _events(await self._database.lists.rows(f"{_OF_EVENTS} WHERE {_LIVE}"))

    async def of_event(self, event: UUID) -> list[LiveEvent] | None:
        """Return the live Event with this id in a list; empty if the Event is not live, None if it does not exist."""
        rows = await self._database.rows(f"{_OF_EVENTS} WHERE e.id = %s AND NOT e.deleted", (event,))
        return _events(rows) if rows else None

    async def of_channel(self, channel: UUID) -> list[LiveEvent] | None:
        """Return the live Events on this channel; None if there is no such channel."""
        rows = await self._database.rows(_OF_CHANNEL, (str(channel),))
        return _events(rows) if rows else None

    async def of_points(self, channel: UUID) -> States:
        """Return the states of the points of one channel. Calls at the same moment share one query."""
        return await self._of_channel(channel) or {}

    async def counts(self) -> dict[str, int]:
        """Return the numbers of points of live Events that are on the air, have started and receive nothing, have not started, or
        are unknown. A point that was never sampled is not counted."""
        zeros = dict.fromkeys((ON_AIR, NOT_RECEIVING, NOT_STARTED, UNKNOWN), 0)
        return zeros | dict(await self._database.lists.rows(_COUNTED))

    async def all_failing_since(self, channel: UUID) -> datetime | None:
        """Return the time since when all publishing points of a channel have failed without interruption.

        Return None if a point is on the air, or is not known to fail, because it is not sampled or the fault is not its own.
        """
        row = await self._database.row(_FAILING, (channel,))
        return row[0] if row else None

    async def _load(self, channels: Sequence[UUID]) -> dict[UUID, States]:
        states: dict[UUID, dict[tuple[int, int], PointState]] = {}
        for channel, *probe in await self._database.rows(_OF_POINTS, (uuids(channels),)):
            _add(states.setdefault(channel, {}), probe)
        return dict(states)


def _events(rows: Iterable[Sequence[Any]]) -> list[LiveEvent]:
    events: dict[UUID, LiveEvent] = {}
    for key, live, channel, version, *probe in rows:
        if live:
            event = events.get(key)
            if event is None:
                event = events[key] = LiveEvent(key, channel, version)
            _add(event.states, probe)
    return list(events.values())


def _add(states: dict[tuple[int, int], PointState], probe: Sequence[Any]) -> None:
    encoder, point, address, strategy, state, receiving, last_updated = probe
    if encoder is not None:
        states[encoder, point] = PointState(address, strategy, state, receiving, last_updated)
