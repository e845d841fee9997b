"""Requests about publications."""

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
from projections.kernel.page import Window
from projections.publication.queries import PublicationFilter

TEXT: Final = (
    "What is published, as a text that holds a JSON object: title, description, callbackUrls, and what only the target knows. Keys "
    "and passwords in it are kept sealed."
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
    """One publication of the film of an Event."""

    destination_id: UUID = Field(description="The destination; unknown is 404.")
    publication_json: Text = Field(description=TEXT)


class ContentPublication(EventPublication):
    """One publication of a content."""

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

    def wanted(self) -> Sequence[NewPublication]:
        return [NewPublication(str(self.event_id), one.destination_id, one.publication_json) for one in self.publications]


class PublishContentsRequest(Wire):
    """Publications of contents."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"publications": [{"contentId": EVENT, "destinationId": DESTINATION, "publicationJson": EXAMPLE}]}]
        }
    )

    publications: list[ContentPublication] = Field(description=ALL_OR_NONE, json_schema_extra=ENTRIES)

    def wanted(self) -> Sequence[NewPublication]:
        return [NewPublication(one.content_id, one.destination_id, one.publication_json) for one in self.publications]


class UpdatePublicationRequest(Wire):
    """Another text of a publication."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"destinationId": DESTINATION, "publicationJson": EXAMPLE}]})

    destination_id: UUID = Field(description="The destination of the publication; another one is 404.")
    publication_json: Text = Field(description=TEXT)


class PairQuery(Wire):
    """A publication and its destination."""

    id: UUID | None = Field(None, description="The publication; required, here or in the body.")
    destination_id: UUID | None = Field(None, description="Its destination; required, here or in the body. Another one is 404.")


class PairRequest(PairQuery):
    """A publication and its destination, in place of the query."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": EVENT, "destinationId": DESTINATION}]})


class QueryTarget(Wire):
    """What is asked of the targets."""

    query_target: Flag = Field(
        False, description="true: details are asked of the target; null where it does not answer. false, the default: as recorded."
    )
    no_cache: Flag = Field(False, description=NO_CACHE)


class OneQuery(QueryTarget):
    """Which publication is meant."""

    destination_id: UUID = Field(description="The destination of the publication; required. Another one is 404.")


class ContentQuery(OneQuery):
    """The newest publication of a content at a destination."""

    content_id: Label = Field(description="The content; required.")


class TransactionQuery(QueryTarget):
    """Which publications of a request are listed."""

    target_filter: Annotated[list[Annotated[Target, NamedInt(Target)]], Listed] = Field(
        default_factory=list, description="Only to these targets: names or numbers, separated by commas."
    )
    content_id_filter: Text = Field("", description="Only of contents whose id has this part, upper and lower case alike.")

    def filter(self, transaction_id: str, *, kind: PublicationKind) -> PublicationFilter:
        return PublicationFilter(
            kind=kind,
            targets=self.target_filter,
            content_part=self.content_id_filter,
            transaction_id=transaction_key(transaction_id),
        )


class PublicationsQuery(TransactionQuery):
    """Which publications are listed."""

    order_by: OrderBy = Field(
        "Created", validate_default=True, description="Created, Started or Completed, ascending; none last. Default Created."
    )
    from_: Instant | None = Field(None, alias="from", description="Only those created then or later.")
    to: Instant | None = Field(None, description="Only those created then or earlier.")
    page_number: Whole = Field(default=1, description="Which page, from 1. Default 1.")
    page_size: Whole | None = Field(
        default=None, description="How many entries at most; a larger size than 1000 is cut to 1000. Absent: all of a plain array."
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
    """How a publication is deleted."""

    hard_delete: Flag = Field(
        False, description="true: what is at the target is removed too; 503 where it cannot be reached, and nothing changes then."
    )


class DeletePairQuery(DeleteQuery):
    """How a publication is deleted, and its destination."""

    destination_id: UUID | None = Field(None, description="The destination of the publication. Another one is 404.")
