"""The publishing points of channels, from their configurations: parsed once for each version of a channel."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from domain.configuration.hosts import Hosts
from domain.configuration.points import WatchedPoint, watched_points
from domain.kernel.encryption import SecretRef
from domain.records.kinds.channel import Channel
from domain.records.row import RecordRow
from projections.kernel.database import Database
from projections.records.queries import RecordQueries

MOST: Final = 10_000
"""Channels in memory."""
_AT_ONCE: Final = 32
"""Channels that are parsed before others get a turn."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChannelPoints:
    """The points of one version of a channel. `secrets` are by their place in the configuration. A fault of one is logged once and
    hides it alone: all live channels are read together."""

    version: int
    name: str
    points: Sequence[WatchedPoint]
    secrets: Mapping[str, SecretRef] = field(repr=False)
    _told: set[str] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def of(cls, row: RecordRow) -> ChannelPoints:
        found = cls(row.version, row.details.name, [], row.details.secrets)
        try:
            return replace(found, points=watched_points(row.details.configuration_json))
        except Exception as fault:
            found._tell(fault, "are not watched")
            return found

    @property
    def names_host(self) -> bool:
        """Whether what is provisioned for an Event says where they are."""
        return any(point.names_host for point in self.points)

    def at(self, hosts: Hosts) -> ChannelPoints:
        return replace(self, points=[self._filled(point, hosts) for point in self.points])

    def _filled(self, point: WatchedPoint, hosts: Hosts) -> WatchedPoint:
        try:
            return point.at(hosts)
        except Exception as fault:
            self._tell(fault, "do not get the hosts that are provisioned")
            return point

    def _tell(self, fault: Exception, what: str) -> None:
        """Without the words of the fault, which may repeat an address."""
        if what not in self._told:
            self._told.add(what)
            _log.error("publishing points of the channel %r %s: %s", self.name, what, type(fault).__name__)


class ChannelPointsReader:
    """Reads the points of channels, and remembers them by version. After a change of the primary it starts anew."""

    def __init__(self, database: Database, records: RecordQueries) -> None:
        self._database = database
        self._records = records
        self._timeline = database.timeline
        self._known: OrderedDict[UUID, ChannelPoints] = OrderedDict()

    async def of(self, versions: Mapping[UUID, int]) -> dict[UUID, ChannelPoints]:
        """Of these channels. One that was changed meanwhile is read in its new version, one that is gone is not in the result."""
        if self._timeline != self._database.timeline:
            self._known.clear()
            self._timeline = self._database.timeline
        found: dict[UUID, ChannelPoints] = {}
        for channel, version in versions.items():
            known = self._known.get(channel)
            if known is not None and known.version >= version:
                found[channel] = known
                self._known.move_to_end(channel)
        missing = [channel for channel in versions if channel not in found]
        return found | await self._read(missing) if missing else found

    async def _read(self, channels: Sequence[UUID]) -> dict[UUID, ChannelPoints]:
        rows = await self._records.linked([(Channel.KIND, str(channel)) for channel in channels])
        read: dict[UUID, ChannelPoints] = {}
        for number, row in enumerate(rows.values()):
            read[UUID(row.id)] = ChannelPoints.of(row)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        self._known.update(read)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return read
