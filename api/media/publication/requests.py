"""Requests for publications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final
from uuid import UUID

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from api.kernel.pages import NO_CACHE, Whole
from api.kernel.wire import Flag, Instant, Label, Listed, NamedInt, Text, Wire, named_enum
from domain.destination.targets import Target
from domain.publication.handlers import NewPublication
from domain.publication.values import MOST_AT_ONCE, PublicationKind, transaction_key
from projections.kernel.database.page import Window
from projections.publication.queries import PublicationFilter

TEXT: Final = (
    "The publication, as a text that holds a JSON object: title, description, callbackUrls, and members for the target. Keys "
    "and passwords in it are stored encrypted."
)
EXAMPLE: Final = '{"title":"Final","description":"The match","callbackUrls":["https://hooks.example/published"]}'
DESTINATION: Final = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
EVENT: Final = "5a6b7c8d-4f89-41d3-9a0c-0305e82c3301"


def _order(value: object) -> str:
    if isinstance(value, str) and value.lower() in ("created", "started", "completed"):
        return value.lower()
    raise PydanticCustomError("order_by", "must be Created, Started or Completed")


OrderBy = Annotated[
    str, BeforeValidator(_order), WithJsonSchema(named_enum("PublicationOrder", ["Created", "Started", "Completed"]))
]

ALL_OR_NONE: Final = f"1 to {MOST_AT_ONCE}; all of them are created, or none."
ENTRIES: Final[JsonDict] = {"minItems": 1, "maxItems": MOST_AT_ONCE}


class EventPublication(Wire):
    """A publication of the film of an Event."""

    destination_id: UUID = Field(description="The destination; unknown is 404.")
    publication_json: Text = Field(description=TEXT)


class ContentPublication(EventPublication):
    """A publication of a content."""

    content_id: Label = Field(description="The content: the name of its folder.")


class PublishEventRequest(Wire):
    """Publications of the film of one Event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"eventId": EVENT, "publications": [{"destinationId": DESTINATION, "publicationJson": EXAMPLE}]}]
        }
    )

    event_id: UUID = Field(description="The Event; unknown is 404. It must have an MP4 file that is available (409).")
    publications: list[EventPublication] = Field(description=ALL_OR_NONE, json_schema_extra=ENTRIES)
    client: str | None = Field(None, description="Name of the client; optional, must be the caller.")

    def new_publications(self, *, client: str) -> Sequence[NewPublication]:
        """Return the publications, which belong to the client."""
        return [
            NewPublication(str(self.event_id), publication.destination_id, publication.publication_json, client=client)
            for publication in self.publications
        ]


class PublishContentsRequest(Wire):
    """Publications of contents."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"publications": [{"contentId": EVENT, "destinationId": DESTINATION, "publicationJson": EXAMPLE}]}]
        }
    )

    publications: list[ContentPublication] = Field(description=ALL_OR_NONE, json_schema_extra=ENTRIES)

    def new_publications(self) -> Sequence[NewPublication]:
        return [
            NewPublication(publication.content_id, publication.destination_id, publication.publication_json)
            for publication in self.publications
        ]


class UpdatePublicationRequest(Wire):
    """The new text of a publication."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"destinationId": DESTINATION, "publicationJson": EXAMPLE}]})

    destination_id: UUID = Field(description="The destination of the publication; any other destination is 404.")
    publication_json: Text = Field(description=TEXT)


class PairQuery(Wire):
    """A publication and its destination."""

    id: UUID | None = Field(None, description="The publication; required, here or in the body.")
    destination_id: UUID | None = Field(
        None, description="The destination of the publication; required, here or in the body. Any other destination is 404."
    )


class PairRequest(PairQuery):
    """A publication and its destination, instead of the query."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": EVENT, "destinationId": DESTINATION}]})


class QueryTarget(Wire):
    """Query parameters that decide whether targets are queried."""

    query_target: Flag = Field(
        False,
        description="true: details are queried from the target; null if it does not answer. false, the default: the "
        "recorded details.",
    )
    no_cache: Flag = Field(False, description=NO_CACHE)


class OneQuery(QueryTarget):
    """Query of one publication."""

    destination_id: UUID = Field(description="The destination of the publication; required. Any other destination is 404.")


class ContentQuery(OneQuery):
    """Query of the newest publication of a content at a destination."""

    content_id: Label = Field(description="The content; required.")


class TransactionQuery(QueryTarget):
    """Query of the publications of a request."""

    target_filter: Annotated[list[Annotated[Target, NamedInt(Target)]], Listed] = Field(
        default_factory=list, description="Only publications at these targets: names or numbers, separated by commas."
    )
    content_id_filter: Text = Field("", description="Only contents whose id contains this text, ignoring case.")

    def filter(self, transaction_id: str, *, kind: PublicationKind) -> PublicationFilter:
        return PublicationFilter(
            kind=kind,
            targets=self.target_filter,
            content_part=self.content_id_filter,
            transaction_id=transaction_key(transaction_id),
        )


class PublicationsQuery(TransactionQuery):
    """Query of a list of publications."""

    order_by: OrderBy = Field(
        "Created",
        validate_default=True,
        description="Created, Started or Completed, ascending; publications without the time come last. Default Created.",
    )
    from_: Instant | None = Field(None, alias="from", description="Only publications created at this time or later.")
    to: Instant | None = Field(None, description="Only publications created at this time or earlier.")
    page_number: Whole = Field(default=1, description="Number of the page, from 1. Default 1.")
    page_size: Whole | None = Field(
        default=None,
        description="Maximum number of entries; sizes above 1000 are reduced to 1000. Absent: all entries of a plain array.",
    )

    def listed(self, kind: PublicationKind) -> PublicationFilter:
        return PublicationFilter(
            kind=kind,
            targets=self.target_filter,
            content_part=self.content_id_filter,
            since=self.from_,
            until=self.to,
            order=self.order_by,
        )

    @property
    def window(self) -> Window:
        return Window(self.page_size or 20, min(self.page_number, 2**40))


class DeleteQuery(Wire):
    """Query of a deletion of a publication."""

    hard_delete: Flag = Field(
        False,
        description="true: the publication is also removed from the target; 503 without any change if the target "
        "cannot be reached.",
    )


class DeletePairQuery(DeleteQuery):
    """Query of a deletion of a publication, with its destination."""

    destination_id: UUID | None = Field(None, description="The destination of the publication. Any other destination is 404.")
