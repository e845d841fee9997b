"""Webhooks: document 2, "Webhooks"; decisions.md, "Webhooks". DELETE, secret and notify are ours.

One family are the system-wide ones, the other those of one Event, under `/event/`; neither shows the other's. The third are the
callbacks, in `callbacks.py`.
"""

from __future__ import annotations

from uuid import UUID

from api.kernel.answer import Answer
from api.kernel.auth import READ, WRITE
from api.kernel.call import Call
from api.kernel.commands import CommandBus
from api.kernel.pages import FreshQuery
from api.kernel.routes import Routes
from api.media.webhook.wire import (
    CallbackWire,
    EventWebhookBody,
    EventWebhookWire,
    MadeEventWebhookWire,
    MadeWebhookWire,
    NotifiedWire,
    PutEventWebhookBody,
    PutWebhookBody,
    SecretWire,
    WebhookBody,
    WebhookWire,
)
from api.media.webhook.writes import WEBHOOKS, Webhooks, in_family
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import ForceNotification
from domain.records.kinds.webhook import Webhook
from projections.records.queries import RecordQueries, RecordRow

routes = Routes("/webhook", tag="Webhooks")
as_spelled = Routes("/webook", tag="Webhooks")
"""Document 2 writes one path so; it means the same."""


@routes.post("/", WRITE, answers=MadeWebhookWire)
async def put_webhook(call: Call, body: PutWebhookBody, webhooks: Webhooks) -> Answer:
    """Add a system-wide webhook, or change the one with this id. A new one's secret is shown in this answer and never again."""
    return await webhooks.put(call, body, of_event=False)


@as_spelled.post("/event/", WRITE, answers=MadeEventWebhookWire, name="put_event_webhook_as_spelled")
@routes.post("/event/", WRITE, answers=MadeEventWebhookWire)
async def put_event_webhook(call: Call, body: PutEventWebhookBody, webhooks: Webhooks) -> Answer:
    """Add a webhook of one Event, or change the one with this id. A new one's secret is shown in this answer and never again."""
    return await webhooks.put(call, body, of_event=True)


@routes.put("/{id}", WRITE, answers=WebhookWire)
async def amend_webhook(call: Call, id: UUID, body: WebhookBody, webhooks: Webhooks) -> Answer:
    """Change a system-wide webhook. What is absent stays as it is."""
    return await webhooks.amend(call, id, body, of_event=False)


@routes.put("/{id}/event/", WRITE, answers=EventWebhookWire)
async def amend_event_webhook(call: Call, id: UUID, body: EventWebhookBody, webhooks: Webhooks) -> Answer:
    """Change a webhook of an Event, or make it one of another Event. What is absent stays as it is."""
    return await webhooks.amend(call, id, body, of_event=True)


@routes.get("/", READ, answers=list[WebhookWire], absent=204)
async def list_webhooks(call: Call, query: FreshQuery, records: RecordQueries) -> Answer:
    """The system-wide webhooks, the oldest first."""
    return _listed(await records.without_parent(Webhook.KIND))


@routes.get("/event/{eventId}", READ, answers=list[EventWebhookWire], absent=204)
async def webhooks_of_event(call: Call, event_id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """The webhooks of an Event, the oldest first."""
    return _listed(await records.of_parent(Webhook.KIND, event_id))


@routes.get("/{id}", READ, answers=WebhookWire, absent=204)
async def webhook_by_id(call: Call, id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """One system-wide webhook."""
    return await _found(id, records, of_event=False)


@routes.get("/{id}/event/", READ, answers=EventWebhookWire, absent=204)
async def event_webhook_by_id(call: Call, id: UUID, query: FreshQuery, records: RecordQueries) -> Answer:
    """One webhook of an Event."""
    return await _found(id, records, of_event=True)


@routes.delete("/{id}", WRITE, answers=EventWebhookWire | WebhookWire | CallbackWire)
async def withdraw_webhook(call: Call, id: UUID, bus: CommandBus) -> Answer:
    """Delete a webhook of any family; the answer is the webhook as it last was."""
    return await bus.send(call, WEBHOOKS.withdraw(id), WEBHOOKS.written)


@routes.post("/{id}/secret/", WRITE, answers=SecretWire)
async def rotate_webhook_secret(call: Call, id: UUID, webhooks: Webhooks) -> Answer:
    """Make a new secret, shown in this answer and never again. The one so far signs along for 24 hours."""
    return await webhooks.rotate(call, id)


@routes.post("/notify/{eventId}", WRITE, answers=NotifiedWire)
async def force_notification(call: Call, event_id: UUID, bus: CommandBus) -> Answer:
    """Tell all webhooks of an Event how it is, with IsForced."""

    async def show(event: MediaEvent) -> Answer:
        return Answer(200, {"eventId": event.key})

    return await bus.send(call, ForceNotification(event_id), show)


def _listed(rows: list[RecordRow]) -> Answer:
    if not rows:
        return Answer(204)
    return WEBHOOKS.listed(sorted(rows, key=lambda row: (row.date_created, row.id)))


async def _found(key: UUID, records: RecordQueries, *, of_event: bool) -> Answer:
    row = await records.find(Webhook.KIND, key)
    return WEBHOOKS.found(row if row is not None and in_family(row, of_event=of_event) else None, key)
