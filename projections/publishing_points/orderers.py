"""The actors behind a channel's encoder: the one that pointed the channel to it, and the one that started the Event there."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from domain.client.roles import Role
from domain.kernel.clock import Clock
from projections.clients.directory import ClientDirectory
from projections.kernel.background_task import TRANSIENT
from projections.kernel.database import Database

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
