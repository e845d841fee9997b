"""Archiver stream: a recording that an archiver made. Its key is a whole number. See docs/reference/api/archiver-streams.md."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel

from domain.kernel.errors import Malformed
from domain.record.record import Record


class ArchiverStreamDetails(BaseModel):
    profile_id: str
    capture_id: str
    start_time: datetime
    end_time: datetime
    expires_at: datetime | None = None
    ism_url: str
    uploaded: bool = False
    streaming_formats: tuple[str, ...] = ()


class ArchiverStream(Record[ArchiverStreamDetails]):
    """An archiver stream, stored as the archiver reports it: the service itself records and deletes nothing, and nothing
    expires."""

    KIND: ClassVar[str] = "archiver_stream"

    @classmethod
    def prepare_values(cls, values: Mapping[str, Any], stored: ArchiverStreamDetails | None) -> Mapping[str, Any]:
        check_times(
            values.get("start_time", getattr(stored, "start_time", None)),
            values.get("end_time", getattr(stored, "end_time", None)),
        )
        return values


def check_times(start: datetime | None, end: datetime | None) -> None:
    """Check that a recording does not end before it starts. Without both times there is nothing to check."""
    if start is not None and end is not None and end < start:
        raise Malformed.at("endTime", "must not be before startTime")
