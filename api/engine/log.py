"""The log of a job: document 3, "Job log record" and GET /logs/<job id>; following it is ours. Needs no key."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from api.engine.listening import AWAY, BEAT, END, SILENCE, Seats, event_stream, frame
from api.engine.surface import ENGINE
from api.engine.wire import Spoken
from api.engine.worded import record
from api.kernel.answer import Answer
from api.kernel.auth import OPEN
from api.kernel.call import Call
from api.kernel.routes import Routes
from api.kernel.streaming import EVENT_STREAM
from api.kernel.wire import Instant
from domain.job.aggregate import Job
from domain.job.values import TERMINAL
from domain.kernel.errors import NotFound, Unavailable
from projections.job.history import BEGINNING, Happened, JobHistory, Said, Seen
from projections.job.queries import JobQueries

routes = Routes(surface=ENGINE, tag="Job engine")

_SEEN: Final = re.compile(r"(\d{1,18})-(\d{1,18})")


class LogRecordWire(Spoken):
    """`severity`: 0 DEBUG, 1 INFO, 2 WARN, 3 ERROR, 4 FATAL. `task_id` is null where no task is meant."""

    id: int
    job_id: int
    severity: int
    severity_description: str
    progname: str
    message: str
    created_at: Instant
    updated_at: Instant
    task_id: int | None
    visible: bool


class Followers:
    """Those who read a job's log while it grows. `pause` is in seconds: lines of steps are looked for, nobody announces them."""

    def __init__(self, jobs: JobQueries, history: JobHistory, *, pause: float = 1.0) -> None:
        self._jobs = jobs
        self._history = history
        self._pause = pause
        self.seats = Seats()

    async def records(self, job: int, seen: Seen) -> AsyncGenerator[bytes, None]:
        """Until the job has ended and a last look finds nothing new. A database that is away is waited for."""
        still = 0.0
        while True:
            try:
                ended, news = await self.look(job, seen)
            except Unavailable:
                yield AWAY
                still = SILENCE  # so that its return is told, news or not
                await asyncio.sleep(self._pause)
                continue
            for told in news:
                seen = seen.after(told)
                yield frame(record(told, job), id=f"{seen.position}-{seen.line}")
            if ended and not news:
                yield END
                return
            still = 0.0 if news else still + self._pause
            if still >= SILENCE:
                still = 0.0
                yield BEAT
            await asyncio.sleep(self._pause)

    async def look(self, job: int, seen: Seen) -> tuple[bool, Sequence[Happened | Said]]:
        """The state first: with an end that was seen comes all that led to it."""
        found = await self._jobs.by_id(job)
        return found is None or found.state in TERMINAL, await self._history.since(job, seen)


@routes.get("/logs/{job_id}", OPEN, answers=list[LogRecordWire])
async def job_log(call: Call, job_id: int, jobs: JobQueries, history: JobHistory) -> Answer:
    """What happened to a job and what its steps wrote, in the order of time.

    The first record is the request, without credentials."""
    await _known(call, jobs, job_id)
    return Answer(200, [record(told, job_id) for told in await history.since(job_id)])


@routes.get("/logs/{job_id}/stream", OPEN, media_type=EVENT_STREAM)
async def follow_job_log(call: Call, job_id: int, jobs: JobQueries, followers: Followers) -> Answer:
    """The same records as server-sent events, as they come; after the job's end a last event named `end`.

    With Last-Event-ID it goes on behind the record that had this id."""
    await _known(call, jobs, job_id)
    return event_stream(followers.seats.seated(followers.records(job_id, _seen(call))))


async def _known(call: Call, jobs: JobQueries, job_id: int) -> None:
    if await jobs.by_id(job_id, call.header("client")) is None:
        raise NotFound(Job.KIND, str(job_id))


def _seen(call: Call) -> Seen:
    """An id that we did not give says nothing, so it all begins anew."""
    found = _SEEN.fullmatch(call.header("last-event-id") or "")
    return BEGINNING if found is None else Seen(int(found[1]), int(found[2]))
