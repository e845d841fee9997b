"""Queries of Provision Infos."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.channel.hosts import Hosts, hosts_in
from domain.provision.row import ProvisionRow
from domain.provision.values import Deployment
from projections.consumers.timeline import EPOCH
from projections.kernel.database.arrays import uuids
from projections.kernel.database.database import Pool
from projections.log.reader import HEAD
from projections.provision.view import ROW

_OF_EVENT: Final = "SELECT document FROM provision_view WHERE event_id = %s"
_OF_KEY: Final = "SELECT document FROM provision_view WHERE infrastructure_key = %s ORDER BY id"
_RESOURCES: Final = """
SELECT event_id, (document::json -> 'resources')::text, (document::json -> 'plan') ->> 'deployment'
FROM provision_view WHERE event_id = ANY(%s)
"""
_WORK: Final = """
SELECT infrastructure_key, string_agg(concat_ws(' ', event_id, run, state), ',' ORDER BY event_id)
FROM provision_view p
WHERE infrastructure_key IN (SELECT infrastructure_key FROM provision_view WHERE work IS NOT NULL)
GROUP BY infrastructure_key ORDER BY min(date_modified)
"""
_NUMBER: Final = f"SELECT ({EPOCH}) * {1 << 40} + ({HEAD})"


MOST_LISTED: Final = 200
"""The number of infos without work that are listed, the last changed ones."""
_LISTED: Final = f"""
(SELECT document, date_modified FROM provision_view WHERE work IS NOT NULL ORDER BY date_modified)
UNION ALL
(SELECT document, date_modified FROM provision_view WHERE work IS NULL ORDER BY date_modified DESC, id LIMIT {MOST_LISTED})
"""


_WAITING: Final = """
SELECT count(DISTINCT infrastructure_key), coalesce(greatest(extract(epoch FROM now() - min(date_modified)), 0), 0)::float8
FROM provision_view WHERE work IS NOT NULL
"""


class ProvisionQueries:
    """Reads `provision_view`."""

    def __init__(self, database: Pool) -> None:
        self._database = database

    async def of_event(self, event_id: UUID) -> ProvisionRow | None:
        rows = await self._database.rows(_OF_EVENT, (event_id,))
        return ROW.validate_json(rows[0][0]) if rows else None

    async def of_key(self, infrastructure_key: str) -> Sequence[ProvisionRow]:
        """Return all Events that have, had or want infrastructure of this key."""
        rows = await self._database.rows(_OF_KEY, (infrastructure_key,))
        return [ROW.validate_json(document) for (document,) in rows]

    async def hosts_of(self, events: Collection[UUID]) -> Mapping[UUID, Hosts]:
        """Return the hosts of the resources that are up, by Event."""
        if not events:
            return {}
        rows = await self._database.rows(_RESOURCES, (uuids(list(events)),))
        return {event: hosts_in(json.loads(resources), static=made != Deployment.TEMPLATE) for event, resources, made in rows}

    async def number(self) -> int:
        """Return a number that grows with the log, even after a restore of the log. If it is read before the wanted state, it is
        not too high for that state."""
        row = await self._database.row(_NUMBER)
        return int(row[0]) if row else 0

    async def listed(self) -> Sequence[tuple[ProvisionRow, datetime]]:
        """Return the infos with the time of their last change: those with work in progress, the longest waiting first, then the
        others, the last changed first."""
        return [(ROW.validate_json(document), changed) for document, changed in await self._database.rows(_LISTED)]

    async def waiting(self) -> tuple[int, float]:
        """Return the number of keys with work in progress, and the longest time in seconds since when."""
        ((keys, oldest),) = await self._database.rows(_WAITING)
        return int(keys), float(oldest)

    async def with_work(self) -> Mapping[str, str]:
        """Return the keys with work in progress, the longest waiting first, each with a text that changes when its Events want
        something else."""
        return dict(await self._database.rows(_WORK))
