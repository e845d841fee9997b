"""Requests about live publications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pydantic import ConfigDict, Field

from api.kernel.wire import Flag, Label, Text, Wire
from api.media.publication.requests import ALL_OR_NONE, DESTINATION, ENTRIES, EVENT, EXAMPLE, TEXT
from domain.publication.live_handlers import Entry, NewStream

_PUBLICATION: Final = "7d3c2b1a-4f89-41d3-9a0c-0305e82c3301"
_EACH: Final = "1 to 100; each is tried, whatever becomes of the others."


class EventStream(Wire):
    """One live publication of an Event."""

    audio_input_id: Label | None = Field(
        None,
        description="The sound: the id of an audio input of the Event; unknown is 400 where they are known. Absent: the first.",
    )
    destination_id: UUID = Field(description="The destination; unknown is 404.")
    publication_json: Text = Field(description=TEXT)


class PublishLiveRequest(Wire):
    """Live publications of one Event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "eventId": EVENT,
                    "publications": [{"audioInputId": "0", "destinationId": DESTINATION, "publicationJson": EXAMPLE}],
                    "startInstantly": False,
                }
            ]
        }
    )

    event_id: UUID = Field(description="The Event; unknown is 404.")
    publications: list[EventStream] = Field(description=ALL_OR_NONE, json_schema_extra=ENTRIES)
    start_instantly: Flag = Field(
        False,
        description="true: each is started, once the Event is live; 409 for an Event without a channel, and none is created. "
        "Default false.",
    )

    def wanted(self) -> Sequence[NewStream]:
        return [NewStream(one.destination_id, one.publication_json, one.audio_input_id) for one in self.publications]


class StreamPair(Wire):
    """A publication and its destination."""

    publication_id: UUID = Field(description="The publication.")
    destination_id: UUID = Field(description="Its destination. Another one is not found.")

    def entry(self) -> Entry:
        return Entry(self.publication_id, self.destination_id)


class OneStreamRequest(StreamPair):
    """A live publication of an Event."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"eventId": EVENT, "publicationId": _PUBLICATION, "destinationId": DESTINATION}]}
    )

    event_id: UUID = Field(description="Its Event. Another one is not found.")


class RecreateRequest(OneStreamRequest):
    """A live publication to begin anew."""

    remove_original: Flag = Field(
        False, description="true: what was made at the target is removed first; 503 where it cannot be reached. Default false."
    )


class SeveralStreamsRequest(Wire):
    """Live publications of one Event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"eventId": EVENT, "publications": [{"publicationId": _PUBLICATION, "destinationId": DESTINATION}]}]
        }
    )

    event_id: UUID = Field(description="Their Event.")
    publications: list[StreamPair] = Field(description=_EACH, json_schema_extra=ENTRIES)

    def entries(self) -> Sequence[Entry]:
        return [one.entry() for one in self.publications]


class DeletedStream(StreamPair):
    """A publication to delete."""

    hard_delete: Flag = Field(
        False, description="true: what is at the target is removed too; where that cannot be done now, it stays. Default false."
    )

    def entry(self) -> Entry:
        return Entry(self.publication_id, self.destination_id, self.hard_delete)


class DeleteStreamsRequest(Wire):
    """Live publications of one Event that are to be deleted."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "eventId": EVENT,
                    "publications": [{"publicationId": _PUBLICATION, "destinationId": DESTINATION, "hardDelete": False}],
                }
            ]
        }
    )

    event_id: UUID = Field(description="Their Event.")
    publications: list[DeletedStream] = Field(description=_EACH, json_schema_extra=ENTRIES)

    def entries(self) -> Sequence[Entry]:
        return [one.entry() for one in self.publications]


class StreamQuery(Wire):
    """Which publication is meant."""

    destination_id: UUID = Field(description="The destination of the publication; required. Another one is 404.")
