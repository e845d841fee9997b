"""Requests for live publications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pydantic import ConfigDict, Field

from api.kernel.wire import Flag, Label, Text, Wire
from api.media.publication.requests import ALL_OR_NONE, DESTINATION, ENTRIES, EVENT, EXAMPLE, TEXT
from domain.publication.live_handlers import NewStream, RequestedLive

_PUBLICATION: Final = "7d3c2b1a-4f89-41d3-9a0c-0305e82c3301"
_EACH: Final = "1 to 100; each is processed independently of the others."


class EventStream(Wire):
    """A live publication of an Event."""

    audio_input_id: Label | None = Field(
        None,
        description="The sound: the id of an audio input of the Event; an unknown id is 400 if the inputs are known. Absent: "
        "the first input.",
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
        description="true: each is started as soon as the Event is live; 409 for an Event without a channel, and none is created. "
        "Default false.",
    )

    def new_streams(self) -> Sequence[NewStream]:
        return [
            NewStream(publication.destination_id, publication.publication_json, publication.audio_input_id)
            for publication in self.publications
        ]


class StreamPair(Wire):
    """A publication and its destination."""

    publication_id: UUID = Field(description="The publication.")
    destination_id: UUID = Field(description="The destination of the publication; any other destination is not found.")

    def entry(self) -> RequestedLive:
        return RequestedLive(self.publication_id, self.destination_id)


class OneStreamRequest(StreamPair):
    """A live publication of an Event."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"eventId": EVENT, "publicationId": _PUBLICATION, "destinationId": DESTINATION}]}
    )

    event_id: UUID = Field(description="The Event of the publication; any other Event is not found.")


class RecreateRequest(OneStreamRequest):
    """A live publication to restart from its initial state."""

    remove_original: Flag = Field(
        False,
        description="true: the publication is first removed from the target; 503 if the target cannot be reached. Default false.",
    )


class SeveralStreamsRequest(Wire):
    """Live publications of one Event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"eventId": EVENT, "publications": [{"publicationId": _PUBLICATION, "destinationId": DESTINATION}]}]
        }
    )

    event_id: UUID = Field(description="The Event of the publications.")
    publications: list[StreamPair] = Field(description=_EACH, json_schema_extra=ENTRIES)

    def entries(self) -> Sequence[RequestedLive]:
        return [publication.entry() for publication in self.publications]


class DeletedStream(StreamPair):
    """A publication to delete."""

    hard_delete: Flag = Field(
        False,
        description="true: the publication is also removed from the target, or stays if that is impossible now. Default false.",
    )

    def entry(self) -> RequestedLive:
        return RequestedLive(self.publication_id, self.destination_id, self.hard_delete)


class DeleteStreamsRequest(Wire):
    """Live publications of one Event to delete."""

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

    event_id: UUID = Field(description="The Event of the publications.")
    publications: list[DeletedStream] = Field(description=_EACH, json_schema_extra=ENTRIES)

    def entries(self) -> Sequence[RequestedLive]:
        return [publication.entry() for publication in self.publications]


class StreamQuery(Wire):
    """The destination of a publication."""

    destination_id: UUID = Field(description="The destination of the publication; required. Any other destination is 404.")
