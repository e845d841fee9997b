"""The log of a job, once or as a stream: docs/reference/api/job-engine.md#job-log. Needs no key."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import Field

from api.engine.client_filter import ClientFilter
from api.engine.job_log_text import record
from api.engine.requests import EngineModel
from api.engine.responses import LogRecord
from api.engine.surface import UNAVAILABLE, EngineRoute, Strangers
from api.guards.seats import Seats
from api.http.response import EVENT_STREAM, Response
from api.http.routing import OPEN, Service, rules
from api.kernel.pages import next_link
from api.kernel.request import Request
from api.kernel.subscribers import AWAY, BEAT, END, SILENCE, SubscriberLimit, event_stream, frame
from api.kernel.wire import Between, Integer
from domain.job.aggregate import Job
from domain.job.values import TERMINAL
from domain.kernel.errors import NotFound, Unavailable
from domain.kernel.internal_addresses import InternalAddresses
from projections.job.history import BEGINNING, JobHistory, LogCursor, LogEvent, LogLine
from projections.job.queries import JobQueries
from projections.kernel.database.page import LARGEST

routes = APIRouter(prefix="/engine", tags=["Job engine"], route_class=EngineRoute)

_CURSOR: Final = re.compile(r"(\d{1,18})\.(\d{1,18})")


class JobLogQuery(EngineModel):
    """A page of a job's log."""

    items: Annotated[Integer, Between(1)] = Field(
        LARGEST, description="Maximum number of records, at most and by default 1000; larger values are reduced to 1000."
    )
    after: Annotated[str, Field(pattern=f"^{_CURSOR.pattern}$")] | None = Field(
        None, description="Only records after this position, an id of the stream or of the address in the header Link."
    )

    @property
    def cursor(self) -> LogCursor:
        return BEGINNING if self.after is None else LogCursor(*map(int, self.after.split(".")))


class LogFollower:
    """Follows the logs of jobs. `pause` is in seconds. The log is polled because steps write lines without a notification."""

    def __init__(
        self,
        jobs: JobQueries,
        history: JobHistory,
        *,
        strangers: Strangers | None = None,
        seats: Seats | None = None,
        pause: float = 1.0,
    ) -> None:
        self._jobs = jobs
        self._history = history
        self._pause = pause
        self._strangers = strangers or Strangers(InternalAddresses())
        self.subscribers = SubscriberLimit("job log", seats or Seats())

    async def frames(self, job: int, cursor: LogCursor, *, in_full: bool) -> AsyncGenerator[bytes, None]:
        """Yield the records after `cursor` until the job has ended and a last poll returns no new entry. While the database is
        unavailable, wait. Records are masked unless `in_full`."""
        silence = 0.0
        while True:
            try:
                ended, entries = await self.poll(job, cursor)
            except Unavailable:
                yield AWAY
                silence = SILENCE  # a beat is sent once the database is back, even without entries
                await asyncio.sleep(self._pause)
                continue
            for entry in entries:
                cursor = cursor.after(entry)
                shown = await self._strangers.body(record(entry, job, in_full=in_full), in_full=in_full)
                yield frame(shown, id=_id(cursor))
            if ended and not entries:
                yield END
                return
            silence = 0.0 if entries else silence + self._pause
            if silence >= SILENCE:
                silence = 0.0
                yield BEAT
            if len(entries) < LARGEST:
                await asyncio.sleep(self._pause)

    async def poll(self, job: int, cursor: LogCursor) -> tuple[bool, Sequence[LogEvent | LogLine]]:
        """Return True if the job has ended, and the next entries. The state is read first, so no entry of an ended job is
        missed."""
        row = await self._jobs.by_id(job)
        return row is None or row.state in TERMINAL, (await self._history.since(job, cursor)).entries


@routes.get("/logs/{job_id}", dependencies=[OPEN], response_model=list[LogRecord])
@rules(errors=UNAVAILABLE)
async def get_job_log(
    request: Request,
    job_id: int,
    query: Annotated[JobLogQuery, Query()],
    jobs: Service[JobQueries],
    history: Service[JobHistory],
    clients: Service[ClientFilter],
    strangers: Service[Strangers],
) -> Response:
    """The events of a job and the lines that its steps wrote, ordered by time and id.

    The first record is the request, without credentials. If there are more, the header Link holds the address of the next page.
    """
    await _check_known(jobs, job_id, await clients.of(request))
    limit, cursor = min(query.items, LARGEST), query.cursor
    page = await history.since(job_id, cursor, limit=limit)
    headers: tuple[tuple[str, str], ...] = ()
    if page.more:
        headers = (next_link(f"/engine/logs/{job_id}?after={_id(page.end(cursor))}&items={limit}"),)
    in_full = await clients.sees_all(request)
    shown = [record(entry, job_id, in_full=in_full) for entry in page.entries]
    return Response(await strangers.body(shown, in_full=in_full), headers=headers)


@routes.get("/logs/{job_id}/stream", dependencies=[OPEN])
@rules(media_type=EVENT_STREAM, errors=UNAVAILABLE)
async def stream_job_log(
    request: Request, job_id: int, jobs: Service[JobQueries], follower: Service[LogFollower], clients: Service[ClientFilter]
) -> Response:
    """The records of the log as server-sent events, as they are written; after the job's end a last event named `end`.

    With Last-Event-ID the stream continues after the record with this id.
    """
    await _check_known(jobs, job_id, await clients.of(request))
    frames = follower.frames(job_id, _cursor(request), in_full=await clients.sees_all(request))
    return event_stream(follower.subscribers.within_limit(frames, await clients.subscriber(request)))


async def _check_known(jobs: JobQueries, job_id: int, client: str | None) -> None:
    if await jobs.by_id(job_id, client) is None:
        raise NotFound(Job.KIND, str(job_id))


def _id(cursor: LogCursor) -> str:
    return f"{cursor.version}.{cursor.line}"


def _cursor(request: Request) -> LogCursor:
    """Parse Last-Event-ID. An unknown id is ignored: the log is sent from its beginning."""
    match = _CURSOR.fullmatch(request.header("last-event-id") or "")
    return BEGINNING if match is None else LogCursor(int(match[1]), int(match[2]))
