"""Questions about Provision Infos."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from domain.configuration.hosts import Hosts, hosts_in
from domain.provision.row import ProvisionRow
from domain.provision.values import Deployment
from projections.consumers.timeline import EPOCH
from projections.kernel.arrays import uuids
from projections.kernel.database import Pool
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
"""So many of those without work are listed, the last ones."""
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
        found = await self._database.rows(_OF_EVENT, (event_id,))
        return ROW.validate_json(found[0][0]) if found else None

    async def of_key(self, infrastructure_key: str) -> Sequence[ProvisionRow]:
        """All Events that have, had or want infrastructure of this key."""
        rows = await self._database.rows(_OF_KEY, (infrastructure_key,))
        return [ROW.validate_json(document) for (document,) in rows]

    async def hosts_of(self, events: Collection[UUID]) -> Mapping[UUID, Hosts]:
        """Of the resources that are up."""
        if not events:
            return {}
        rows = await self._database.rows(_RESOURCES, (uuids(list(events)),))
        return {event: hosts_in(json.loads(resources), static=made != Deployment.TEMPLATE) for event, resources, made in rows}

    async def number(self) -> int:
        """One that grows with the log, also where the log is restored. Asked before what is wanted, it is not too high for that."""
        found = await self._database.row(_NUMBER)
        return int(found[0]) if found else 0

    async def listed(self) -> Sequence[tuple[ProvisionRow, datetime]]:
        """Those with work under way, the longest waiting first, then the others, the last changed first: each with the time of its
        last change."""
        return [(ROW.validate_json(document), changed) for document, changed in await self._database.rows(_LISTED)]

    async def waiting(self) -> tuple[int, float]:
        """How many keys have work under way, and since how many seconds the longest."""
        ((keys, oldest),) = await self._database.rows(_WAITING)
        return int(keys), float(oldest)

    async def with_work(self) -> Mapping[str, str]:
        """The keys with work under way, the longest waiting first. With each a text that changes when its Events want something
        else."""
        return dict(await self._database.rows(_WORK))
