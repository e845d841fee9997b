"""The result of a look-up of a record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.records.record import Record


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as a look-up returns it. `details` is the kind's own model."""

    kind: str
    id: str
    version: int
    details: Any
    date_created: datetime
    date_modified: datetime

    @classmethod
    def of(cls, record: Record) -> RecordRow:
        return cls(record.KIND, record.key, record.version, record.details, record.created_on, record.modified_on)

    @property
    def link(self) -> tuple[str, str]:
        return self.kind, self.id
