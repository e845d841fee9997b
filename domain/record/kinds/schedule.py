"""Schedule: repeated work of the job engine for one client. There is one, `queue_scheduled_jobs`.

See docs/reference/api/job-engine.md#schedule.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pydantic import BaseModel

from domain.record.record import Record

QUEUE_SCHEDULED_JOBS: Final = "queue_scheduled_jobs"
FIRST_IN: Final = 5
"""Seconds from the start of the engine to the first run."""


class ScheduleDetails(BaseModel):
    client: str
    name: str
    active: bool = True


class Schedule(Record[ScheduleDetails]):
    """A schedule. Its key is `<client>:<name>`. It is active until it is switched off."""

    KIND: ClassVar[str] = "schedule"
    PARENT: ClassVar[str] = "client"

    @staticmethod
    def key_of(client: str, name: str = QUEUE_SCHEDULED_JOBS) -> str:
        return f"{client}:{name}"
