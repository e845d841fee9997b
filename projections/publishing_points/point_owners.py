"""Finds the channels that send to publishing points of the built-in origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from domain.configuration.points import watched_points
from projections.kernel.database import Database
from projections.publishing_points.own_points import PointName
from projections.publishing_points.points import ChannelPointsReader

_CHANNELS: Final = "SELECT id::uuid, version FROM record_view WHERE kind = 'channel' AND NOT deleted"


class PointOwners:
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
