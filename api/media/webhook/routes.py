"""Routes of system-wide webhooks and of webhooks of one Event: docs/reference/api/webhooks.md.

Each family has its own addresses, where webhooks of the other family do not exist. Callbacks are in `callbacks.py`.
"""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query

from api.http.errors import Forbidden
from api.http.response import Response
from api.http.routing import Service, rules
from api.kernel.auth import READ, WRITE, check_owner
from api.kernel.pages import FreshQuery
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.media.webhook import responses
from api.media.webhook.addresses import webhook_for
from api.media.webhook.requests import (
    AddOrUpdateEventWebhookRequest,
    AddOrUpdateWebhookRequest,
    UpdateEventWebhookRequest,
    UpdateWebhookRequest,
)
from api.media.webhook.responses import ENDPOINTS, WEBHOOKS, added_response
from domain.event.aggregate import MediaEvent
from domain.kernel.errors import NotFound
from domain.kernel.ports import Outcome
from domain.record.record import Record
from domain.webhook.aggregate import Webhook
from domain.webhook.callback import ENDPOINT_KINDS, Callback
from domain.webhook.details import CallbackDetails, EndpointDetails, WebhookDetails, WebhookFamily
from domain.webhook.endpoint import Endpoint
from domain.webhook.handlers import WebhookChanges, WebhookHandlers
from projections.job.settings import EngineSettingsQueries
from projections.log.executor import CommandExecutor
from projections.record.queries import BY_CREATION, RecordQueries, RecordRow

# The limit on the webhooks that a client adds, if an admin has set one: docs/reference/api/job-engine.md#settings. Several
# webhooks may be added at the same moment, so the limit may be exceeded slightly.


class WebhookCeiling:
    """Refuses further webhooks of a client that has reached its limit."""

    def __init__(self, records: RecordQueries, settings: EngineSettingsQueries) -> None:
        self._records = records
        self._settings = settings

    async def admit(self, client: str) -> None:
        """Raise `Forbidden` if the client has reached its limit."""
        most = (await self._settings.of([client]))[client].max_webhooks
        if most is not None and await self._records.added_by(Webhook, client, most=most) >= most:
            raise Forbidden(f"the client has added {most} webhooks, which is its limit")


routes = APIRouter(prefix="/api/webhook", tags=["Webhooks"], route_class=UnstoredMediaRoute)
misspelled_routes = APIRouter(prefix="/api/webook", tags=["Webhooks"], route_class=UnstoredMediaRoute)
"""Routes under a misspelled address that older clients use."""

_NO_STORE: Final = (("cache-control", "no-store"),)


async def webhook_added(request: Request, outcome: Outcome[Webhook]) -> Response:
    """Return a new webhook with its secret, or the changed webhook."""
    if not outcome.result.get("added"):
        return await WEBHOOKS.respond(request, outcome)
    webhook = RecordRow.of(outcome.aggregate)
    body = added_response(webhook, outcome.secrets.get("secret"))
    return Response(body, etag=webhook.version, headers=_NO_STORE)


@routes.post("/", dependencies=[WRITE], response_model=responses.AddedWebhook)
@rules(absent=404, respond=webhook_added)
async def add_or_update_webhook(
    request: Request, body: AddOrUpdateWebhookRequest, handlers: Service[WebhookHandlers], ceiling: Service[WebhookCeiling]
) -> Outcome[Webhook]:
    """Add a system-wide webhook, or change the one with this id. The secret of a new webhook is shown only in this response."""
    return await _add_or_update(request, body, handlers, ceiling=ceiling, family=WebhookFamily.SYSTEM_WIDE)


@misspelled_routes.post(
    "/event/", dependencies=[WRITE], response_model=responses.AddedEventWebhook, name="add_or_update_event_webhook_misspelled"
)
@routes.post("/event/", dependencies=[WRITE], response_model=responses.AddedEventWebhook)
@rules(absent=404, respond=webhook_added)
async def add_or_update_event_webhook(
    request: Request, body: AddOrUpdateEventWebhookRequest, handlers: Service[WebhookHandlers], ceiling: Service[WebhookCeiling]
) -> Outcome[Webhook]:
    """Add a webhook of one Event, or change the one with this id. The secret of a new webhook is shown only in this response."""
    return await _add_or_update(request, body, handlers, ceiling=ceiling, family=WebhookFamily.EVENT)


@routes.put("/{id}", dependencies=[WRITE], response_model=responses.Webhook)
@rules(respond=WEBHOOKS.respond)
async def update_webhook(
    request: Request, id: UUID, body: UpdateWebhookRequest, handlers: Service[WebhookHandlers]
) -> Outcome[Webhook]:
    """Change a system-wide webhook. Absent fields stay unchanged."""
    return await handlers.update(id, _changes(body), family=WebhookFamily.SYSTEM_WIDE, invocation=request.invocation)


@routes.put("/{id}/event/", dependencies=[WRITE], response_model=responses.EventWebhook)
@rules(respond=WEBHOOKS.respond)
async def update_event_webhook(
    request: Request, id: UUID, body: UpdateEventWebhookRequest, handlers: Service[WebhookHandlers]
) -> Outcome[Webhook]:
    """Change a webhook of an Event, or move it to another Event. Absent fields stay unchanged."""
    return await handlers.update(id, _changes(body), family=WebhookFamily.EVENT, invocation=request.invocation)


