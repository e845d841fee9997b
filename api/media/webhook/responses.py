"""Responses for webhooks: docs/reference/api/webhooks.md#fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from pydantic import Field

from api.audit.past_states import Renderer
from api.kernel.wire import Instant, Wire
from api.media.resource import Resource
from domain.webhook import aggregate, callback
from domain.webhook.details import CallbackDetails, EndpointDetails, WebhookDetails, WebhookFamily
from domain.webhook.endpoint import Endpoint
from projections.record.queries import RecordRow

_SHOWN_ONCE: Final = (
    "Signing secret of a new webhook: whsec_ and base64. It is shown once; null when the answer is repeated under an "
    "Idempotency-Key, absent if a webhook was changed."
)


class _WebhookId(Wire):
    id: UUID = Field(description="Id of the webhook.")


class _EventWebhookIds(_WebhookId):
    event_id: UUID = Field(description="Id of the Event that the webhook is called for.")


class _WebhookFields(Wire):
    """The fields of every webhook. Fields of bases that precede the last base come after it in the JSON object."""

    webhook_url: str = Field(description="URL that is called.")
    use_http_basic_authentication: bool = Field(description="True if requests use HTTP basic authentication.")
    use_json_body: bool = Field(description="true: notifications are sent as JSON; false: as a form.")
    username: str | None = Field(description="User name for basic authentication; null if there is none.")
    password: str | None = Field(description="Always null, whatever is stored.")
    additional_properties_json: str | None = Field(
        description="JSON text with extra request headers as it was sent, with null in place of each credential; null if there "
        "is none."
    )
    disabled_at: Instant | None = Field(description="The time when the webhook was disabled; null while it is enabled.")


class Webhook(_WebhookFields, _WebhookId):
    """A webhook that is called for all Events."""


class EventWebhook(_WebhookFields, _EventWebhookIds):
    """A webhook that is called for one Event."""


class AddedWebhook(Webhook):
    """A webhook that was added or changed."""

    secret: str | None = Field(default=None, description=_SHOWN_ONCE)


class AddedEventWebhook(EventWebhook):
    """A webhook of an Event that was added or changed."""

    secret: str | None = Field(default=None, description=_SHOWN_ONCE)


class Callback(Wire):
    """An address that is called for the jobs of one client."""

    id: UUID = Field(description="Id of the callback, derived from its client and address.")
    client: str = Field(description="Name of the client whose jobs it is called for.")
    webhook_url: str = Field(description="Address that is called, without its user info and query.")
    disabled_at: Instant | None = Field(description="The time when the callback was disabled; null while it is enabled.")

    @classmethod
    def of(cls, row: RecordRow[CallbackDetails]) -> Callback:
        details = row.details
        return cls.model_construct(
            id=UUID(row.id), client=details.client, webhook_url=details.webhook_url, disabled_at=details.disabled_at
        )


class CallbackCollection(Wire):
    """A page of callbacks."""

    page_size: int = Field(description="Effective number of callbacks in a page: at most 1000.")
    total_count: int = Field(description="Number of callbacks on all pages.")
    results: list[Callback] = Field(description="Callbacks of this page, oldest first unless `order` is DESC.")


class WebhookSecret(Wire):
    """A new signing secret."""

    secret: str | None = Field(
        description="Signing secret: whsec_ and base64. It is shown once; null when the answer is repeated under an "
        "Idempotency-Key."
    )


class ForcedNotification(Wire):
    """A notification that was requested."""

    event_id: UUID = Field(description="Id of the Event whose webhooks are called.")


def webhook_response(webhook: RecordRow[WebhookDetails]) -> Any:
    """Return the response of the webhook's family."""
    model: type[Wire] = Webhook if webhook.details.family is WebhookFamily.SYSTEM_WIDE else EventWebhook
    return model.model_construct(**_values(webhook))


def added_response(webhook: RecordRow[WebhookDetails], secret: str | None) -> Wire:
    """Return the response with the secret of a new webhook."""
    system_wide = webhook.details.family is WebhookFamily.SYSTEM_WIDE
    model: type[Wire] = AddedWebhook if system_wide else AddedEventWebhook
    return model.model_construct(**_values(webhook), secret=secret)


def _values(webhook: RecordRow[WebhookDetails]) -> dict[str, Any]:
    details = webhook.details
    return {
        "id": UUID(webhook.id),
        "event_id": details.event_id,
        "webhook_url": details.webhook_url,
        "use_http_basic_authentication": details.use_http_basic_authentication,
        "use_json_body": details.use_json_body,
        "username": details.username,
        "password": None,
        "additional_properties_json": details.additional_properties_json,
        "disabled_at": details.disabled_at,
    }


def endpoint_response(endpoint: RecordRow[EndpointDetails]) -> Any:
    """Return the response of a webhook of any family, or of a callback."""
    if endpoint.kind == callback.Callback.KIND:
        return Callback.of(endpoint.whole(callback.Callback))
    return webhook_response(endpoint.whole(aggregate.Webhook))


WEBHOOKS = Resource(aggregate.Webhook, "/api/webhook", webhook_response)
CALLBACKS = Resource(callback.Callback, "/api/webhook", Callback.of)
ENDPOINTS = Resource(Endpoint, "/api/webhook", endpoint_response)


def past_states() -> Mapping[str, Renderer]:
    return {resource.kind.KIND: resource.past_state for resource in (WEBHOOKS, CALLBACKS)}
