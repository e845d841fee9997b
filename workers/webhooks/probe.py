"""A made-up notification, sent at once, so that an operator sees whether a receiver takes what we send.

Issue 5, "Operators see it". It goes the way of every delivery, by the same courier; it is neither kept nor tried again, and no
endpoint is judged by it.
"""

from __future__ import annotations

from uuid import UUID

from pydantic_core import to_json

from domain.kernel.clock import Clock
from domain.kernel.ids import new_id
from domain.media_event.values import EventDetails
from domain.records.kinds.webhook import Webhook
from projections.deliveries.keys import delivery_id
from projections.deliveries.ledger import PendingDelivery
from projections.records.queries import RecordQueries
from projections.vault.vault import Vault
from workers.callbacks.policy import sample as callback_sample
from workers.ports import Outbound, Probed
from workers.webhooks.attempt import Courier, Tried
from workers.webhooks.payload import payload
from workers.webhooks.policy import Action, Change, Effect
from workers.webhooks.targets import Targets

_NOWHERE = 0
"""The log's positions begin at 1."""


class Probe:
    """The port `WebhookProbe`."""

    def __init__(self, outbound: Outbound, *, records: RecordQueries, vault: Vault, clock: Clock, version: str) -> None:
        self._records = records
        self._targets = Targets(records, vault, version=version)
        self._courier = Courier(outbound, clock)
        self._clock = clock

    async def probe(self, webhook: UUID) -> Probed:
        """The id is a new one each time: a receiver may well pass over one that it knows."""
        lane, sample = str(new_id()), await self._sample(webhook)
        target = (await self._targets.load([webhook])).get(webhook)
        if target is None:
            tried = Tried(self._clock(), 0.0, error="The webhook's secrets cannot be opened.")
        else:
            tried = await self._courier.send(PendingDelivery(webhook, _NOWHERE, lane, sample, attempts=0, wait=0.0), target)
        return Probed(
            id=delivery_id(webhook, _NOWHERE, lane=lane),
            seconds=tried.seconds,
            status=tried.status,
            error=tried.error,
            address=tried.address,
            response=tried.response,
        )

    async def _sample(self, webhook: UUID) -> str:
        found = await self._records.find(Webhook.KIND, webhook)
        client = None if found is None else found.details.job_client
        if client is not None:
            return to_json(callback_sample(client=client, at=self._clock())).decode()
        return payload(str(UUID(int=0)), EventDetails.blank(), effect=Effect(Action.UPDATED, Change.FORCED))
