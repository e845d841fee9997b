"""The ceiling of webhooks that a client adds, where an admin has set one: docs/reference/api/job-engine.md#settings.

Several may be added at the same moment, so there may be a few more.
"""

from __future__ import annotations

from api.http.errors import Forbidden
from domain.webhook.aggregate import Webhook
from projections.job.settings import EngineSettingsQueries
from projections.records.queries import RecordQueries


class WebhookCeiling:
    """Refuses a further webhook of a client that has added as many as it may."""

    def __init__(self, records: RecordQueries, settings: EngineSettingsQueries) -> None:
        self._records = records
        self._settings = settings

    async def admit(self, client: str) -> None:
        """Raises `Forbidden`."""
        most = (await self._settings.of([client]))[client].max_webhooks
        if most is not None and await self._records.added_by(Webhook.KIND, client, most=most) >= most:
            raise Forbidden(f"the client has added {most} webhooks, which is its limit")
