"""The roles of the job engine that start jobs: the scheduler and the controller."""

from __future__ import annotations

from collections.abc import Sequence

from domain.kernel.clock import Clock
from domain.record.kinds.setting import Setting
from projections.job.admission import QueuedJobs
from projections.job.settings import EngineSettingsQueries
from projections.job.view import SHARDS
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.vault.vault import Vault
from workers.job import controller as controllers
from workers.job import scheduler as schedulers
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.worker import Worker
from workers.ports.outbound import Outbound


def scheduler(
    consumers: ConsumerFactory,
    database: Database,
    *,
    executor: CommandExecutor,
    outbound: Outbound,
    vault: Vault,
    settings: EngineSettingsQueries,
    clock: Clock,
) -> Sequence[Worker]:
    return [
        schedulers.Scheduler(
            database,
            executor,
            outbound=outbound,
            vault=vault,
            settings=settings,
            leases=consumers.leases(schedulers.CONSUMER),
            waker=consumers.wakeups(schedulers.WAKES).waker(),
            clock=clock,
        )
    ]


def controller(consumers: ConsumerFactory, jobs: QueuedJobs, *, executor: CommandExecutor) -> Sequence[Worker]:
    leases = consumers.leases(controllers.CONSUMER, shards=SHARDS)
    waker = consumers.wakeups(controllers.CHANGES_QUEUE | {Setting.KIND}).waker()
    return [controllers.Controller(jobs, executor, leases=leases, waker=waker)]
