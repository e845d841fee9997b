"""Quiet mode, in which nothing leaves the installation; see docs/how-to/keep-the-product-quiet.md."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import BaseModel

from domain.record.record import Record


class QuietDetails(BaseModel):
    on: bool
    reason: str | None = None


class Quiet(Record[QuietDetails]):
    """The quiet mode. There is one record for the whole installation. Without it the installation is not quiet."""

    KIND: ClassVar[str] = "quiet"
    ONLY_KEY: Final = "installation"
