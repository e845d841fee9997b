"""The publishing points of channels, from their configurations, parsed once for each version of a channel."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from domain.channel.hosts import Hosts
from domain.channel.points import WatchedPoint, watched_points
from domain.client.roles import Role
from domain.kernel.clock import Clock
from domain.kernel.encryption import SecretRef
from domain.record.kinds.channel import Channel, ChannelDetails
from domain.record.ports import RecordRow
from projections.client.directory import ClientDirectory
from projections.kernel.background_task import TRANSIENT
from projections.kernel.database.database import Database
from projections.record.queries import RecordQueries

_ACTORS: Final = """
(SELECT s.metadata->>'actor' FROM stream_events s WHERE s.stream = stream_key('channel:' || %(channel)s)
ORDER BY s.version DESC LIMIT 1)
UNION
SELECT s.metadata->>'actor' FROM event_view e JOIN stream_events s ON s.stream = stream_key('event:' || e.id)
    AND s.version = (e.document::jsonb->'encoding'->>'order')::bigint
WHERE e.on_air_channel_id = %(channel)s::uuid
"""
_MAY_ORDER: Final = frozenset({Role.OPERATOR, Role.ADMIN})
_NO_CLIENTS: Final = frozenset({"system", "redacted", "anonymous"})


class Orderers:
    """Checks the rights of these actors. While the database does not answer, no rights are withdrawn."""

    def __init__(self, database: Database, directory: ClientDirectory, clock: Clock) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock

    async def may_still(self, channel: str) -> bool:
        """Return True if each client among the actors still has a key, and a role that may order this. The product and shells have
        neither."""
        with suppress(*TRANSIENT):
            actors = [actor for (actor,) in await self._database.rows(_ACTORS, {"channel": channel})]
            return all([await self._may(actor) for actor in actors if actor])
        return True

    async def _may(self, actor: str) -> bool:
        if actor in _NO_CLIENTS or actor.startswith("shell:"):
            return True
        client = await self._directory.find(actor)
        if client is None or _MAY_ORDER.isdisjoint(client.roles):
            return False
        return any(key.usable(self._clock()) for key in client.keys)


MOST: Final = 10_000
"""The number of channels in memory."""
_AT_ONCE: Final = 32
"""The number of channels that are parsed before other tasks get a turn."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChannelPoints:
    """The points of one version of a channel. `secrets` maps places in the configuration to secrets.

    A faulty channel is logged once and hides only itself, because all live channels are read together.
    """

    version: int
    name: str
    points: Sequence[WatchedPoint]
    secrets: Mapping[str, SecretRef] = field(repr=False)
    _logged: set[str] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def of(cls, row: RecordRow[ChannelDetails]) -> ChannelPoints:
        unparsed = cls(row.version, row.details.name, [], row.details.secrets)
        try:
            return replace(unparsed, points=watched_points(row.details.configuration_json))
        except Exception as fault:
            unparsed._log_once(fault, "are not watched")
            return unparsed

    @property
    def names_host(self) -> bool:
        """True if the infrastructure that is provisioned for an Event determines the location of a point."""
        return any(point.names_host for point in self.points)

    def at(self, hosts: Hosts) -> ChannelPoints:
        return replace(self, points=[self._fill_in(point, hosts) for point in self.points])

    def _fill_in(self, point: WatchedPoint, hosts: Hosts) -> WatchedPoint:
        try:
            return point.at(hosts)
        except Exception as fault:
            self._log_once(fault, "do not get the hosts that are provisioned")
            return point

    def _log_once(self, fault: Exception, what: str) -> None:
        """Log a fault once, without its message, which may contain an address."""
        if what not in self._logged:
            self._logged.add(what)
            _log.error("publishing points of the channel %r %s: %s", self.name, what, type(fault).__name__)


class ChannelPointsReader:
    """Reads the points of channels, and caches them by version. The cache is cleared after a change of the primary."""

    def __init__(self, database: Database, records: RecordQueries) -> None:
        self._database = database
        self._records = records
        self._timeline = database.timeline
        self._cache: OrderedDict[UUID, ChannelPoints] = OrderedDict()

    async def of(self, versions: Mapping[UUID, int]) -> dict[UUID, ChannelPoints]:
        """Return the points of these channels. A channel that was changed since is returned in its new version; one that is gone is
        absent."""
        if self._timeline != self._database.timeline:
            self._cache.clear()
            self._timeline = self._database.timeline
        current: dict[UUID, ChannelPoints] = {}
        for channel, version in versions.items():
            cached = self._cache.get(channel)
            if cached is not None and cached.version >= version:
                current[channel] = cached
                self._cache.move_to_end(channel)
        missing = [channel for channel in versions if channel not in current]
        return current | await self._read(missing) if missing else current

    async def _read(self, channels: Sequence[UUID]) -> dict[UUID, ChannelPoints]:
        rows = await self._records.by_ids(Channel, channels)
        read: dict[UUID, ChannelPoints] = {}
        for number, row in enumerate(rows):
            read[UUID(row.id)] = ChannelPoints.of(row)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        self._cache.update(read)
        while len(self._cache) > MOST:
            self._cache.popitem(last=False)
        return read
