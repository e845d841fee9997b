"""Schedule: work that the job engine does for a client again and again. Document 3, "Schedule": there is one,
`queue_scheduled_jobs`."""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import BaseModel

from domain.records.record import Record

QUEUE_SCHEDULED_JOBS: Final = "queue_scheduled_jobs"
FIRST_IN: Final = 5
"""Seconds from the start of the engine to the first run. Document 3, "Limits"."""


class ScheduleDetails(BaseModel):
    client: str
    name: str
    active: bool = True


class Schedule(Record):
    """Its key is `<client>:<name>`. One that nobody ever switched is active."""

    KIND: ClassVar[str] = "schedule"
    DETAILS: ClassVar[type[BaseModel]] = ScheduleDetails
    PARENT: ClassVar[str] = "client"

    @staticmethod
    def key_of(client: str, name: str = QUEUE_SCHEDULED_JOBS) -> str:
        return f"{client}:{name}"
