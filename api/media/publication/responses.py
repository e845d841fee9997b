"""Responses for publications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Instant, NamedInt, Wire
from api.media.publication.batches import EntryResult
from domain.destination.targets import Target
from domain.publication.row import PublicationRow
from domain.publication.values import PublicationState

Triggered = Mapping[tuple[UUID, UUID], datetime]


class PublicationCallback(Wire):
    """An address that is called when a publication changes."""

    id: UUID = Field(description="The id of the callback; its deliveries are listed under it.")
    publication_id: UUID = Field(description="The publication.")
    url: str = Field(description="The address, without user info and query.")
    last_triggered: Instant | None = Field(
        description="The time of its last call for this publication; null before the first call, or if it is long ago."
    )


class MediaPublication(Wire):
    """A publication in a response of the media API."""

    id: UUID = Field(description="The id of the publication.")
    target: Annotated[Target, NamedInt(Target)] = Field(description="The target of its destination at the time of creation.")
    destination_id: UUID = Field(description="The destination.")
    content_id: str = Field(description="The content.")
    date_created: Instant = Field(description="The time when it was created.")
    date_started: Instant | None = Field(description="The time when its publishing last began; null before the first time.")
    date_completed: Instant | None = Field(description="The time when it was completed; null until then.")
    details: dict[str, Any] | None = Field(
        description="The details reported by the target; null if there are none or the target cannot be queried."
    )
    callbacks: list[PublicationCallback] = Field(description="The addresses that are called when it changes.")

    @classmethod
    def of(cls, row: PublicationRow, triggered: Triggered, details: Mapping[str, Any] | None) -> Self:
        return cls.from_values(_values(row, triggered, details))


class VodPublication(MediaPublication):
    """A publication in a response of the VOD publications API."""

    destination_name: str = Field(description="The name of the destination.")
    transaction_id: UUID = Field(description="The id of the request, shared by all publications of one request.")
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


class LivePublication(VodPublication):
    """A live publication in a response."""


class PushStatistics(Wire):
    """The transmission of a live publication to its target. Without a session nothing has been pushed yet."""

    publication_id: UUID = Field(description="The publication.")
    publication_state: Annotated[PublicationState, NamedInt(PublicationState)] = Field(description="The state.")
    publication_state_string: str = Field(description="The name of the state.")
    session: int | None = Field(description="The number of the current or last session; later sessions have higher numbers.")
    connected: bool = Field(description="True if the target takes the stream now.")
    uptime: float = Field(description="Seconds since the target began to take the stream; 0 if it does not.")
    bytes: int = Field(description="Bytes of media sent by the session.")
    bitrate: float = Field(description="Bits per second over the last seconds.")
    fps: float = Field(description="Pictures per second over the last seconds.")
    frames: int = Field(description="Pictures sent by the session.")
    reconnects: int = Field(description="Number of times that the connection to the target was lost and restored.")
    last_error: str | None = Field(description="The last error; null if there was none.")
    time: Instant | None = Field(description="The time of the report.")
    server: dict[str, Any] | None = Field(
        description="The report of the streaming server that pushes it; null if the product pushes it."
    )

    @classmethod
    def of(cls, row: PublicationRow, report: Mapping[str, Any]) -> Self:
        state = {"publication_state": row.state, "publication_state_string": row.state.name}
        return cls.from_values({"publication_id": row.id, **state, **NOTHING_PUSHED, **report})


NOTHING_PUSHED: Final[Mapping[str, Any]] = {
    "session": None,
    "connected": False,
    "uptime": 0.0,
    "bytes": 0,
    "bitrate": 0.0,
    "fps": 0.0,
    "frames": 0,
    "reconnects": 0,
    "last_error": None,
    "time": None,
    "server": None,
}


class StreamResult(Wire):
    """The result for one publication of a request for several."""

    publication_id: UUID = Field(description="The publication.")
    destination_id: UUID = Field(description="The destination.")
    is_successful: bool = Field(description="True if it succeeded.")
    description: str = Field(description="The result, or the reason why it failed.")

    @classmethod
    def of(cls, result: EntryResult) -> StreamResult:
        return cls.model_construct(
            publication_id=result.entry.publication_id,
            destination_id=result.entry.destination_id,
            is_successful=result.fault is None,
            description=result.fault or "Done.",
        )


class VodPublicationPage(Wire):
    """A page of publications."""

    page_size: int = Field(description="The maximum number of entries in a page.")
    total_count: int = Field(description="Number of publications that match the filter.")
    results: list[VodPublication] = Field(description="The publications of this page.")


class OperationResult(Wire):
    """The result of an operation at the target."""

    description: str = Field(description="The result, or the reason why it failed.")
    is_successful: bool = Field(description="True if the target carried it out.")


class DeletedCount(Wire):
    deleted_count: int = Field(description="Number of deleted records.")


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