@routes.get("/", dependencies=[READ], response_model=list[responses.Webhook])
@rules(absent=204)
async def list_webhooks(request: Request, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]) -> Response:
    """The system-wide webhooks, oldest first."""
    parts = records.parts(Webhook, order=BY_CREATION, without_parent=True)
    listed = await WEBHOOKS.array([webhook_for(request, webhook) for webhook in part] async for part in parts)
    return Response(status_code=204) if listed.content == [] else listed


@routes.get("/event/{eventId}", dependencies=[READ], response_model=list[responses.EventWebhook])
@rules(absent=204)
async def list_event_webhooks(
    request: Request,
    event_id: Annotated[UUID, Path(alias="eventId")],
    query: Annotated[FreshQuery, Query()],
    records: Service[RecordQueries],
) -> Response:
    """The webhooks of an Event, oldest first."""
    webhooks = await records.of_parent(Webhook, event_id)
    if not webhooks:
        return Response(status_code=204)
    ordered = sorted(webhooks, key=lambda webhook: (webhook.date_created, webhook.id))
    return WEBHOOKS.listed([webhook_for(request, webhook) for webhook in ordered])


@routes.get("/{id}", dependencies=[READ], response_model=responses.Webhook)
@rules(absent=204)
async def get_webhook(
    request: Request, id: UUID, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The system-wide webhook with this id."""
    return WEBHOOKS.single(_for(request, await find(id, WebhookFamily.SYSTEM_WIDE, records)), id)


@routes.get("/{id}/event/", dependencies=[READ], response_model=responses.EventWebhook)
@rules(absent=204)
async def get_event_webhook(
    request: Request, id: UUID, query: Annotated[FreshQuery, Query()], records: Service[RecordQueries]
) -> Response:
    """The webhook of an Event with this id."""
    return WEBHOOKS.single(_for(request, await find(id, WebhookFamily.EVENT, records)), id)


@routes.delete("/{id}", dependencies=[WRITE], response_model=responses.EventWebhook | responses.Webhook | responses.Callback)
@rules(respond=ENDPOINTS.respond)
async def delete_webhook(
    request: Request, id: UUID, records: Service[RecordQueries], handlers: Service[WebhookHandlers]
) -> Outcome[Record]:
    """Delete a webhook of any family, or a callback. The response shows its last state."""
    await check_own_callback(request, id, records)
    return await handlers.delete(id, invocation=request.invocation)


async def secret_rotated(request: Request, outcome: Outcome[Endpoint]) -> Response:
    return Response(responses.WebhookSecret(secret=outcome.secrets.get("secret")), headers=_NO_STORE)


@routes.post("/{id}/secret/", dependencies=[WRITE], response_model=responses.WebhookSecret)
@rules(respond=secret_rotated)
async def rotate_webhook_secret(
    request: Request, id: UUID, records: Service[RecordQueries], handlers: Service[WebhookHandlers]
) -> Outcome[Endpoint]:
    """Create a new signing secret, shown only in this response. For 24 hours requests are signed with the old secret too."""
    await check_own_callback(request, id, records)
    return await handlers.rotate_secret(id, invocation=request.invocation)


async def event_notified(request: Request, outcome: Outcome[MediaEvent]) -> Response:
    return Response(responses.ForcedNotification.model_construct(event_id=UUID(outcome.aggregate.key)))


@routes.post("/notify/{eventId}", dependencies=[WRITE], response_model=responses.ForcedNotification)
@rules(respond=event_notified)
async def force_notification(
    request: Request, event_id: Annotated[UUID, Path(alias="eventId")], executor: Service[CommandExecutor]
) -> Outcome[MediaEvent]:
    """Send a notification of an Event's current state, with `isForced`, to all its webhooks and all system-wide webhooks."""
    return await executor.execute(MediaEvent.force_notification.on(event_id), invocation=request.invocation)


async def find(key: UUID, family: WebhookFamily, records: RecordQueries) -> RecordRow[WebhookDetails] | None:
    """Return the webhook; None if it belongs to another family."""
    webhook = await records.find(Webhook, key)
    return webhook if webhook is not None and webhook.details.family is family else None


async def find_endpoint(request: Request, key: UUID, records: RecordQueries) -> RecordRow[EndpointDetails]:
    """Return a webhook of any family, or a callback of the caller. Raise `NotFound` otherwise."""
    row = next(iter(await records.of_kinds(ENDPOINT_KINDS, [key])), None)
    if row is None:
        raise NotFound(Webhook.KIND, str(key))
    if isinstance(row.details, CallbackDetails):
        check_owner(request, row.details.client, what="callback")
    return row


async def check_own_callback(request: Request, key: UUID, records: RecordQueries) -> None:
    """Raise an error if this is a callback of another client and the caller is not an admin. The client of a callback never
    changes."""
    row = await records.find(Callback, key)
    if row is not None:
        check_owner(request, row.details.client, what="callback")


async def _add_or_update(
    request: Request,
    body: AddOrUpdateWebhookRequest,
    handlers: WebhookHandlers,
    *,
    ceiling: WebhookCeiling,
    family: WebhookFamily,
) -> Outcome[Webhook]:
    if body.id is None:
        await ceiling.admit(request.caller.name)
        return await handlers.add(_changes(body), invocation=request.invocation)
    return await handlers.update(body.id, _changes(body), family=family, invocation=request.invocation)


def _changes(body: UpdateWebhookRequest) -> WebhookChanges:
    return WebhookChanges(WEBHOOKS.values(body), body.password)


def _for(request: Request, webhook: RecordRow[WebhookDetails] | None) -> RecordRow[WebhookDetails] | None:
    return None if webhook is None else webhook_for(request, webhook)
