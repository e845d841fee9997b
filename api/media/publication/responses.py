"""Responses about publications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self
from uuid import UUID

from pydantic import Field

from api.kernel.wire import Instant, NamedInt, Wire
from api.media.publication.each import EntryResult
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


class LivePublication(VodPublication):
    """A live publication in a response."""


class PushStatistics(Wire):
    """How the stream of a live publication arrives at its target. Without a session nothing was pushed yet."""

    publication_id: UUID = Field(description="The publication.")
    publication_state: Annotated[PublicationState, NamedInt(PublicationState)] = Field(description="The state.")
    publication_state_string: str = Field(description="The name of the state.")
    session: int | None = Field(description="The number of the session that pushes, or pushed last; each has a higher one.")
    connected: bool = Field(description="Whether the target takes the stream now.")
    uptime: float = Field(description="Seconds since the target last began to take it; 0: it does not.")
    bytes: int = Field(description="Bytes of media that the session has sent.")
    bitrate: float = Field(description="Bits a second over the last seconds.")
    fps: float = Field(description="Pictures a second over the last seconds.")
    frames: int = Field(description="Pictures that the session has sent.")
    reconnects: int = Field(description="How often the connection to the target was lost and came back.")
    last_error: str | None = Field(description="What went wrong last; null: nothing.")
    time: Instant | None = Field(description="When this was told.")
    server: dict[str, Any] | None = Field(description="What the streaming server says that pushes it; null: the product does.")

    @classmethod
    def of(cls, row: PublicationRow, told: Mapping[str, Any]) -> Self:
        state = {"publication_state": row.state, "publication_state_string": row.state.name}
        return cls.from_values({"publication_id": row.id, **state, **NOTHING_PUSHED, **told})


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
    """What became of one publication of a request about several."""

    publication_id: UUID = Field(description="The publication.")
    destination_id: UUID = Field(description="The destination.")
    is_successful: bool = Field(description="Whether it was done.")
    description: str = Field(description="What was done, or why it was not.")

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
