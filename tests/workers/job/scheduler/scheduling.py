"""Schedulers on a real database, and checks of their results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from api.wiring.core import Core
from domain.job.values import JobState
from domain.kernel.command import Command
from domain.kernel.encryption import SecretCipher
from domain.kernel.ids import new_id
from domain.record.kinds.schedule import QUEUE_SCHEDULED_JOBS, Schedule
from domain.record.kinds.setting import Setting
from domain.record.record import RegisterRecord
from projections.consumers.leases import ShardLeases
from projections.job.settings import EngineSettingsQueries
from projections.vault.vault import Vault
from tests.projections.job.jobs_made import accept
from tests.projections.log.helpers import rows
from tests.support.clock import HandClock
from tests.support.feeding import do
from tests.workers.webhook.sender.sending import LOOPBACK, until
from workers.adapters.outbound_guard import Network
from workers.adapters.outbound_http import GuardedClient
from workers.job.scheduler import Scheduler
from workers.kernel.wakeups import Waker


@dataclass
class Scheduling:
    """A log with jobs in it, and schedulers for them."""

    core: Core
    url: str
    clock: HandClock

    def __post_init__(self) -> None:
        self.vault = Vault(self.core.database, SecretCipher(bytes(32)))

    async def accept(self, number: int, *, within: float | None = None, **more: Any) -> None:
        """Accept a job, which is due `within` so many seconds."""
        if within is not None:
            more["run_at"] = self.clock.now + timedelta(seconds=within)
        await accept(self.core, number, **more)

    async def switch(self, *, active: bool, client: str = "studio") -> None:
        key = Schedule.key_of(client)
        values = {"client": client, "name": QUEUE_SCHEDULED_JOBS, "active": active}
        settings = rows(self.url, "SELECT FROM record_view WHERE kind = 'schedule' AND id = %s", key)
        command: Command[Any] = Schedule.amend.on(key, {"active": active}) if settings else RegisterRecord(key, Schedule, values)
        await do(self.core, command)

    async def every(self, seconds: int, client: str = "studio") -> None:
        values = {"client": client, "name": "schedule_interval", "setting": seconds}
        await do(self.core, RegisterRecord(Setting.key_of(client, "schedule_interval"), Setting, values))

    def in_state(self, state: JobState) -> list[int]:
        return [job for (job,) in rows(self.url, "SELECT id FROM job_view WHERE state = %s ORDER BY id", int(state))]

    async def queued(self, *jobs: int) -> None:
        """Wait until exactly these are queued."""
        await until(lambda: self.in_state(JobState.QUEUED) == sorted(jobs), what=str(jobs))

    def times_queued(self) -> dict[int, int]:
        asked = "SELECT split_part(originator_id, ':', 2)::int, count(*) FROM events WHERE topic = 'job.queued' GROUP BY 1"
        return dict(rows(self.url, asked))

    def early(self) -> list[Any]:
        """Jobs that were queued before their time, by the database's own clock."""
        asked = """
            SELECT v.id FROM job_view v JOIN events e ON e.originator_id = 'job:' || v.id AND e.topic = 'job.queued'
            WHERE e.recorded_at < v.run_at
        """
        return rows(self.url, asked)

    def lines(self, job: int) -> list[tuple[int, str]]:
        return [
            (task, message)
            for task, message in rows(self.url, "SELECT task, message FROM job_log_lines WHERE job = %s ORDER BY id", job)
        ]

    def seen(self) -> int:
        [(count,)] = rows(self.url, "SELECT count(*) FROM consumer_members WHERE consumer = 'scheduler'")
        return int(count)

    def made(self, outbound: GuardedClient, *, core: Core | None = None, waker: Waker, lease: float) -> Scheduler:
        core = core or self.core
        return Scheduler(
            core.database,
            core.executor,
            outbound=outbound,
            vault=Vault(core.database, SecretCipher(bytes(32))),
            settings=EngineSettingsQueries(core.database),
            leases=ShardLeases(core.database, "scheduler", shards=1, member=new_id(), host="test", lease=lease),
            waker=waker,
            clock=self.clock,
        )

    @asynccontextmanager
    async def scheduler(
        self,
        *,
        core: Core | None = None,
        waker: Waker | None = None,
        lease: float = 5.0,
        allow: Sequence[Network] = LOOPBACK,
    ) -> AsyncIterator[Scheduler]:
        outbound = GuardedClient(allow)
        scheduler = self.made(outbound, core=core, waker=waker or Waker(), lease=lease)
        await scheduler.start()
        try:
            yield scheduler
        finally:
            await scheduler.stop()
            await outbound.close()
