"""Routes of the deliveries of all webhooks: docs/reference/api/webhooks.md#deliveries-of-all-webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Query

from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.media.webhook import delivery_responses as responses
from api.media.webhook.addresses import address_for
from api.media.webhook.requests import AllDeliveriesQuery, ResendDeliveriesRequest
from domain.client.roles import Role
from domain.kernel.clock import iso
from domain.kernel.ports import Outcome
from domain.record.ports import RecordRow
from domain.webhook.callback import ENDPOINT_KINDS
from domain.webhook.details import EndpointDetails
from domain.webhook.endpoint import Endpoint
from domain.webhook.handlers import WebhookHandlers
from projections.kernel.database.page import LARGEST
from projections.record.queries import RecordQueries
from projections.webhook.all_webhooks import AllDeliveriesFilter, AllDeliveryQueries
from projections.webhook.queries import Delivery, DeliveryPlace
from projections.webhook.redelivery import Redelivery

routes = APIRouter(prefix="/api/webhook/deliveries", tags=["Webhooks"], route_class=UnstoredMediaRoute)

_UNKNOWN: Final = "there is no such delivery"
_DISABLED: Final = "the webhook is disabled"
_PENDING: Final = "it is already pending"


@routes.get("/", dependencies=[READ], response_model=responses.AllDeliveryCollection)
async def list_all_deliveries(
    request: Request,
    query: Annotated[AllDeliveriesQuery, Query()],
    records: Service[RecordQueries],
    deliveries: Service[AllDeliveryQueries],
) -> Response:
    """The deliveries of all webhooks and of the caller's callbacks, newest first, with every attempt.

    An admin sees the deliveries of all callbacks.
    """
    filter = AllDeliveriesFilter(
        client=_client(request),
        state=query.state,
        webhook=query.webhook_id,
        kind=query.kind,
        created_from=query.created_from,
        created_to=query.created_to,
        before=query.before,
        limit=min(query.page_size, LARGEST),
    )
    page = await deliveries.page(filter)
    endpoints = await _endpoints(records, [delivery.webhook for delivery in page.results])
    results = [
        responses.DeliveryOfWebhook.model_construct(
            **dict(responses.Delivery.of(delivery)),
            webhook_url=address_for(request, endpoints[delivery.webhook].details.webhook_url),
        )
        for delivery in page.results
        if delivery.webhook in endpoints
    ]
    following = _next_page(filter, page.results[-1]) if page.more else None
    return Response(responses.AllDeliveryCollection.model_construct(page_size=filter.limit, results=results, next=following))


async def deliveries_resent(request: Request, outcome: Outcome[Endpoint]) -> Response:
    return Response(responses.ResentDeliveries.model_validate(outcome.result))


@routes.post("/resend/", dependencies=[WRITE], response_model=responses.ResentDeliveries)
@rules(if_match=False, respond=deliveries_resent)
async def resend_deliveries(
    request: Request,
    body: ResendDeliveriesRequest,
    records: Service[RecordQueries],
    deliveries: Service[AllDeliveryQueries],
    redelivery: Service[Redelivery],
    handlers: Service[WebhookHandlers],
) -> Outcome[Endpoint]:
    """Send finished deliveries of any webhooks again. The response has a result for each."""
    places = await deliveries.places(body.ids, client=_client(request))
    endpoints = await _endpoints(records, [place.webhook for place in places.values()])
    enabled = {webhook for webhook, row in endpoints.items() if row.details.disabled_at is None}
    for webhook in enabled:
        await handlers.keep(webhook, invocation=replace(request.invocation, idempotency=None))
    results: list[dict[str, Any]] = []
    for delivery_id in dict.fromkeys(body.ids):
        error = await _resent(places.get(delivery_id), redelivery, enabled=enabled)
        results.append({"id": str(delivery_id), "requeued": error is None, "error": error})
    return Outcome(result={"requeued": sum(delivery_id["requeued"] for delivery_id in results), "results": results})


async def _resent(place: DeliveryPlace | None, redelivery: Redelivery, *, enabled: set[UUID]) -> str | None:
    """Return the reason why the delivery is not sent again; None if it is."""
    if place is None:
        return _UNKNOWN
    if place.webhook not in enabled:
        return _DISABLED
    return None if await redelivery.resend(place) else _PENDING


def _client(request: Request) -> str | None:
    """Return the client whose callbacks the caller may see; None for all clients."""
    return None if Role.ADMIN in request.caller.roles else request.caller.name


async def _endpoints(records: RecordQueries, webhooks: Sequence[UUID]) -> dict[UUID, RecordRow[EndpointDetails]]:
    return {UUID(row.id): row for row in await records.of_kinds(ENDPOINT_KINDS, set(webhooks))}


def _next_page(filter: AllDeliveriesFilter, last: Delivery) -> str:
    parameters = {
        "state": None if filter.state is None else filter.state.name,
        "webhookId": filter.webhook,
        "kind": filter.kind,
        "from": filter.created_from and iso(filter.created_from),
        "to": filter.created_to and iso(filter.created_to),
    }
    given = {name: value for name, value in parameters.items() if value is not None}
    return "/api/webhook/deliveries/?" + urlencode({**given, "before": last.id, "pageSize": filter.limit})
