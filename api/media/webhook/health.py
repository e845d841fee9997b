"""The health of the system-wide webhooks, in one call: docs/reference/api/webhooks.md#health."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
from api.kernel.wire import Instant, Wire
from api.media.webhook.addresses import webhook_for
from domain.records.row import RecordRow
from domain.webhook.aggregate import Webhook
from projections.deliveries.health import Circuit, EndpointHealth, EndpointHealthQueries
from projections.records.queries import RecordQueries

routes = Router("/webhook", tag="Webhooks", surface=MEDIA, stored=False)


class WebhookHealth(Wire):
    """How the deliveries of a webhook go."""

    webhook_id: UUID = Field(description="Id of the webhook.")
    webhook_url: str = Field(description="Where it is called.")
    disabled_at: Instant | None = Field(description="Since when nothing is sent to it; null while it is enabled.")
    failing_since: Instant | None = Field(description="Since when every attempt has failed; null where the last one succeeded.")
    succeeded_at: Instant | None = Field(description="When an attempt last succeeded; null where none has.")
    circuit: Circuit = Field(
        description="State of the circuit breaker: closed; open after 10 failures in a row, so that nothing is sent for a while; "
        "half-open while one attempt shows whether the receiver works again."
    )
    circuit_since: Instant | None = Field(description="Since when it is in this state; null where it has always been closed.")
    circuit_until: Instant | None = Field(description="When an open one lets an attempt through; null while it is not open.")
    pending: int = Field(description="Deliveries that wait, counted up to 1000.")
    oldest_pending_at: Instant | None = Field(description="When the oldest of them was created; null where none waits.")
    next_try_at: Instant | None = Field(description="When the first of them is tried next; null where none waits.")
    delivered: int = Field(description="Of the last 1000 deliveries that ended within 24 hours, those that were delivered.")
    failed: int = Field(description="Of the same, those that were given up.")

    @classmethod
    def of(cls, row: RecordRow, health: EndpointHealth) -> WebhookHealth:
        return cls.model_construct(
            webhook_id=health.webhook,
            webhook_url=row.details.webhook_url,
            disabled_at=row.details.disabled_at,
            failing_since=health.failing_since,
            succeeded_at=health.succeeded_at,
            circuit=health.circuit,
            circuit_since=health.circuit_since,
            circuit_until=health.circuit_until if health.circuit is Circuit.OPEN else None,
            pending=health.pending,
            oldest_pending_at=health.oldest,
            next_try_at=health.next_try if row.details.disabled_at is None else None,
            delivered=health.delivered,
            failed=health.failed,
        )


@routes.get("/health", READ, response_model=list[WebhookHealth])
async def get_webhook_health(request: Request, records: RecordQueries, health: EndpointHealthQueries) -> Response:
    """How the deliveries of each system-wide webhook go, those that fail first, then those with the most that wait."""
    rows = {UUID(row.id): row for row in await records.all(Webhook.KIND, without_parent=True)}
    found = (await health.of(list(rows))).values()
    ordered = sorted(found, key=lambda one: (one.failing_since is None, -one.failed, -one.pending, str(one.webhook)))
    return Response(200, [WebhookHealth.of(webhook_for(request, rows[one.webhook]), one) for one in ordered])
