"""The state of the publishing points of the built-in origin, in memory: which are published, which sessions of encoders run, and
which recordings are still to be captured.

Each segment needs it, so the database is read once for all questions within half a second, and not at all while there are none.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from time import monotonic
from typing import Final
from uuid import UUID

from domain.channel.points import watched_points
from domain.event.values import COMPOSING, LIVE, EventDetails, EventState
from projections.event.view import STREAMING_STATES
from projections.kernel.background_task import TRANSIENT, start_task
from projections.kernel.database.arrays import texts
from projections.kernel.database.database import Database
from projections.publishing_point.points import ChannelPointsReader
from projections.session.store import UNFINISHED

_ADD: Final = "INSERT INTO lost_recordings (point, session) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_LATEST: Final = """
SELECT point, session, lost_at FROM lost_recordings
WHERE lost_at > clock_timestamp() - interval '1 day' ORDER BY lost_at DESC LIMIT 100
"""


@dataclass(frozen=True, slots=True)
class LostRecording:
    """A recording of one session at a publishing point."""

    point: str
    session: int
    lost_at: datetime


class LostRecordings:
    """The lost recordings of the last day, the latest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, point: str, session: int) -> None:
        await self._database.execute(_ADD, (point, session))

    async def latest(self) -> Sequence[LostRecording]:
        return [LostRecording(*row) for row in await self._database.lists.rows(_LATEST)]


async def remove_lost_recordings(database: Database, before: datetime) -> int:
    """Remove entries from before that time, and return their number."""
    return await database.execute("DELETE FROM lost_recordings WHERE lost_at < %s", (before,))


PointName = Callable[[str], str | None]
"""A function that returns the name of the publishing point of the built-in origin at a URL; None if there is none."""
IsAwaited = Callable[[str, int], bool | None]
"""A function that returns True if a recording, given by publishing point and session, is still to be captured; None if the
recording is unknown."""
Recorded = Mapping[str, Sequence[tuple[int, bool]]]
"""The last sessions of Events by publishing point, in order, each with True if its recording is still to be captured."""

