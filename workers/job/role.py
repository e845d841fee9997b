"""The roles of the job engine that start jobs: the scheduler and the controller."""

from __future__ import annotations

from collections.abc import Sequence

from domain.kernel.clock import Clock
from projections.job.settings import EngineSettingsQueries
from projections.job.view import SHARDS
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.vault.vault import Vault
from workers.job import controller as controllers
from workers.job import scheduler as schedulers
from workers.job.job_starter import JobStarter
from workers.job.wakeups import JobWakeups
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
    wakeups: JobWakeups,
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
            waker=wakeups.waker(),
            clock=clock,
        )
    ]


def controller(consumers: ConsumerFactory, starter: JobStarter) -> Sequence[Worker]:
    return [controllers.Controller(starter, leases=consumers.leases(controllers.CONSUMER, shards=SHARDS))]


def job_starter(
    database: Database, executor: CommandExecutor, *, settings: EngineSettingsQueries, wakeups: JobWakeups
) -> JobStarter:
    """Return the starter of jobs, which the controller and the task workers of a process share."""
    return JobStarter(database, executor, settings=settings, waker=wakeups.waker())
