"""What became of a webhook's notifications, and how to have them sent again. All of it is ours: decisions.md, "Webhooks"; issue 5,
"Operators see it".

A webhook of any family is meant. What was sent to one that was deleted is not shown any more.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic_core import from_json

from api.kernel.answer import Answer, iso
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.pages import FreshQuery, Whole
from api.kernel.routes import Routes
from api.kernel.wire import Instant, NamedInt, Wire
from domain.kernel.errors import NotFound, Refused
from domain.records.kinds.webhook import Webhook
from projections.deliveries.queries import Attempt, Delivery, DeliveryFilter, DeliveryQueries, DeliveryState
from projections.deliveries.resending import Resending
from projections.kernel.page import LARGEST
from projections.records.queries import RecordQueries, RecordRow
from workers.ports import Probed, WebhookProbe

routes = Routes("/webhook", tag="Webhooks")

_DISABLED = "the webhook is disabled; PUT disabledAt null first"


class AttemptWire(Wire):
    """`status` is null where there was no answer, `error` where it was delivered. `response` is the head of the answer's body."""

    number: int
    started_at: Instant
    seconds: float
    status: int | None
    error: str | None
    address: str
    response: str


class DeliveryWire(Wire):
    """`id` is what the receiver gets as `webhook-id`, `payload` what was sent, or its fields where it went as a form. A callback
    has a `jobId`, and its status as `action`; all others have an `eventId`."""

    id: UUID
    webhook_id: UUID
    event_id: UUID | None
    job_id: int | None
    position: int
    state: Literal["PENDING", "DELIVERED", "FAILED"]
    action: str
    payload: dict[str, Any]
    created_at: Instant
    due_at: Instant | None
    finished_at: Instant | None
    error: str | None
    attempts: list[AttemptWire]


class DeliveriesWire(Wire):
    page_size: int
    results: list[DeliveryWire]
    next: str | None


class RequeuedWire(Wire):
    requeued: int


class ProbedWire(Wire):
    """As one try of a delivery. `id` is the `webhook-id` that was sent."""

    id: UUID
    delivered: bool
    status: int | None
    error: str | None
    seconds: float
    address: str
    response: str


class DeliveriesQuery(FreshQuery):
    """`before` is the id of a delivery, and exclusive."""

    state: Annotated[DeliveryState, NamedInt(DeliveryState)] | None = None
    event_id: UUID | None = None
    job_id: Whole | None = None
    before: UUID | None = None
    page_size: Whole = 20


class RecoverQuery(Wire):
    """What was made then or later."""

    since: Instant


@routes.get("/{id}/deliveries/", READ, answers=DeliveriesWire)
async def deliveries_of_webhook(
    call: Call, id: UUID, query: DeliveriesQuery, records: RecordQueries, deliveries: DeliveryQueries
) -> Answer:
    """What was sent or is to be sent to a webhook, the newest first, with every try."""
    await records.known(Webhook.KIND, id)
    limit = min(query.page_size, LARGEST)
    wanted = DeliveryFilter(state=query.state, event_id=query.event_id, job=query.job_id, before=query.before, limit=limit)
    found = await deliveries.page(id, wanted)
    page = found[:limit]
    following = _next(id, wanted, page[-1]) if len(found) > limit else None
    return Answer(200, {"pageSize": limit, "results": [shaped(one) for one in page], "next": following})


@routes.get("/{id}/deliveries/{deliveryId}", READ, answers=DeliveryWire)
async def delivery_of_webhook(
    call: Call, id: UUID, delivery_id: UUID, query: FreshQuery, records: RecordQueries, deliveries: DeliveryQueries
) -> Answer:
    """One delivery of a webhook, by what its receiver got as `webhook-id`."""
    await records.known(Webhook.KIND, id)
    return Answer(200, shaped(await _known(id, delivery_id, deliveries)))


@routes.post("/{id}/deliveries/{deliveryId}/resend", WRITE, answers=DeliveryWire)
async def resend_delivery(
    call: Call, id: UUID, delivery_id: UUID, records: RecordQueries, deliveries: DeliveryQueries, resending: Resending
) -> Answer:
    """Send a delivery again that is finished, under the same `webhook-id` and with all its tries anew."""
    webhook = await records.known(Webhook.KIND, id)
    found = await _known(id, delivery_id, deliveries)
    _check_enabled(webhook)
    if not await resending.one(found):
        raise Refused("the delivery is pending already")
    return Answer(200, shaped(await _known(id, delivery_id, deliveries)))


@routes.post("/{id}/recover/", WRITE, answers=RequeuedWire)
async def recover_webhook(call: Call, id: UUID, query: RecoverQuery, records: RecordQueries, resending: Resending) -> Answer:
    """Send everything again that has failed since then, in order; also what was left out while the webhook was disabled."""
    _check_enabled(await records.known(Webhook.KIND, id))
    return Answer(200, {"requeued": await resending.failed_since(id, query.since)})


@routes.post("/{id}/test/", WRITE, answers=ProbedWire)
async def probe_webhook(call: Call, id: UUID, records: RecordQueries, probe: WebhookProbe) -> Answer:
    """Send a made-up notification at once, also to a disabled webhook.

    It is about no Event, has IsForced, and is not kept; a callback gets one of a job 0 that is completed."""
    await records.known(Webhook.KIND, id)
    return Answer(200, _probed(await probe.probe(id)))


def shaped(delivery: Delivery) -> dict[str, Any]:
    payload = from_json(delivery.payload)
    pending, job = delivery.state is DeliveryState.PENDING, delivery.job
    return {
        "id": str(delivery.id),
        "webhookId": str(delivery.webhook),
        "eventId": delivery.lane if job is None else None,
        "jobId": job,
        "position": delivery.position,
        "state": delivery.state.name,
        "action": payload["action" if job is None else "status"],
        "payload": payload,
        "createdAt": iso(delivery.created_at),
        "dueAt": iso(delivery.due_at) if pending else None,
        "finishedAt": iso(delivery.finished_at) if delivery.finished_at is not None else None,
        "error": delivery.error,
        "attempts": [_attempt(number, one) for number, one in enumerate(delivery.attempts, 1)],
    }


def _attempt(number: int, attempt: Attempt) -> dict[str, Any]:
    return {
        "number": number,
        "startedAt": iso(attempt.started_at),
        "seconds": round(attempt.seconds, 6),
        "status": attempt.status,
        "error": attempt.error,
        "address": attempt.address,
        "response": attempt.response,
    }


def _probed(probed: Probed) -> dict[str, Any]:
    return {
        "id": str(probed.id),
        "delivered": probed.error is None,
        "status": probed.status,
        "error": probed.error,
        "seconds": round(probed.seconds, 6),
        "address": probed.address,
        "response": probed.response,
    }


def _next(webhook: UUID, wanted: DeliveryFilter, last: Delivery) -> str:
    """The address of the next page: the same question, from where this page ended."""
    state = wanted.state.name if wanted.state is not None else None
    asked = {"state": state, "eventId": wanted.event_id, "jobId": wanted.job}
    given = {name: value for name, value in asked.items() if value is not None}
    return f"/api/webhook/{webhook}/deliveries/?" + urlencode({**given, "before": last.id, "pageSize": wanted.limit})


async def _known(webhook: UUID, key: UUID, deliveries: DeliveryQueries) -> Delivery:
    found = await deliveries.find(webhook, key)
    if found is None:
        raise NotFound("delivery", str(key))
    return found


def _check_enabled(webhook: RecordRow) -> None:
    if webhook.details.disabled_at is not None:
        raise Refused(_DISABLED)
