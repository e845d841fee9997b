"""The job engine: jobs, their steps, schedules and settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from api.wiring.container import Providers, Services
from api.wiring.media import check_transcoder, run_files, step_inputs
from api.wiring.room import Room, WorkerRole
from domain.content_key.handlers import ContentKeyHandlers
from domain.job import events
from domain.job.aggregate import Job
from domain.job.handlers import JobHandlers
from domain.kernel.ids import new_id
from domain.kernel.inside import Inside
from domain.kernel.mapper import EventMapper
from domain.record.kinds.schedule import Schedule
from domain.record.kinds.setting import Setting
from domain.record.ports import RecordRow
from projections.client.directory import ClientDirectory
from projections.content_key.queries import ContentKeyQueries
from projections.job.board import BoardQueries
from projections.job.counts import STEP_QUEUES, JobCounts
from projections.job.history import JobHistory
from projections.job.queries import JobQueries, JobRow
from projections.job.settings import EngineSettingsQueries
from projections.job.view import JOB_TASK_VIEW, JOB_VIEW, SHARDS
from projections.kernel.database.database import Database
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.sql.partitions import DayTable
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from workers.job.content_protection import ContentProtection
    from workers.job.job_starter import JobStarter
    from workers.job.step_log import StepLogWriter
    from workers.job.step_process_pool import StepProcessPool
    from workers.kernel.wakeups import WakeupHub
    from workers.retention import Removal
    from workers.wiring import SharedWorkers, Worker, WorkerContext

_CHANGES_TASKS = frozenset(
    event.TOPIC
    for event in (
        events.Started,
        events.TaskCompleted,
        events.TaskFailed,
        events.TaskInterrupted,
        events.TaskLeaseExpired,
        events.PriorityChanged,
        events.Broken,
    )
)
"""The events after which a task of the job may be ready, or its running steps may be obsolete."""


def _routes() -> Sequence[APIRouter]:
    from api.engine import dashboard, health, job, job_counts, job_tasks, log, schedule, setting, workflows

    modules = (job, job_counts, job_tasks, log, health, dashboard, setting, schedule, workflows)
    return tuple(module.routes for module in modules)


def _services(services: Services) -> Providers:
    from api.engine.broadcast import DashboardBroadcast
    from api.engine.client_filter import ClientFilter
    from api.engine.dashboard import Dashboards
    from api.engine.job_counts import CountedJobs, WaitingJobs
    from api.engine.log import LogFollower
    from api.engine.surface import Strangers
    from api.kernel.known_callers import KnownCallers
    from api.wiring.job_handlers import job_handlers
    from workers.job.registry import Registry, installed

    get = services.get
    return {
        BoardQueries: lambda: BoardQueries(get(Database).lists),
        ClientFilter: lambda: ClientFilter(get(ClientDirectory), get(KnownCallers)),
        CountedJobs: lambda: CountedJobs(get(JobCounts)),
        Dashboards: lambda: Dashboards(get(BoardQueries), get(EngineSettingsQueries)),
        DashboardBroadcast: lambda: DashboardBroadcast(
            get(Dashboards).read_live, strangers=get(Strangers), seats=services.environment.siblings.seats
        ),
        EngineSettingsQueries: lambda: EngineSettingsQueries(get(Database)),
        LogFollower: lambda: LogFollower(
            get(JobQueries), get(JobHistory), strangers=get(Strangers), seats=services.environment.siblings.seats
        ),
        JobCounts: lambda: JobCounts(get(Database).lists),
        JobHistory: lambda: JobHistory(get(Database).lists, get(EventMapper)),
        JobQueries: lambda: JobQueries(get(Database)),
        Registry: installed,
        Strangers: lambda: Strangers(Inside(services.environment.own_hosts)),
        WaitingJobs: lambda: WaitingJobs(JobCounts(get(Database)), get(EngineSettingsQueries)),
        JobHandlers: lambda: job_handlers(
            get(Database),
            get(CommandExecutor),
            streams=get(Streams),
            records=get(RecordQueries),
            vault=get(Vault),
            clock=services.environment.clock,
        ),
    }


def _removals() -> Sequence[Removal]:
    from projections.job.retention import remove_ended_jobs, remove_progress
    from workers.retention import Removal

    return [
        Removal("ended jobs", "job_days", remove_ended_jobs),
        Removal("entries of progress", "job_days", remove_progress),
    ]


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.engine.responses import FullJob, past_schedule, past_setting

    async def job(root: Job, moment: Moment) -> Any:
        return FullJob.of(JobRow.past(root)).model_dump(mode="json")

    async def setting(root: Setting, moment: Moment) -> Any:
        return past_setting(RecordRow.of(root))

    async def schedule(root: Schedule, moment: Moment) -> Any:
        return past_schedule(RecordRow.of(root))

    return {Job.KIND: job, Setting.KIND: setting, Schedule.KIND: schedule}


def _callback(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from workers.webhook.callbacks.fanout import CallbackFanout
    from workers.webhook.callbacks.removal import CONSUMER, CallbackRemoval
    from workers.webhook.sender.wakeup import SenderWakeup

    wake = shared.get(SenderWakeup, SenderWakeup)
    handler = CallbackFanout(context.streams, context.records, mapper=context.mapper, wake=wake)
    consumer = context.consumer(CONSUMER, handler)
    return [consumer, CallbackRemoval(context.database, context.executor, clock=context.clock)]


def _outcomes(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from api.wiring.rooms.composition import films
    from workers.event.outcomes.failures import CONSUMER as FAILURES
    from workers.event.outcomes.failures import FailureNotes
    from workers.event.outcomes.policy import CONSUMER, OutcomeOrders, OwnerCommands
    from workers.kernel.wakeups import Waker

    waker = Waker()
    handler = OutcomeOrders(context.streams, mapper=context.mapper, wake=waker.wake)
    consumer = context.consumer(CONSUMER, handler)
    commands = OwnerCommands(context.executor, owners=context.owners(), followups=context.followups(context))
    failures = context.consumer(FAILURES, FailureNotes(context.streams, context.logbook, mapper=context.mapper))
    return [consumer, context.order_worker(CONSUMER, commands.carry_out, waker=waker), failures, *films(context)]


def _scheduler(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from workers.job.scheduler import CONSUMER, Scheduler

    scheduler = Scheduler(
        context.database,
        context.executor,
        outbound=context.outbound,
        vault=context.vault,
        settings=EngineSettingsQueries(context.database),
        leases=ShardLeases(context.database, CONSUMER, shards=1, member=new_id(), host=context.host, reads_log=False),
        waker=_wakeups(context, shared).waker(),
        clock=context.clock,
    )
    return [scheduler]


def _controller(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from workers.job.controller import CONSUMER, Controller

    leases = ShardLeases(context.database, CONSUMER, shards=SHARDS, member=new_id(), host=context.host, reads_log=False)
    return [Controller(_starter(context, shared), leases=leases)]


def _steps(queue_name: str) -> Callable[[WorkerContext, SharedWorkers], Sequence[Worker]]:
    """Return a function that makes the workers for the steps of a queue."""

    def make(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
        from projections.asset.queries import AssetQueries, CaptionTexts
        from projections.consumers.leases import ShardLeases
        from projections.job.queue import TaskQueue
        from projections.job.task_runs import JobTraces
        from projections.job.upload_states import UploadStates
        from projections.job.worker_lease import WorkerLease
        from workers.job.caption_answers import CaptionAnswers
        from workers.job.housekeeping import Housekeeping
        from workers.job.publication_uploads import PublicationUploads
        from workers.job.step_executor import StepExecutor
        from workers.job.step_spans import StepSpans
        from workers.job.stream_starts import StreamStarts
        from workers.job.task_worker import TaskWorker

        queue, workspaces = TaskQueue(context.database, queue_name), run_files(context, shared)
        lease = WorkerLease(context.database, host=context.host, seconds=context.lease)
        wakeups, processes, step_log = _wakeups(context, shared), _processes(context, shared), _step_log(context, shared)
        executor = StepExecutor(
            context.executor,
            processes,
            streams=context.streams,
            workspaces=workspaces,
            step_log=step_log,
            vault=context.vault,
            settings=EngineSettingsQueries(context.database),
            protection=_protection(context),
            starts=StreamStarts(context.streams),
            uploads=PublicationUploads(UploadStates(context.database), opens=context.open_destination(context)),
            captions=CaptionAnswers(CaptionTexts(context.database), AssetQueries(context.database)),
            metrics=context.metrics,
            spans=StepSpans(context.tracer, lambda: JobTraces(context.database)),
        )
        check_transcoder(shared, context.places)
        worker = TaskWorker(
            queue,
            executor,
            starter=_starter(context, shared),
            lease=lease,
            shards=ShardLeases(context.database, queue_name, shards=SHARDS, member=new_id(), host=context.host, reads_log=False),
            waker=wakeups.waker(),
            asked_to_end=processes.drain,
            steps=context.steps,
            drain=context.drain,
        )
        wakeups.follow(worker.follow)
        return [worker, Housekeeping(queue, lease=lease, workspaces=workspaces)]

    return make


def _starter(context: WorkerContext, shared: SharedWorkers) -> JobStarter:
    """Return the starter of jobs, which the controller and the task workers of this process share."""
    from workers.job.job_starter import JobStarter

    def make() -> JobStarter:
        settings, waker = EngineSettingsQueries(context.database), _wakeups(context, shared).waker()
        return JobStarter(context.database, context.executor, settings=settings, waker=waker)

    return shared.get(JobStarter, make)


def _wakeups(context: WorkerContext, shared: SharedWorkers) -> WakeupHub:
    """Return the hub that wakes the workers of this process when jobs or settings have changed."""
    from workers.kernel.wakeups import WakeupHub

    kinds = frozenset({Job.KIND, Setting.KIND})
    return shared.worker(WakeupHub, lambda: WakeupHub(context.signal(kinds, topics=_CHANGES_TASKS)))


def _processes(context: WorkerContext, shared: SharedWorkers) -> StepProcessPool:
    from workers.adapters.step_account import step_account
    from workers.job.media_paths import JOBS
    from workers.job.step_process_pool import StepProcessPool

    def make() -> StepProcessPool:
        account, groups = step_account(context.media_root, jobs=JOBS, home=context.home)
        return StepProcessPool(
            media_root=context.media_root,
            allow=context.outbound_allow,
            origin=context.own_origin,
            point_tokens=context.step_tokens,
            targets=context.target_settings,
            downloads=context.downloads,
            inputs=step_inputs(context, shared),
            lease_seconds=context.lease,
            account=account,
            groups=groups,
            places=context.places,
            metrics=context.metrics,
            fork_server=context.step_server,
        )

    return shared.worker(StepProcessPool, make)


def _protection(context: WorkerContext) -> ContentProtection:
    from workers.job.content_protection import ContentProtection

    keys = ContentKeyHandlers(context.executor, ContentKeyQueries(context.database), vault=context.vault, random=os.urandom)
    return ContentProtection(context.streams, keys, host=context.public_host)


def _step_log(context: WorkerContext, shared: SharedWorkers) -> StepLogWriter:
    from workers.job.step_log import StepLogWriter

    return shared.worker(StepLogWriter, lambda: StepLogWriter(context.database, clock=context.clock))


JOB = Room(
    name="job",
    aggregates=(Job, Setting, Schedule),
    views=(JOB_VIEW, JOB_TASK_VIEW),
    migrations=(
        Migration.read("0010 job queue", "job/schema.sql"),
        Migration.read("0015 orders", "consumers/orders.sql"),
        Migration.read("0018 upload states", "job/upload_states.sql"),
        Migration.read("0063 numbers in job logs", "job/line_numbers.sql"),
    ),
    grants=(
        Grant("SEQUENCE job_numbers", "USAGE"),
        Grant("SEQUENCE job_log_line_numbers", "USAGE"),
        Grant("FUNCTION last_number_in_job_log", "EXECUTE"),
    ),
    removals=_removals,
    day_tables=(DayTable("job_log_lines", "job_line_days"),),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    worker_roles=(
        WorkerRole("callback", _callback),
        WorkerRole("outcomes", _outcomes),
        WorkerRole("scheduler", _scheduler),
        WorkerRole("controller", _controller),
        *(WorkerRole(name, _steps(name)) for name in STEP_QUEUES),
    ),
)
