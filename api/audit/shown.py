"""Past states in the words of today's GET: each kind of aggregate as its own resource shows it."""

from __future__ import annotations

from typing import Any

from api.media import client, room, tag
from api.media.event.shape import links_of, shaped
from domain.client.aggregate import Client
from domain.kernel.aggregate import AggregateRoot
from domain.media_event.aggregate import MediaEvent
from domain.records.kinds.room import Room
from domain.records.kinds.tag import Tag
from domain.records.record import Record
from projections.audit.queries import AuditQueries
from projections.media_event.queries import EventRow

_RECORDS = {Room.KIND: room.shaped, Tag.KIND: tag.shaped}


class PastStates:
    """Shows an aggregate as it stood; names of what it pointed at are those of that moment too."""

    def __init__(self, audit: AuditQueries) -> None:
        self._audit = audit

    async def shown(self, root: AggregateRoot, *, position: int, base_url: str) -> dict[str, Any]:
        """`position` is how far the log had come."""
        if isinstance(root, MediaEvent):
            return await self._event(root, position, base_url)
        if isinstance(root, Client):
            return client.shaped(root.key, root.roles, root.registered_at, root.keys, {})
        if isinstance(root, Record):
            return _RECORDS[root.KIND](root.key, root.details)
        raise LookupError(root.KIND)

    async def _event(self, event: MediaEvent, position: int, base_url: str) -> dict[str, Any]:
        row = EventRow.of(event)
        linked = await self._audit.those_at((f"{kind}:{key}" for kind, key in links_of(row.details)), position)
        standing = [root for root in linked.values() if isinstance(root, Record) and not root.withdrawn]
        names = {(root.KIND, root.key): root.details.name for root in standing}
        return shaped(row, names, base_url=base_url)
