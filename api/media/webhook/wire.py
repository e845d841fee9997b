"""Webhooks as requests and answers spell them: document 2, "Webhook objects"; decisions.md, "Webhooks"."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import StringConstraints

from api.kernel.answer import iso
from api.kernel.wire import Flag, Instant, Label, Text, Wire
from domain.webhook.address import LONGEST_PASSWORD, LONGEST_URL
from projections.records.queries import RecordRow


class WebhookBody(Wire):
    """What is absent stays as it is. A password, or a header's value, that is null or absent keeps its value; "" clears a password.
    `disabledAt` null sets a webhook to work again."""

    webhook_url: Annotated[Text, StringConstraints(max_length=LONGEST_URL)] | None = None
    use_http_basic_authentication: Flag | None = None
    use_json_body: Flag | None = None
    username: Label | None = None
    password: Annotated[Text, StringConstraints(max_length=LONGEST_PASSWORD)] | None = None
    additional_properties_json: Text | None = None
    disabled_at: Instant | None = None


class EventWebhookBody(WebhookBody):
    """null for `eventId` leaves it as it is: a webhook of an Event does not become one of all."""

    event_id: UUID | None = None


class PutWebhookBody(WebhookBody):
    """With `id` that webhook is changed, without it a new one is made, which needs a `webhookUrl`."""

    id: UUID | None = None


class PutEventWebhookBody(PutWebhookBody):
    event_id: UUID


class WebhookWire(Wire):
    """`password`, and the values of headers with credentials in `additionalPropertiesJson`, are null, whatever is stored."""

    id: UUID
    webhook_url: str
    use_http_basic_authentication: bool
    use_json_body: bool
    username: str | None
    password: None
    additional_properties_json: str | None
    disabled_at: Instant | None


class MadeWebhookWire(WebhookWire):
    """`secret` is shown when the webhook is made, and never again."""

    secret: str | None = None


class EventWebhookWire(WebhookWire):
    event_id: UUID


class MadeEventWebhookWire(EventWebhookWire):
    """`secret` is shown when the webhook is made, and never again."""

    secret: str | None = None


class CallbackBody(Wire):
    """null sets a callback to work again."""

    disabled_at: Instant | None


class CallbackWire(Wire):
    """`webhookUrl` is without user info and query; it is called with them."""

    id: UUID
    client: str
    webhook_url: str
    disabled_at: Instant | None


class CallbacksWire(Wire):
    page_size: int
    total_count: int
    results: list[CallbackWire]


class SecretWire(Wire):
    secret: str | None


class NotifiedWire(Wire):
    event_id: UUID


def shaped(webhook: RecordRow) -> dict[str, Any]:
    details = webhook.details
    if details.job_client is not None:
        return _callback(webhook)
    about = {"eventId": str(details.event_id)} if details.event_id is not None else {}
    return {
        "id": webhook.id,
        **about,
        "webhookUrl": details.webhook_url,
        "useHttpBasicAuthentication": details.use_http_basic_authentication,
        "useJsonBody": details.use_json_body,
        "username": details.username,
        "password": None,
        "additionalPropertiesJson": details.additional_properties_json,
        "disabledAt": _iso(details.disabled_at),
    }


def _callback(webhook: RecordRow) -> dict[str, Any]:
    details = webhook.details
    return {
        "id": webhook.id,
        "client": details.job_client,
        "webhookUrl": details.webhook_url,
        "disabledAt": _iso(details.disabled_at),
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
