"""Requests for webhooks: docs/reference/api/webhooks.md#fields."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import UUID

from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema

from api.kernel.pages import FreshQuery, PageQuery, Whole
from api.kernel.wire import Flag, Instant, Label, NamedInt, Text, Wire
from domain.kernel.urls import LONGEST_URL
from domain.webhook.basic_auth import LONGEST_PASSWORD
from projections.webhook.all_webhooks import DeliveryKind
from projections.webhook.queries import DeliveryState

MOST_RESENT: Final = 100
"""Deliveries that one call may send again."""

_WebhookUrl = Annotated[
    Text,
    StringConstraints(max_length=LONGEST_URL),
    WithJsonSchema({"type": "string", "format": "uri", "maxLength": LONGEST_URL, "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$"}),
]


class UpdateWebhookRequest(Wire):
    """Changes of a webhook. Absent fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"useJsonBody": False, "disabledAt": None}]})

    webhook_url: _WebhookUrl | None = Field(
        default=None,
        description=f"Absolute http or https URL that is called: at most {LONGEST_URL} visible ASCII characters, without user info "
        "and fragment. Required for a new webhook; null keeps the stored one.",
    )
    use_http_basic_authentication: Flag | None = Field(
        default=None, description="True if requests use HTTP basic authentication. Default false; null means the default."
    )
    use_json_body: Flag | None = Field(
        default=None, description="true sends notifications as JSON, false as a form. Default true; null means the default."
    )
    username: Label | None = Field(
        default=None,
        description="User name for basic authentication: at most 600 characters, no colon, no control characters. null clears it.",
    )
    password: Annotated[Text, StringConstraints(max_length=LONGEST_PASSWORD)] | None = Field(
        default=None,
        description=f"Password for basic authentication: at most {LONGEST_PASSWORD} characters, no control characters. null or "
        "absent keeps the stored one; the empty text clears it.",
    )
    additional_properties_json: Text | None = Field(
        default=None,
        description='JSON text with extra request headers, such as {"headers": [{"name": "X-Channel", "value": "one"}]}. A null '
        "value keeps the stored credential of that header; null instead of the text clears all headers.",
    )
    disabled_at: Instant | None = Field(
        default=None, description="Any date-time disables the webhook immediately; null enables it again."
    )


class UpdateEventWebhookRequest(UpdateWebhookRequest):
    """Changes of a webhook of an Event. Absent fields stay unchanged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"useJsonBody": True}]})

    event_id: UUID | None = Field(default=None, description="Id of the Event that the webhook is called for; null keeps it.")


class AddOrUpdateWebhookRequest(UpdateWebhookRequest):
    """A new webhook or, with `id`, changes of an existing one. A new webhook needs a `webhookUrl`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "webhookUrl": "https://receiver.example/medialedger",
                    "additionalPropertiesJson": '{"headers": [{"name": "X-Channel", "value": "one"}]}',
                }
            ]
        }
    )

    id: UUID | None = Field(default=None, description="Id of the webhook to change; null or absent adds a new one.")


class AddOrUpdateEventWebhookRequest(AddOrUpdateWebhookRequest):
    """A new webhook of an Event or, with `id`, changes of an existing one. A new webhook needs a `webhookUrl`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "eventId": "8f51eaa1-decb-4863-89d3-9eb99768c67b",
                    "webhookUrl": "https://receiver.example/match",
                    "useHttpBasicAuthentication": True,
                    "username": "receiver",
                    "password": "a password",
                }
            ]
        }
    )

    event_id: UUID = Field(description="Id of the Event that the webhook is called for. Required.")


class UpdateCallbackRequest(Wire):
    """Enables or disables a callback."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"disabledAt": None}]})

    disabled_at: Instant | None = Field(
        description="Any date-time disables the callback immediately; null enables it again. Required."
    )


class CallbacksQuery(PageQuery):
    """Query of a page of callbacks."""

    client: Label | None = Field(default=None, description="Only callbacks of this client; all clients by default.")


class DeliveriesQuery(FreshQuery):
    """Query of a page of a webhook's deliveries."""

    state: Annotated[DeliveryState, NamedInt(DeliveryState)] | None = Field(
        default=None, description="Only deliveries in this state: 0 PENDING, 1 DELIVERED, 2 FAILED; all by default."
    )
    event_id: UUID | None = Field(default=None, description="Only deliveries about this Event.")
    job_id: Whole | None = Field(default=None, description="Only deliveries about this job.")
    before: UUID | None = Field(default=None, description="Id of a delivery; only older deliveries are listed.")
    page_size: Whole = Field(default=20, description="Deliveries in a page; default 20, at most 1000.")


class AllDeliveriesQuery(FreshQuery):
    """Query of a page of the deliveries of all webhooks."""

    state: Annotated[DeliveryState, NamedInt(DeliveryState)] | None = Field(
        default=None, description="Only deliveries in this state: 0 PENDING, 1 DELIVERED, 2 FAILED; all by default."
    )
    webhook_id: UUID | None = Field(default=None, description="Only deliveries of this webhook or callback; all by default.")
    kind: DeliveryKind | None = Field(
        default=None,
        description="Only deliveries of this kind: event, job, infrastructure (of an Event) or log (checkpoints); all by default.",
    )
    created_from: Instant | None = Field(default=None, alias="from", description="Created at this time or later.")
    created_to: Instant | None = Field(default=None, alias="to", description="Created at this time or earlier.")
    before: UUID | None = Field(default=None, description="Id of a delivery; only older deliveries are listed.")
    page_size: Whole = Field(default=20, description="Deliveries in a page; default 20, at most 1000.")


class ResendDeliveriesRequest(Wire):
    """Deliveries to send again, of any webhooks."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["00000000-0000-8001-9a6c-3f0d5c1f2b7e"]}]})

    ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST_RESENT)] = Field(
        description=f"Ids of finished deliveries, at most {MOST_RESENT}."
    )


class RecoverQuery(Wire):
    """Query of a recovery of failed deliveries."""

    since: Instant = Field(description="Failed deliveries that were created at this time or later. Required.")
