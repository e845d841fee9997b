"""Which content keys a content got, when, for whom, and how often they were given out. Issue 6, "Keys".

Ours: packagers make up key ids that nobody else can learn from them. A key itself is never shown here.
"""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from api.kernel.answer import Answer, iso
from api.kernel.auth import READ
from api.kernel.call import Call
from api.kernel.pages import Whole, page_body
from api.kernel.routes import Routes
from api.kernel.wire import Between, Flag, Instant, Integer, Label, Wire
from domain.content_key.aggregate import LONGEST_ID, ContentKey
from projections.content_keys.queries import ContentKeyRow
from projections.content_keys.store import ContentKeys
from projections.kernel.page import Window

routes = Routes("/contentkey", tag="Content keys")


class ContentKeyWire(Wire):
    """`answers` and what follows are some seconds behind. `period` is empty for a key without a key period; `iv` is in hex;
    `imported`: the key was brought along, not made here."""

    id: UUID
    kid: UUID
    client: str
    content_id: str
    period: str
    iv: str
    imported: bool
    issued_at: Instant
    answers: int
    first_answered_at: Instant | None
    last_answered_at: Instant | None
    systems: list[str]
    speke_versions: list[str]


class ContentKeyCollectionWire(Wire):
    page_size: int
    total_count: int
    results: list[ContentKeyWire]


class ContentKeyQuery(Wire):
    content_id: Annotated[Label, Field(min_length=1, max_length=LONGEST_ID)]
    client: Label | None = None
    page_size: Whole = 20
    page_number: Annotated[Integer, Between(1, 2**40)] = 1
    no_cache: Flag = False


@routes.get("/", READ, answers=ContentKeyCollectionWire)
async def content_keys_of_content(call: Call, query: ContentKeyQuery, keys: ContentKeys) -> Answer:
    """The key ids of a content, client by client, in the order in which they were issued. Never a key."""
    page = await keys.of_content(query.content_id, client=query.client, window=Window(query.page_size, query.page_number))
    return Answer(200, page_body(page, [shaped(row) for row in page.results]))


def shaped(row: ContentKeyRow) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "kid": str(row.kid),
        "client": row.client,
        "contentId": row.content_id,
        "period": row.period,
        "iv": row.iv,
        "imported": row.imported,
        "issuedAt": iso(row.issued_at),
        "answers": row.answers,
        "firstAnsweredAt": iso(row.first_answered_at) if row.first_answered_at is not None else None,
        "lastAnsweredAt": iso(row.last_answered_at) if row.last_answered_at is not None else None,
        "systems": list(row.systems),
        "spekeVersions": list(row.speke_versions),
    }


def row_of(content_key: ContentKey) -> ContentKeyRow:
    """An aggregate of the past as the view would have shown it."""
    purpose, told = content_key.purpose, content_key.answers
    return ContentKeyRow(
        id=UUID(content_key.key),
        client=purpose.client,
        content_id=purpose.content_id,
        period=purpose.period,
        kid=purpose.kid,
        iv=content_key.iv,
        imported=content_key.imported,
        issued_at=content_key.created_on,
        answers=told.count if told else 0,
        first_answered_at=told.first_at if told else None,
        last_answered_at=told.last_at if told else None,
        systems=told.systems if told else (),
        speke_versions=told.speke_versions if told else (),
    )
