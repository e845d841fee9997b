"""Tag: a keyword that Events share. A name is used by one tag only; see docs/reference/api/tags.md."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from domain.record.record import Record


class TagDetails(BaseModel):
    name: str


class Tag(Record[TagDetails]):
    KIND: ClassVar[str] = "tag"
    UNIQUE: ClassVar[tuple[str | tuple[str, ...], ...]] = ("name",)
