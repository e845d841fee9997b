"""Responses of deliveries: docs/reference/api/webhooks.md#deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import Field
from pydantic_core import from_json

from api.kernel.wire import Instant, Wire
from projections.webhook import queries
from projections.webhook.queries import DeliveryState
from workers.ports.webhooks import ProbeResult


class DeliveryStateName(StrEnum):
    """The state of a delivery."""

    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


class DeliveryAttempt(Wire):
    """An attempt of a delivery."""

    number: int = Field(description="Number of the attempt, from 1.")
    started_at: Instant = Field(description="The time when the attempt began.")
    seconds: float = Field(description="Duration in seconds.")
    status: int | None = Field(description="HTTP status of the receiver's answer; null if there was none.")
    error: str | None = Field(description="The reason why the attempt failed; null if it succeeded.")
    address: str = Field(description="IP address that was called; empty if none was.")
    response: str = Field(description="First 500 characters of the answer's body; may be empty.")

    @classmethod
    def of(cls, number: int, attempt: queries.Attempt) -> DeliveryAttempt:
        return cls.model_construct(
            number=number,
            started_at=attempt.started_at,
            seconds=round(attempt.seconds, 6),
            status=attempt.status,
            error=attempt.error,
            address=attempt.address,
            response=attempt.response,
        )


class Delivery(Wire):
    """A notification for a webhook or a notice for a callback, with all its attempts."""

    id: UUID = Field(description="Id of the delivery, which the receiver gets as `webhook-id`.")
    webhook_id: UUID = Field(description="Id of the webhook.")
    event_id: UUID | None = Field(description="Id of the Event; null for a notice of a job and for log.sealed.")
    job_id: int | None = Field(description="Number of the job; null unless it is a notice of a job.")
    position: int = Field(description="Position of the write in the event log.")
    state: DeliveryStateName = Field(description="PENDING, DELIVERED or FAILED.")
    action: str = Field(
        description="Action of the notification: Added, Updated, Deleted, Restored or log.sealed; for a callback, the status "
        "of its "
        "job or the state of its infrastructure."
    )
    payload: dict[str, Any] = Field(description="The JSON that was sent, or its fields if it was sent as a form.")
    created_at: Instant = Field(description="The time when the delivery was created.")
    due_at: Instant | None = Field(description="The time of the next attempt; null when it is finished.")
    finished_at: Instant | None = Field(description="The time when it was delivered or failed finally; null while it is pending.")
    error: str | None = Field(description="The reason why the last attempt failed; null if it was delivered or not attempted yet.")
    attempts: list[DeliveryAttempt] = Field(description="All attempts, the oldest first.")

    @classmethod
    def of(cls, delivery: queries.Delivery) -> Delivery:
        payload = from_json(delivery.payload)
        pending, job = delivery.state is DeliveryState.PENDING, delivery.job
        return cls.model_construct(
            id=delivery.id,
            webhook_id=delivery.webhook,
            event_id=_event_of(delivery, payload) if job is None and not delivery.is_of_log else None,
            job_id=job,
            position=delivery.position,
            state=DeliveryStateName(delivery.state.name),
            action=payload[_action_of(delivery)],
            payload=payload,
            created_at=delivery.created_at,
            due_at=delivery.due_at if pending else None,
            finished_at=delivery.finished_at,
            error=delivery.error,
            attempts=[DeliveryAttempt.of(number, attempt) for number, attempt in enumerate(delivery.attempts, 1)],
        )


def _event_of(delivery: queries.Delivery, payload: Mapping[str, Any]) -> UUID:
    return UUID(payload["eventId"] if delivery.is_of_infrastructure else delivery.ordering_key)


def _action_of(delivery: queries.Delivery) -> str:
    if delivery.is_of_infrastructure:
        return "stateString"
    if delivery.is_of_log:
        return "type"
    return "action" if delivery.job is None else "status"


class DeliveryCollection(Wire):
    """A page of deliveries, newest first."""

    page_size: int = Field(description="Effective number of deliveries in a page: at most 1000.")
    results: list[Delivery] = Field(description="Deliveries of this page, newest first.")
    next: str | None = Field(description="Address of the next page with the same filters; null on the last page.")


class DeliveryOfWebhook(Delivery):
    """A delivery in the list of all webhooks."""

    webhook_url: str = Field(description="Address of the webhook or callback, without credentials.")


class AllDeliveryCollection(Wire):
    """A page of the deliveries of all webhooks, newest first."""

    page_size: int = Field(description="Effective number of deliveries in a page: at most 1000.")
    results: list[DeliveryOfWebhook] = Field(description="Deliveries of this page, newest first.")
    next: str | None = Field(description="Address of the next page with the same filters; null on the last page.")


class ResentDelivery(Wire):
    """The result of the request to send a delivery again."""

    id: UUID = Field(description="Id of the delivery.")
    requeued: bool = Field(description="True if it will be sent again.")
    error: str | None = Field(description="The reason why it will not be sent again; null if it will.")


class ResentDeliveries(Wire):
    """The results of a request to send deliveries again."""

    requeued: int = Field(description="Number of deliveries that will be sent again.")
    results: list[ResentDelivery] = Field(description="The results in the order of the request.")


class RecoveredDeliveries(Wire):
    """The result of a recovery."""

    requeued: int = Field(description="Number of deliveries that will be sent again.")


class WebhookTest(Wire):
    """The result of a test notification."""

    id: UUID = Field(description="The `webhook-id` that was sent.")
    delivered: bool = Field(description="True if the receiver answered 2xx.")
    status: int | None = Field(description="HTTP status of the receiver's answer; null if there was none.")
    error: str | None = Field(description="The reason why it failed; null if it was delivered.")
    seconds: float = Field(description="Duration in seconds.")
    address: str = Field(description="IP address that was called; empty if none was.")
    response: str = Field(description="First 500 characters of the answer's body; may be empty.")

    @classmethod
    def of(cls, result: ProbeResult) -> WebhookTest:
        return cls.model_construct(
            id=result.id,
            delivered=result.error is None,
            status=result.status,
            error=result.error,
            seconds=round(result.seconds, 6),
            address=result.address,
            response=result.response,
        )
