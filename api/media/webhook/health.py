"""The health of the system-wide webhooks, in one call: docs/reference/api/webhooks.md#health."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.kernel.wire import Instant, Wire
from api.media.webhook.addresses import webhook_for
from domain.record.ports import RecordRow
from domain.webhook.aggregate import Webhook
from domain.webhook.details import WebhookDetails
from projections.record.queries import RecordQueries
from projections.webhook.health import Circuit, EndpointHealth, EndpointHealthQueries

routes = APIRouter(prefix="/api/webhook", tags=["Webhooks"], route_class=UnstoredMediaRoute)


class WebhookHealth(Wire):
    """The state of the deliveries of a webhook."""

    webhook_id: UUID = Field(description="Id of the webhook.")
    webhook_url: str = Field(description="Address of the webhook.")
    disabled_at: Instant | None = Field(description="The time when it was disabled; null while it is enabled.")
    failing_since: Instant | None = Field(
        description="The time since which every attempt has failed; null if the last attempt succeeded."
    )
    succeeded_at: Instant | None = Field(description="The time when an attempt last succeeded; null if none has.")
    circuit: Circuit = Field(
        description="State of the circuit breaker: closed; open (paused) after 10 failures in a row; "
        "half-open while one attempt tests the receiver."
    )
    circuit_since: Instant | None = Field(description="The time since which it has this state; null if it has always been closed.")
    circuit_until: Instant | None = Field(description="The time of the next attempt of an open circuit; null while it is not open.")
    pending: int = Field(description="Pending deliveries, counted up to 1000.")
    oldest_pending_at: Instant | None = Field(
        description="The time when the oldest pending delivery was created; null without one."
    )
    next_try_at: Instant | None = Field(description="The time of the next attempt; null if no delivery is pending.")
    delivered: int = Field(description="Number of deliveries that succeeded, among the last 1000 that ended within 24 hours.")
    failed: int = Field(description="Number of deliveries that failed finally, among the last 1000 that ended within 24 hours.")

    @classmethod
    def of(cls, row: RecordRow[WebhookDetails], health: EndpointHealth) -> WebhookHealth:
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


@routes.get("/health", dependencies=[READ], response_model=list[WebhookHealth])
async def get_webhook_health(request: Request, records: Service[RecordQueries], health: Service[EndpointHealthQueries]) -> Response:
    """The delivery health of each system-wide webhook: failing webhooks first, then those with the most pending deliveries."""
    rows = {UUID(row.id): row for row in await records.all(Webhook, without_parent=True)}
    health_of = (await health.of(list(rows))).values()
    ordered = sorted(health_of, key=lambda state: (state.failing_since is None, -state.failed, -state.pending, str(state.webhook)))
    return Response([WebhookHealth.of(webhook_for(request, rows[state.webhook]), state) for state in ordered])
