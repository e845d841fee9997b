"""Content keys for operators: docs/reference/api/clients.md#content-keys. The key itself is never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from api.audit.past_states import Moment, Renderer
from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import READ
from api.kernel.pages import Whole, next_page
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.kernel.wire import Between, Flag, Instant, Integer, Label, Wire
from domain.content_key import aggregate
from domain.content_key.aggregate import LONGEST_ID
from projections.content_key.queries import ContentKeyQueries, ContentKeyRow
from projections.kernel.database.page import Page, Window

routes = APIRouter(prefix="/api/contentkey", tags=["Content keys"], route_class=UnstoredMediaRoute)


class ContentKey(Wire):
    """A content key without its secret."""

    id: UUID = Field(description="Id of the content key in the audit.")
    kid: UUID = Field(description="Key id, as manifests and licences name it.")
    client: str = Field(description="Client that the key belongs to.")
    content_id: str = Field(description="Content that the key is for.")
    period: str = Field(description="Index or id of the key period; empty without one.")
    iv: str = Field(description="Initialization vector, 32 hexadecimal digits.")
    imported: bool = Field(description="true: the key was imported; false: the key was generated here.")
    issued_at: Instant = Field(description="The time when the key was issued or imported.")
    answers: int = Field(description="Number of times that the key was issued, up to some seconds ago.")
    first_answered_at: Instant | None = Field(description="The time when it was first issued; null if it never was.")
    last_answered_at: Instant | None = Field(description="The time when it was last issued; null if it never was.")
    systems: list[str] = Field(description="DRM systems that it was issued for: fairplay, playready, widevine.")
    speke_versions: list[str] = Field(
        description="SPEKE versions of these requests: 1, 2.0, 2.1; export for an export by the command line."
    )

    @classmethod
    def of(cls, row: ContentKeyRow) -> ContentKey:
        return cls.model_construct(
            id=row.id,
            kid=row.kid,
            client=row.client,
            content_id=row.content_id,
            period=row.period,
            iv=row.iv,
            imported=row.imported,
            issued_at=row.issued_at,
            answers=row.answers,
            first_answered_at=row.first_answered_at,
            last_answered_at=row.last_answered_at,
            systems=list(row.systems),
            speke_versions=list(row.speke_versions),
        )


class ContentKeyCollection(Wire):
    """A page of content keys."""

    page_size: int = Field(description="Effective number of entries in a page: at most 1000.")
    total_count: int = Field(description="Total number of entries on all pages.")
    results: list[ContentKey] = Field(description="Content keys of this page, by client and in the order of issue.")

    @classmethod
    def of(cls, page: Page[ContentKeyRow]) -> ContentKeyCollection:
        return cls.model_construct(
            page_size=page.size, total_count=page.total, results=[ContentKey.of(row) for row in page.results]
        )


class ContentKeyQuery(Wire):
    content_id: Annotated[Label, Field(min_length=1, max_length=LONGEST_ID)] = Field(
        description="Content id, 1 to 256 characters, compared exactly; required."
    )
    client: Label | None = Field(default=None, description="Keys of this client only; all clients by default.")
    page_size: Whole = Field(default=20, description="Keys in a page, 1 to 1000; default 20.")
    page_number: Annotated[Integer, Between(1, 2**40)] = Field(default=1, description="Number of the page, from 1; default 1.")
    no_cache: Flag = Field(
        default=False,
        description="Accepted for compatibility without effect: answers are always current; default false.",
    )


@routes.get("/", dependencies=[READ], response_model=ContentKeyCollection)
async def list_content_keys(
    request: Request, query: Annotated[ContentKeyQuery, Query()], keys: Service[ContentKeyQueries]
) -> Response:
    """The content keys of a content id, by client and in the order of issue. The keys themselves are never shown."""
    window = Window(query.page_size, query.page_number)
    page = await keys.of_content(query.content_id, client=query.client, window=window)
    return Response(ContentKeyCollection.of(page), headers=next_page(request, page))


def past_states() -> Mapping[str, Renderer]:
    async def content_key(root: aggregate.ContentKey, moment: Moment) -> Any:
        return ContentKey.of(ContentKeyRow.of(root)).model_dump(mode="json")

    return {aggregate.ContentKey.KIND: content_key}
