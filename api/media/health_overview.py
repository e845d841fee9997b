"""The state of the whole installation at a glance: docs/reference/api/health.md#overview."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Final

from pydantic import Field

from api.http.response import Response
from api.http.router import Router
from api.kernel.auth import READ
from api.kernel.request import Request
from api.kernel.surfaces import MEDIA
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
from domain.records.kinds.quiet import Quiet as QuietRecord
from projections.audit.unsealed import Unsealed
from projections.audit.verified import verified
from projections.consumers.queries import ConsumerQueries
from projections.deliveries.queries import DeliveryQueries
from projections.job.backlog import JobBacklogQueries
from projections.kernel.builds import living
from projections.kernel.database import Database
from projections.log.extent import LAST, SERVER
from projections.media_event.due import DueEvents
from projections.publishing_points.lost_recordings import LostRecordings
from projections.publishing_points.queries import PointStates
from projections.records.queries import RecordQueries
from projections.sessions.store import SessionQueries
from projections.vault.master_keys import unreadable_secrets

routes = Router("/health/overview", tag="Health", surface=MEDIA, stored=False)

FRESH: Final = 1.0
"""Seconds for which one reading answers every caller."""
SAMPLE_EVERY: Final = 60.0
SAMPLES: Final = 60


class HealthSample(Wire):
    """What the figures were at one moment."""

    at: Instant = Field(description="When.")
    events_per_minute: float = Field(description="Events that were recorded since the sample before, for each minute.")
    lag: int = Field(description="The lag of the slowest consumer, in events.")
    pending_deliveries: int = Field(description="Deliveries that had not ended.")
    queued_jobs: int = Field(description="Jobs that waited.")
    running_steps: int = Field(description="Steps that ran.")
    failed_points: int = Field(description="Publishing points of live Events that were not on the air.")


class HealthOverview(HealthFigures):
    """The state of the whole installation, what needs attention, and the last hour. Figures come from the database; disks are those
    of the answering machine."""

    attention: list[Attention] = Field(description="What needs somebody's attention, faults first; empty when nothing does.")
    history: list[HealthSample] = Field(description="A sample a minute of the last hour, oldest first, since the process started.")


@dataclass(frozen=True)
class OverviewQueries:
    """Where the figures come from: the same reads that `/metrics` and `medialedger status` show."""

    database: Database
    consumers: ConsumerQueries
    deliveries: DeliveryQueries
    due: DueEvents
    jobs: JobBacklogQueries
    points: PointStates
    records: RecordQueries
    sessions: SessionQueries
    lost: LostRecordings
    unsealed: Unsealed


ProcessId = tuple[str, int]
"""Host and process id."""


class Overview:
    """Reads the overview at most once a second, and keeps a sample of each minute. `free` gives the free bytes of this machine's
    directories by their names; fewer than `low` are too little. `missing` gives the programs for media that it does not have.
    `without`: a process that does not count, such as the command that asks."""

    def __init__(
        self,
        queries: OverviewQueries,
        *,
        clock: Clock,
        free: Callable[[], Mapping[str, int]],
        missing: Callable[[], Sequence[str]],
        low: int,
        fresh: float = FRESH,
        without: ProcessId | None = None,
    ) -> None:
        self._from = queries
        self._clock = clock
        self._free = free
        self._missing = missing
        self._low = low
        self._fresh = fresh
        self._without = without
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
        """Keep the figures of this minute."""
        read = await self.now()
        minutes = 1.0 if self._last is None else max((read.at - self._last[0]).total_seconds() / 60, 1 / 60)
        recorded = 0 if self._last is None else read.log.position - self._last[1]
        self._last = (read.at, read.log.position)
        self._samples.append(
            HealthSample(
                at=read.at,
                events_per_minute=round(max(recorded, 0) / minutes, 1),
                lag=max((one.lag or 0 for one in read.consumers), default=0),
                pending_deliveries=read.deliveries.pending,
                queued_jobs=read.jobs.states.get("queued", 0),
                running_steps=sum(one.running for one in read.jobs.steps),
                failed_points=sum(count for state, count in read.points.items() if state != "on_air"),
            )
        )

    async def _all(self) -> HealthOverview:
        lists = self._from.database.lists
        version, size = await lists.row(SERVER) or ("", 0)
        read = HealthOverview(
            at=self._clock(),
            attention=[],
            quiet=Quiet.of(await self._from.records.find(QuietRecord.KIND, QuietRecord.ONLY_KEY)),
            database=DatabaseState(version=version.partition(" ")[0], bytes=size),
            log=await self._log(),
            disks=[DiskState(name=name, free_bytes=left, low=left < self._low) for name, left in self._free().items()],
            processes=[
                ProcessState(build=one.build, host=one.host, pid=one.pid, started_at=one.started_at)
                for one in await living(self._from.database)
                if (one.host, one.pid) != self._without
            ],
            consumers=await self._consumers(),
            jobs=await self._jobs(),
            deliveries=await self._deliveries(),
            events_due=await self._from.due.counts(),
            points=await self._from.points.counts(),
            sessions=[SessionCount(kind=kind, state=state, count=n) for kind, state, n, _ in await self._from.sessions.counts()],
            unreadable_secrets=await unreadable_secrets(lists),
            lost_recordings=[
                LostRecordingState(point=one.point, session=one.session, lost_at=one.lost_at)
                for one in await self._from.lost.latest()
            ],
            history=[],
        )
        missing = await asyncio.to_thread(self._missing)  # it asks programs for their version
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
        return [Consumer.of(one, members.get(one.name, [])) for one in await self._from.consumers.all()]

    async def _jobs(self) -> JobsState:
        found = await self._from.jobs.all()
        queues = sorted({queue for queue, _ in found.steps})
        return JobsState(
            states=dict(found.jobs),
            oldest_queued_seconds=found.oldest_queued,
            steps=[
                StepQueue(queue=queue, ready=found.steps[queue, "ready"], running=found.steps[queue, "running"]) for queue in queues
            ],
            workers=found.workers,
        )

    async def _deliveries(self) -> DeliveriesState:
        found = await self._from.deliveries.backlog()
        return DeliveriesState(pending=found.pending, due=found.due, in_flight=found.in_flight, oldest_seconds=found.oldest)


@routes.get("/", READ, response_model=HealthOverview)
async def get_health_overview(request: Request, overview: Overview) -> Response:
    """The state of the whole installation, and a sample a minute of the last hour.

    One reading answers all callers of a second."""
    return Response(200, await overview.now())
