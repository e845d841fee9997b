"""Routes of a webhook's deliveries: read them, send them again, test the receiver. docs/reference/api/webhooks.md#deliveries.

They accept webhooks of any family and callbacks. A callback is accessible to the client of its jobs, whose `custom_data` it
shows, and to admins. Deliveries of a deleted webhook are not shown.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Final
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.http.response import Response, encode
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.media.webhook import delivery_responses as responses
from api.media.webhook.requests import DeliveriesQuery, RecoverQuery
from api.media.webhook.routes import find_endpoint
from domain.kernel.errors import NotFound, Refused
from domain.kernel.ports import Outcome
from domain.webhook.details import EndpointDetails
from domain.webhook.endpoint import Endpoint
from domain.webhook.handlers import WebhookHandlers
from projections.kernel.database.page import LARGEST
from projections.record.queries import RecordQueries, RecordRow
from projections.webhook.queries import Delivery, DeliveryFilter, DeliveryQueries
from projections.webhook.redelivery import Redelivery
from workers.ports.webhooks import WebhookProbe

routes = APIRouter(prefix="/api/webhook", tags=["Webhooks"], route_class=UnstoredMediaRoute)

_DISABLED: Final = "the webhook is disabled; PUT disabledAt null first"


@routes.get("/{id}/deliveries/", dependencies=[READ], response_model=responses.DeliveryCollection)
async def list_deliveries(
    request: Request,
    id: UUID,
    query: Annotated[DeliveriesQuery, Query()],
    records: Service[RecordQueries],
    deliveries: Service[DeliveryQueries],
) -> Response:
    """The deliveries of a webhook, newest first, with every attempt."""
    await find_endpoint(request, id, records)
    limit = min(query.page_size, LARGEST)
    filter = DeliveryFilter(state=query.state, event_id=query.event_id, job=query.job_id, before=query.before, limit=limit)
    page = await deliveries.page(id, filter)
    next = _next_page(id, filter, page.results[-1]) if page.more else None
    results = [responses.Delivery.of(delivery) for delivery in page.results]
    return Response(responses.DeliveryCollection.model_construct(page_size=limit, results=results, next=next))


@routes.get("/{id}/deliveries/{deliveryId}", dependencies=[READ], response_model=responses.Delivery)
async def get_delivery(
    request: Request,
    id: UUID,
    delivery_id: Annotated[UUID, Path(alias="deliveryId")],
    query: Annotated[FreshQuery, Query()],
    records: Service[RecordQueries],
    deliveries: Service[DeliveryQueries],
) -> Response:
    """The delivery of a webhook with this id, which its receiver gets as `webhook-id`."""
    await find_endpoint(request, id, records)
    return _delivery(encode(responses.Delivery.of(await _find(id, delivery_id, deliveries))))


async def delivery_resent(request: Request, outcome: Outcome[Endpoint]) -> Response:
    return _delivery(outcome.result["delivery"].encode())


@routes.post("/{id}/deliveries/{deliveryId}/resend", dependencies=[WRITE], response_model=responses.Delivery)
@rules(if_match=False, respond=delivery_resent)
async def resend_delivery(
    request: Request,
    id: UUID,
    delivery_id: Annotated[UUID, Path(alias="deliveryId")],
    records: Service[RecordQueries],
    deliveries: Service[DeliveryQueries],
    redelivery: Service[Redelivery],
    handlers: Service[WebhookHandlers],
) -> Outcome[Endpoint]:
    """Send a finished delivery again, under the same `webhook-id` and with ten new attempts."""
    webhook = await find_endpoint(request, id, records)
    delivery = await _find(id, delivery_id, deliveries)
    _check_enabled(webhook)
    await handlers.keep(id, invocation=request.invocation)
    if not await redelivery.resend(delivery.place):
        raise Refused("the delivery is already pending")
    pending = responses.Delivery.of(await _find(id, delivery_id, deliveries))
    return Outcome(result={"delivery": encode(pending).decode()})


async def deliveries_recovered(request: Request, outcome: Outcome[Endpoint]) -> Response:
    return Response(responses.RecoveredDeliveries(**outcome.result))


@routes.post("/{id}/recover/", dependencies=[WRITE], response_model=responses.RecoveredDeliveries)
@rules(if_match=False, respond=deliveries_recovered)
async def recover_deliveries(
    request: Request,
    id: UUID,
    query: Annotated[RecoverQuery, Query()],
    records: Service[RecordQueries],
    redelivery: Service[Redelivery],
    handlers: Service[WebhookHandlers],
) -> Outcome[Endpoint]:
    """Send all deliveries that failed since a time again, in order, including those omitted while the webhook was disabled."""
    _check_enabled(await find_endpoint(request, id, records))
    await handlers.keep(id, invocation=request.invocation)
    return Outcome(result={"requeued": await redelivery.resend_failed_since(id, query.since)})


async def webhook_tested(request: Request, outcome: Outcome[Endpoint]) -> Response:
    return Response(responses.WebhookTest.model_validate(outcome.result))


@routes.post("/{id}/test/", dependencies=[WRITE], response_model=responses.WebhookTest)
@rules(if_match=False, respond=webhook_tested)
async def test_webhook(
    request: Request, id: UUID, records: Service[RecordQueries], probe: Service[WebhookProbe]
) -> Outcome[Endpoint]:
    """Send a sample notification immediately, even to a disabled webhook.

    The notification names no existing Event, has `isForced`, and is not stored. A callback receives a notice of a completed job
    0.
    """
    await find_endpoint(request, id, records)
    return Outcome(result=responses.WebhookTest.of(await probe.probe(id)).model_dump(mode="json"))


def _delivery(body: bytes) -> Response:
    """Return a delivery. It has no version, so its ETag is a hash of the body of 63 bits, a number like all other ETags."""
    return Response(body, etag=int.from_bytes(sha256(body).digest()[:8]) >> 1, settled=True)


def _next_page(webhook: UUID, filter: DeliveryFilter, last: Delivery) -> str:
    state = filter.state.name if filter.state is not None else None
    parameters = {"state": state, "eventId": filter.event_id, "jobId": filter.job}
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"/api/webhook/{webhook}/deliveries/?" + urlencode({**given, "before": last.id, "pageSize": filter.limit})


async def _find(webhook: UUID, key: UUID, deliveries: DeliveryQueries) -> Delivery:
    delivery = await deliveries.find(webhook, key)
    if delivery is None:
        raise NotFound("delivery", str(key))
    return delivery


def _check_enabled(webhook: RecordRow[EndpointDetails]) -> None:
    if webhook.details.disabled_at is not None:
        raise Refused(_DISABLED)
