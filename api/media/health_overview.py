"""The state of the whole installation at a glance: docs/reference/api/health.md#overview."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

from fastapi import APIRouter
from pydantic import Field

from api.http.response import Response
from api.http.routing import Service
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import UnstoredMediaRoute
from api.kernel.wire import Instant, Wire
from api.media.attention import Attention, attention
from api.media.consumer import Consumer
from api.media.health_figures import (
    DatabaseState,
    DeliveriesState,
    DiskState,
    HealthFigures,
    JobsState,
    LogState,
    LostRecordingState,
    ProcessState,
    SessionCount,
    StepQueue,
)
from api.media.quiet import Quiet
from domain.kernel.clock import Clock
from domain.record.kinds.quiet import Quiet as QuietRecord
from projections.audit.integrity import verified
from projections.audit.unsealed_events import Unsealed
from projections.consumers.queries import ConsumerQueries
from projections.event.due_events import DueEvents
from projections.event.queries import EventQueries
from projections.job.backlog import JobBacklogQueries
from projections.kernel.database.database import Database
from projections.kernel.schema.builds import living
from projections.log.reader import LAST, SERVER
from projections.publishing_point.own_points import LostRecordings
from projections.publishing_point.queries import PointStates
from projections.record.queries import RecordQueries
from projections.session.store import SessionQueries
from projections.vault.master_keys import unreadable_secrets
from projections.webhook.queries import DeliveryQueries

routes = APIRouter(prefix="/api/health/overview", tags=["Health"], route_class=UnstoredMediaRoute)

FRESH: Final = 1.0
"""Seconds for which one reading answers all callers."""
SAMPLE_EVERY: Final = 60.0
SAMPLES: Final = 60
MOST_OVERLAPPING: Final = 1_000


class HealthSample(Wire):
    """The main figures at one moment."""

    at: Instant = Field(description="The time of the sample.")
    events_per_minute: float = Field(description="Events per minute recorded since the previous sample.")
    lag: int = Field(description="The lag of the slowest consumer, in events.")
    pending_deliveries: int = Field(description="Deliveries that had not ended.")
    queued_jobs: int = Field(description="Queued jobs.")
    running_steps: int = Field(description="Running steps.")
    failed_points: int = Field(description="Publishing points of live Events that were not on the air.")


class HealthOverview(HealthFigures):
    """The state of the whole installation, the findings that need attention, and the last hour. Figures come from the database;
    disks belong to the answering machine."""

    attention: list[Attention] = Field(description="Findings that need attention, faults first; empty if there are none.")
    history: list[HealthSample] = Field(
        description="One sample per minute of the last hour since the process started, oldest first."
    )


@dataclass(frozen=True)
class OverviewQueries:
    """The queries that read the figures. `/metrics` and `medialedger status` use the same queries."""

    database: Database
    consumers: ConsumerQueries
    deliveries: DeliveryQueries
    due: DueEvents
    events: EventQueries
    jobs: JobBacklogQueries
    points: PointStates
    records: RecordQueries
    sessions: SessionQueries
    lost: LostRecordings
    unsealed: Unsealed


ProcessId = tuple[str, int]
"""A host and a process id."""


class Overview:
    """Reads the overview at most once per second, and keeps a sample of each minute. `free` returns the free bytes of this
    machine's directories by name; fewer than `low` are too few. `missing` returns the missing programs for media. The
    process `without` is not counted, such as the command that reads the overview."""

    def __init__(
        self,
        queries: OverviewQueries,
        *,
        clock: Clock,
        free: Callable[[], Mapping[str, int]],
        missing: Callable[[], Sequence[str]],
        low: int,
        fresh: float = FRESH,
    ) -> None:
        self._from = queries
        self._clock = clock
        self._free = free
        self._missing = missing
        self._low = low
        self._fresh = fresh
        self.without: ProcessId | None = None
        self._samples: deque[HealthSample] = deque(maxlen=SAMPLES)
        self._last: tuple[datetime, int] | None = None
        self._reading = asyncio.Lock()
        self._read: tuple[float, HealthOverview] | None = None

    async def now(self) -> HealthOverview:
        async with self._reading:
            if self._read is None or monotonic() - self._read[0] >= self._fresh:
                self._read = (monotonic(), await self._all())
            return self._read[1].model_copy(update={"history": list(self._samples)})

    async def sample(self) -> None:
        """Store the figures of this minute."""
        read = await self.now()
        minutes = 1.0 if self._last is None else max((read.at - self._last[0]).total_seconds() / 60, 1 / 60)
        recorded = 0 if self._last is None else read.log.position - self._last[1]
        self._last = (read.at, read.log.position)
        self._samples.append(
            HealthSample(
                at=read.at,
                events_per_minute=round(max(recorded, 0) / minutes, 1),
                lag=max((part.lag or 0 for part in read.consumers), default=0),
                pending_deliveries=read.deliveries.pending,
                queued_jobs=read.jobs.states.get("queued", 0),
                running_steps=sum(part.running for part in read.jobs.steps),
                failed_points=sum(count for state, count in read.points.items() if state != "on_air"),
            )
        )

    async def _all(self) -> HealthOverview:
        lists = self._from.database.lists
        version, size = await lists.row(SERVER) or ("", 0)
        now = self._clock()
        read = HealthOverview(
            at=now,
            attention=[],
            quiet=Quiet.of(await self._from.records.find(QuietRecord, QuietRecord.ONLY_KEY)),
            database=DatabaseState(version=version.partition(" ")[0], bytes=size),
            log=await self._log(),
            disks=[DiskState(name=name, free_bytes=free, low=free < self._low) for name, free in self._free().items()],
            processes=[
                ProcessState(build=item.build, host=item.host, pid=item.pid, started_at=item.started_at)
                for item in await living(self._from.database)
                if (item.host, item.pid) != self.without
            ],
            consumers=await self._consumers(),
            jobs=await self._jobs(),
            deliveries=await self._deliveries(),
            events_due=await self._from.due.counts(),
            overlapping_events=await self._from.events.overlapped(now, until=now + timedelta(days=1), limit=MOST_OVERLAPPING),
            points=await self._from.points.counts(),
            sessions=[SessionCount(kind=kind, state=state, count=n) for kind, state, n, _ in await self._from.sessions.counts()],
            unreadable_secrets=await unreadable_secrets(lists),
            lost_recordings=[
                LostRecordingState(point=item.point, session=item.session, lost_at=item.lost_at)
                for item in await self._from.lost.latest()
            ],
            history=[],
        )
        missing = await asyncio.to_thread(self._missing)  # runs programs to get their versions
        return read.model_copy(update={"attention": attention(read, missing=missing)})

    async def _log(self) -> LogState:
        lists = self._from.database.lists
        position, recorded_at = await lists.row(LAST) or (0, None)
        unsealed, seen = await self._from.unsealed.now(), await verified(lists)
        return LogState(
            position=position,
            recorded_at=recorded_at,
            verified_position=seen.position,
            verified_at=seen.verified_at,
            bad_position=seen.bad_position,
            sealed_at=seen.sealed_at,
            unsealed_events=unsealed.events,
            unsealed_seconds=unsealed.seconds,
            unanchored_seconds=unsealed.unanchored,
        )

    async def _consumers(self) -> list[Consumer]:
        members = await self._from.consumers.members()
        return [Consumer.of(status, members.get(status.name, [])) for status in await self._from.consumers.all()]

    async def _jobs(self) -> JobsState:
        backlog = await self._from.jobs.all()
        queues = sorted({queue for queue, _ in backlog.steps})
        return JobsState(
            states=dict(backlog.jobs),
            oldest_queued_seconds=backlog.oldest_queued,
            steps=[
                StepQueue(queue=queue, ready=backlog.steps[queue, "ready"], running=backlog.steps[queue, "running"])
                for queue in queues
            ],
            workers=backlog.workers,
        )

    async def _deliveries(self) -> DeliveriesState:
        backlog = await self._from.deliveries.backlog()
        return DeliveriesState(pending=backlog.pending, due=backlog.due, in_flight=backlog.in_flight, oldest_seconds=backlog.oldest)


@routes.get("/", dependencies=[READ], response_model=HealthOverview)
async def get_health_overview(request: Request, overview: Service[Overview]) -> Response:
    """The state of the whole installation, and one sample per minute of the last hour.

    One reading answers all callers within a second.
    """
    return Response(await overview.now())
