"""The limit on the webhooks that a client adds, if an admin has set one: docs/reference/api/job-engine.md#settings.

Several webhooks may be added at the same moment, so the limit may be exceeded slightly.
"""

from __future__ import annotations

from api.http.errors import Forbidden
from domain.webhook.aggregate import Webhook
from projections.job.settings import EngineSettingsQueries
from projections.records.queries import RecordQueries


class WebhookCeiling:
    """Refuses further webhooks of a client that has reached its limit."""

    def __init__(self, records: RecordQueries, settings: EngineSettingsQueries) -> None:
        self._records = records
        self._settings = settings

    async def admit(self, client: str) -> None:
        """Raise `Forbidden` if the client has reached its limit."""
        most = (await self._settings.of([client]))[client].max_webhooks
        if most is not None and await self._records.added_by(Webhook.KIND, client, most=most) >= most:
            raise Forbidden(f"the client has added {most} webhooks, which is its limit")