FRESH: Final = 0.5
_LONGEST: Final = 1.0
"""The number of seconds that an answer waits for the database."""
_AGAIN: Final = 0.1
"""The number of seconds before an unknown session is looked up once more."""
_RECORDED_FRESH: Final = 30.0
_LIVE: Final = f"""
SELECT coalesce(e.on_air_channel_id, e.channel_id), c.version, e.on_air_channel_id IS NOT NULL,
    CASE WHEN e.state = {int(EventState.LIVE_PUBLISHED)} THEN (e.document::jsonb->>'public_since')::timestamptz END
FROM event_view e
JOIN record_view c ON c.kind = 'channel' AND c.id = coalesce(e.on_air_channel_id, e.channel_id)::text AND NOT c.deleted
WHERE NOT e.deleted AND (e.state IN ({STREAMING_STATES}) OR e.on_air_channel_id IS NOT NULL)
"""
_SHOWN: Final = f"""
SELECT e.channel_id, c.version, e.document FROM event_view e
JOIN record_view c ON c.kind = 'channel' AND c.id = e.channel_id::text AND NOT c.deleted
WHERE NOT e.deleted AND e.state = {int(EventState.INSTANT_VOD)}
    AND (e.document::jsonb->>'actual_live_end')::timestamptz > now() - make_interval(hours => %s)
"""
_SESSIONS: Final = "SELECT number FROM sessions WHERE kind = 'encoder' AND state = ANY(%s::text[])"
_RECORDED: Final = """
SELECT e.channel_id, c.version, e.state, (e.document::jsonb->'encoding'->>'session')::bigint FROM event_view e
JOIN record_view c ON c.kind = 'channel' AND c.id = e.channel_id::text AND NOT c.deleted
WHERE NOT e.deleted AND e.date_modified > now() - make_interval(hours => %s)
    AND (e.document::jsonb->'encoding'->>'session')::bigint > 0
"""
_TO_CAPTURE: Final = (
    LIVE
    | COMPOSING
    | {
        EventState.SUSPENDED,
        EventState.STOPPED,
        EventState.INSTANT_VOD,
        EventState.INSTANT_VOD_BACKUP,
        EventState.PRE_VOD,
        EventState.VOD_INGESTING,
        EventState.VOD_ERROR,
        EventState.LIVE_STARTING,
        EventState.LIVE_STOPPING,
    }
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    public: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """The parts of the points that everyone may play, as begins and ends in Unix time. A stream that runs is the last."""
    sessions: frozenset[int] = frozenset()
    at: float = float("-inf")


class OwnPoints:
    """Answers from memory. While the database does not answer, the last known state applies: a published stream continues, and none
    is newly published."""

    def __init__(self, database: Database, channels: ChannelPointsReader, name: PointName, *, hours: int) -> None:
        """Create the state for recordings that are stored for `hours` hours."""
        self._database = database
        self._channels = channels
        self._name = name
        self._hours = hours
        self._lost = LostRecordings(database)
        self._snapshot = _Snapshot()
        self._reading: asyncio.Task[None] | None = None
        self._failing = False
        self._recorded: Recorded = {}
        self._recorded_at = float("-inf")

    async def public_parts(self, point: str) -> Sequence[tuple[float, float]]:
        """Return the recorded parts of Events in the state INSTANT_VOD, and the time since which the Event on the air at this
        point, or else a live Event of its channel, has been in the state LIVE_PUBLISHED, with an infinite end."""
        return (await self._fresh(FRESH)).public.get(point, ())

    async def runs(self, session: int) -> bool:
        """Return True if a session of an encoder that the product started has not ended, or if this is unknown."""
        if session in (await self._fresh(FRESH)).sessions:
            return True
        return session in (await self._fresh(_AGAIN)).sessions or self._failing

    async def awaited(self) -> IsAwaited:
        """Return the function that tells which recordings an Event still waits to capture."""
        if monotonic() - self._recorded_at > _RECORDED_FRESH:
            with suppress(*TRANSIENT):
                self._recorded, self._recorded_at = await self._read_recorded(), monotonic()
        return partial(_is_awaited, self._recorded)

    async def lost(self, point: str, session: int) -> None:
        """Record that a recording was removed although it was still to be captured."""
        _log.error("the recording of session %d at %s was removed to make room, before it was captured", session, point)
        with suppress(*TRANSIENT):
            await self._lost.add(point, session)

    async def _fresh(self, seconds: float) -> _Snapshot:
        if monotonic() - self._snapshot.at >= seconds:
            if self._reading is None or self._reading.done():
                self._reading = start_task(self._read(), what="reading of publishing points")
            if not self._failing:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LONGEST):
                        await asyncio.shield(self._reading)
        return self._snapshot

    async def _read(self) -> None:
        at = monotonic()
        try:
            async with asyncio.timeout(10 * _LONGEST):
                public = await self._read_shown()
                for name, since in (await self._read_published()).items():
                    public.setdefault(name, []).append((since, inf))
                numbers = await self._database.rows(_SESSIONS, (texts(list(UNFINISHED)),))
        except TRANSIENT:
            self._failing = True
            return
        self._snapshot = _Snapshot(public, frozenset(number for (number,) in numbers), at)
        self._failing = False

    async def _read_published(self) -> Mapping[str, float]:
        """Return the published points. If Events of several channels send to one point, all of them must be published."""
        rows = await self._database.rows(_LIVE)
        names = await self._names({channel: version for channel, version, _, _ in rows})
        on_air, others = dict[str, float](), dict[str, float]()
        for channel, _, sends, public_since in rows:
            since = inf if public_since is None else public_since.timestamp()
            for name in names.get(channel, ()):
                if sends:
                    on_air[name] = max(since, on_air.get(name, since))
                else:
                    others[name] = min(since, others.get(name, since))
        return {name: since for name, since in (others | on_air).items() if since < inf}

    async def _read_shown(self) -> dict[str, list[tuple[float, float]]]:
        """Return the recorded parts of Events whose recorded stream is shown, by point and in order."""
        rows = await self._database.rows(_SHOWN, (self._hours + 1,))
        names = await self._names({channel: version for channel, version, _ in rows})
        shown: dict[str, list[tuple[float, float]]] = {}
        for channel, _, document in rows:
            if (part := EventDetails.model_validate_json(document).recorded_part) is not None:
                begin, end = (moment.timestamp() for moment in part)
                for name in names.get(channel, ()):
                    shown.setdefault(name, []).append((begin, end))
        return {name: sorted(parts) for name, parts in shown.items()}

    async def _names(self, versions: Mapping[UUID, int]) -> Mapping[UUID, frozenset[str]]:
        channel_points = await self._channels.of(versions)
        return {
            channel: frozenset(name for point in points.points if (name := self._name(point.url)) is not None)
            for channel, points in channel_points.items()
        }

    async def _read_recorded(self) -> Recorded:
        rows = await self._database.rows(_RECORDED, (self._hours + 1,))
        names = await self._names({channel: version for channel, version, _, _ in rows})
        recorded: dict[str, list[tuple[int, bool]]] = {}
        for channel, _, state, session in rows:
            for name in names.get(channel, ()):
                recorded.setdefault(name, []).append((session, state in _TO_CAPTURE))
        return {name: sorted(sessions) for name, sessions in recorded.items()}


def _is_awaited(recorded: Recorded, point: str, session: int) -> bool | None:
    """Return True if the recording is still to be captured. An Event stores its last session; the sessions before it, down to the
    last one of the previous Event, belonged to it too."""
    sessions = recorded.get(point, ())
    at = bisect_left(sessions, (session, False))
    return sessions[at][1] if at < len(sessions) else None


_CHANNELS: Final = "SELECT id::uuid, version FROM record_view WHERE kind = 'channel' AND NOT deleted"


class StoredPointOwners:
    """The adapter of a port of `ConfigurationHandlers`."""

    def __init__(self, database: Database, channels: ChannelPointsReader, name: PointName) -> None:
        self._database = database
        self._channels = channels
        self._name = name

    async def taken_points(self, text: str, *, channel: object) -> Sequence[str]:
        """Return the points in a channel's configuration to which other channels send, except those to which it already sends."""
        configured = {name for point in watched_points(text) if (name := self._name(point.url)) is not None}
        if not configured:
            return ()
        versions: dict[UUID, int] = dict(await self._database.rows(_CHANNELS))
        names_by_channel = {
            key: {name for point in points.points if (name := self._name(point.url)) is not None}
            for key, points in (await self._channels.of(versions)).items()
        }
        own = names_by_channel.pop(UUID(str(channel)), set())
        return sorted((configured - own) & {name for names in names_by_channel.values() for name in names})
