"""The job engine: jobs, their steps, schedules and settings."""

from __future__ import annotations

from api.wiring.room import Room, WorkerRole
from domain.job.aggregate import Job
from domain.job.ports import JobNotes, JobNumbers, JobOwners, Workflows
from domain.record.kinds.schedule import Schedule
from domain.record.kinds.setting import Setting
from projections.job import queue
from projections.job.counts import STEP_QUEUES
from projections.job.retention import remove_ended_jobs, remove_progress
from projections.job.view import JOB_TASK_VIEW, JOB_VIEW
from projections.kernel.schema.migrate import Grant, Migration
from projections.kernel.sql.partitions import DayTable
from workers.retention import Removal

_ROUTES = ("job", "job_counts", "job_tasks", "log", "health", "dashboard", "setting", "schedule", "workflows")
_CHECK = "workers.job.transcoder_check:TranscoderCheck"

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
    removals=(
        Removal("ended jobs", "job_days", remove_ended_jobs),
        Removal("entries of progress", "job_days", remove_progress),
    ),
    day_tables=(DayTable("job_log_lines", "job_line_days"),),
    routes=tuple(f"api.engine.{module}:routes" for module in _ROUTES),
    services={
        JobNotes: "api.wiring.providers:job_notes",
        JobNumbers: queue.JobNumberSequence,
        JobOwners: "api.wiring.providers:job_owners",
        Workflows: "workers.job.registry:Registry",
        "workers.event.outcomes.policy:OwnerCommands": "api.wiring.providers:owner_commands",
        "workers.job.content_protection:FindProtection": "api.wiring.providers:content_protection",
        "workers.job.inputs:Inputs": "api.wiring.providers:step_inputs",
        "workers.job.registry:Registry": "workers.job.registry:installed",
        "workers.job.step_process_pool:StepProcessPool": "api.wiring.providers:step_processes",
        "workers.job.step_spans:StepSpans": "workers.job.step_role:step_spans",
        "workers.job.workspaces:RunFiles": "api.wiring.providers:run_files",
    },
    past_states=("api.engine.responses:past_states",),
    worker_roles=(
        WorkerRole("callback", "workers.webhook.callbacks.role:callback"),
        WorkerRole("outcomes", "workers.event.outcomes.role:outcomes"),
        WorkerRole("scheduler", "workers.job.role:scheduler"),
        WorkerRole("controller", "workers.job.role:controller"),
        *(WorkerRole(name, "workers.job.step_role:steps", {"queue_name": name}, needs=(_CHECK,)) for name in STEP_QUEUES),
    ),
)
