"""The roles that run the steps of jobs, one for each queue."""

from __future__ import annotations

from collections.abc import Sequence

from projections.job.admission import QueuedJobs
from projections.job.queue import TaskQueue
from projections.job.task_runs import JobTraces
from projections.job.view import SHARDS
from projections.job.worker_lease import WorkerLease
from projections.kernel.database.database import Database
from projections.kernel.tracing import Tracer
from workers.job.housekeeping import Housekeeping
from workers.job.job_worker import JobWorker
from workers.job.step_executor import StepExecutor
from workers.job.step_process_pool import StepProcessPool
from workers.job.step_spans import StepSpans
from workers.job.workspaces import RunFiles
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.settings import Identity, StepSettings
from workers.kernel.worker import Worker


def steps(
    consumers: ConsumerFactory,
    database: Database,
    *,
    executor: StepExecutor,
    queue_name: str,
    processes: StepProcessPool,
    jobs: QueuedJobs,
    workspaces: RunFiles,
    settings: StepSettings,
    identity: Identity,
) -> Sequence[Worker]:
    """Return the workers for the steps of a queue."""
    queue = TaskQueue(database, queue_name)
    lease = WorkerLease(database, host=identity.machine, seconds=settings.lease)
    worker = JobWorker(
        queue,
        executor,
        jobs=jobs,
        lease=lease,
        shards=consumers.leases(queue_name, shards=SHARDS),
        asked_to_end=processes.drain,
        steps=settings.at_once,
        drain=settings.drain,
    )
    consumers.log.watch(worker.see)
    return [worker, Housekeeping(queue, lease=lease, workspaces=workspaces)]


def step_spans(tracer: Tracer, database: Database) -> StepSpans:
    return StepSpans(tracer, lambda: JobTraces(database))
