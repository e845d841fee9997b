"""Sample notifications, sent at once to test a receiver: see docs/reference/api/webhooks.md#test.

A sample is sent by the same client as every delivery. It is not stored and not repeated, and does not affect the health of the
endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.ids import new_id
from domain.webhook.callback import Callback
from projections.kernel.database.database import Database
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault
from projections.webhook.keys import delivery_id
from projections.webhook.queries import latest_sealed_url
from projections.webhook.store import PendingDelivery
from workers.ports.outbound import Notifying
from workers.ports.webhooks import ProbeResult
from workers.webhook.sender.attempt import AttemptResult, DeliveryClient
from workers.webhook.sender.endpoint_configs import EndpointConfig, EndpointConfigs

_NO_POSITION = 0
"""The position of a sample; positions of the log begin at 1."""


Samples = Callable[[str | None], str]


class Probe:
    """Sends samples: implements `WebhookProbe`. `samples` makes the body: a notice for a callback of this client, or (None) a
    notification."""

    def __init__(
        self,
        outbound: Notifying,
        *,
        database: Database,
        records: RecordQueries,
        vault: Vault,
        clock: Clock,
        version: str,
        samples: Samples,
    ) -> None:
        self._database = database
        self._records = records
        self._configs = EndpointConfigs(records, vault, version=version)
        self._client = DeliveryClient(outbound, clock)
        self._clock = clock
        self._samples = samples

    async def probe(self, webhook: UUID) -> ProbeResult:
        """Send a sample with a new id each time: a receiver may ignore an id that it has already received."""
        ordering_key, sample = str(new_id()), await self._sample(webhook)
        config = await self._config(webhook)
        if config is None:
            result = AttemptResult(self._clock(), 0.0, error="The webhook's secrets cannot be decrypted.")
        else:
            result = await self._client.send(
                PendingDelivery(webhook, _NO_POSITION, ordering_key, sample, attempts=0, wait=0.0), config
            )
        return ProbeResult(
            id=delivery_id(webhook, _NO_POSITION, ordering_key=ordering_key),
            seconds=result.seconds,
            status=result.status,
            error=result.error,
            address=result.address,
            response=result.response,
        )

    async def _config(self, webhook: UUID) -> EndpointConfig | None:
        """Return the configuration. A callback is called with the address of its latest job: only jobs have the whole address."""
        config = (await self._configs.load([webhook])).get(webhook)
        latest = None if config is None else await latest_sealed_url(self._database, webhook)
        return config if config is None or latest is None else await self._configs.with_url(config, latest[0], job=latest[1])

    async def _sample(self, webhook: UUID) -> str:
        callback = await self._records.find(Callback, webhook)
        return self._samples(None if callback is None else callback.details.client)
