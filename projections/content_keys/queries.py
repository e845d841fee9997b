"""What an operator may know of content keys: which kids a content got, when, for whom, and how often they were given out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from projections.kernel.database import Database
from projections.kernel.page import FIRST_PAGE, Page, Window
from projections.kernel.where import where

_COLUMNS = """
systems, speke_versions, id, client, content_id, period, kid, iv, imported, issued_at, answers, first_answered_at, last_answered_at
"""


@dataclass(frozen=True, slots=True)
class ContentKeyRow:
    """A content key without its key. `answers` and what follows were recorded up to some seconds ago."""

    systems: tuple[str, ...]
    speke_versions: tuple[str, ...]
    id: UUID
    client: str
    content_id: str
    period: str
    kid: UUID
    iv: str
    imported: bool
    issued_at: datetime
    answers: int
    first_answered_at: datetime | None
    last_answered_at: datetime | None


async def of_content(
    database: Database, content_id: str, *, client: str | None = None, window: Window = FIRST_PAGE
) -> Page[ContentKeyRow]:
    """The keys of a content id, of one client or of all, client by client in the order in which they were issued."""
    conditions, parameters = where(
        [("content_id", content_id, "content_id = %(content_id)s"), ("client", client, "client = %(client)s")]
    )
    found = f"FROM content_key_view WHERE {' AND '.join(conditions)}"
    rows, total = await database.page(
        f"SELECT {_COLUMNS} {found} ORDER BY client, issued_at, id LIMIT %(limit)s OFFSET %(offset)s",
        f"SELECT count(*) {found}",
        parameters={**parameters, "limit": window.limit, "offset": window.offset},
    )
    return Page(window.limit, total, [_row(*values) for values in rows])


def _row(systems: str, speke_versions: str, *plain: Any) -> ContentKeyRow:
    return ContentKeyRow(tuple(from_json(systems)), tuple(from_json(speke_versions)), *plain)
