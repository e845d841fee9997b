"""Responses about publications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Instant, NamedInt, Wire
from domain.destination.targets import Target
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationState

Triggered = Mapping[tuple[UUID, UUID], datetime]


class PublicationCallback(Wire):
    """An address that is told of the changes of a publication."""

    id: UUID = Field(description="The id of the callback; its deliveries are found under it.")
    publication_id: UUID = Field(description="The publication.")
    url: str = Field(description="The address, without user info and query.")
    last_triggered: Instant | None = Field(description="When it was last called for this publication; null: not yet, or long ago.")


class MediaPublication(Wire):
    """A publication in a response of the media API."""

    id: UUID = Field(description="The id of the publication.")
    target: Annotated[Target, NamedInt(Target)] = Field(description="The target of its destination, when it was created.")
    destination_id: UUID = Field(description="The destination.")
    content_id: str = Field(description="The content.")
    date_created: Instant = Field(description="When it was created.")
    date_started: Instant | None = Field(description="When its publishing last began; null: not yet.")
    date_completed: Instant | None = Field(description="When it was completed; null: not yet.")
    details: dict[str, Any] | None = Field(description="What the target says of it; null: nothing, or it cannot be asked.")
    callbacks: list[PublicationCallback] = Field(description="The addresses that are told of its changes.")

    @classmethod
    def of(cls, row: PublicationRow, triggered: Triggered, details: Mapping[str, Any] | None) -> Self:
        return cls.from_values(_values(row, triggered, details))


class VodPublication(MediaPublication):
    """A publication in a response of the VOD publications API."""

    destination_name: str = Field(description="The name of the destination.")
    transaction_id: UUID = Field(description="The same for all publications of one request.")
    publication_state: Annotated[PublicationState, NamedInt(PublicationState)] = Field(description="The state.")
    publication_state_string: str = Field(description="The name of the state.")

    @classmethod
    def of(cls, row: PublicationRow, triggered: Triggered, details: Mapping[str, Any] | None) -> Self:
        more = {
            "destination_name": row.destination_name,
            "transaction_id": row.transaction_id,
            "publication_state": row.state,
            "publication_state_string": row.state.name,
        }
        return cls.from_values(_values(row, triggered, details) | more)


class VodPublicationPage(Wire):
    """A page of publications."""

    page_size: int = Field(description="How many entries a page has at most.")
    total_count: int = Field(description="How many publications the filter finds.")
    results: list[VodPublication] = Field(description="The publications of this page.")


class OperationResult(Wire):
    """What came of an operation at the target."""

    description: str = Field(description="What was done, or why it was not.")
    is_successful: bool = Field(description="Whether the target did it.")


class DeletedCount(Wire):
    deleted_count: int = Field(description="How many were deleted.")


def _values(row: PublicationRow, triggered: Triggered, details: Mapping[str, Any] | None) -> dict[str, Any]:
    callbacks = [
        PublicationCallback.model_construct(
            id=callback.id, publication_id=row.id, url=callback.url, last_triggered=triggered.get((row.id, callback.id))
        )
        for callback in row.text.callbacks
    ]
    return {
        "id": row.id,
        "target": row.target,
        "destination_id": row.destination_id,
        "content_id": row.content_id,
        "date_created": row.date_created,
        "date_started": row.date_started,
        "date_completed": row.date_completed,
        "details": None if details is None else dict(details),
        "callbacks": callbacks,
    }
