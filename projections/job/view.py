"""Views of jobs: a row for each job, and a row for each task, which is the queue of the workers.

The append that changes a job writes both, so an accepted job is in its queue when the response is sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from domain.job.aggregate import Job
from domain.job.task import Task
from domain.job.values import JobState, TaskState
from projections.consumers.leases import shard_of
from projections.kernel.schema.view import Column, View
from projections.kernel.sql.search import SearchIndex
from projections.kernel.sql.tallies import Tally

# The search index of jobs. The text of a job never changes.

JOB_SEARCH: Final = SearchIndex("job_search", "job_view", kind=Job.KIND, key="bigint", fixed=True)


SHARDS = 64
"""The number of shards by which jobs are distributed among the processes that start them and their tasks. It is a multiple of the
number of Kafka partitions of a topic, so the jobs of a shard are in one partition."""
SEPARATOR = "\x1f"
WAITING = f"({JobState.PENDING}, {JobState.SCHEDULED})"
"""The states of jobs that wait for the scheduler, as SQL. An index uses them together with `DUE_FROM`."""
ENDED = f"({JobState.COMPLETED}, {JobState.BROKEN})"
"""The states of jobs that have ended, as SQL."""
DUE_FROM = "coalesce(run_at, '-infinity')"
DIMENSION = "job"
"""The dimension of the totals of jobs. A value consists of client, workflow, state, and 1 if the job failed, joined by `SEPARATOR`.
"""
_COUNTED_AS = " || chr(31) || ".join(("v.client", "v.workflow", "v.state", "v.failed::integer"))
_LONGEST_SEARCHED = 8_000


def started_at(job: Job) -> datetime | None:
    """Return the time when the first of its tasks began its last run; None if none has."""
    return min((task.started_at for task in job.tasks.values() if task.started_at), default=None)


def ended_at(job: Job) -> datetime | None:
    """Return the time when the last of its tasks ended; None while the job has not ended."""
    return max((task.ended_at for task in job.tasks.values() if task.ended_at), default=None) if job.ended else None


def search_text(job: Job) -> str:
    """Return the text that `search` reads, in lower case: content id, workflow and text parameters."""
    parts = (job.submission.content_id, job.submission.workflow, *_texts(job.submission.parameters))
    return SEPARATOR.join(parts).lower()[:_LONGEST_SEARCHED]


def _texts(value: Any) -> list[str]:
    """Return the texts in the order of the document."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        member = waiting.pop()
        if isinstance(member, str):
            texts.append(member)
        elif member and isinstance(member, dict):
            waiting.extend(reversed(member.values()))
        elif member and isinstance(member, list | tuple):
            waiting.extend(reversed(member))
    return texts


class TaskOfJob(NamedTuple):
    """A task of a job, which one row of `job_task_view` shows."""

    job: Job
    task: Task
    number: int
    shard: int


def job_tasks(job: Job) -> list[TaskOfJob]:
    number, shard = job.number, shard_of(job.key, SHARDS)
    return [TaskOfJob(job, task, number, shard) for task in job.tasks.values()]


JOB_VIEW = View[Job](
    name="job_view",
    version=2,
    kinds=(Job.KIND,),
    columns=(
        Column("id", "bigint", lambda job: job.number),
        Column("version", "bigint", lambda job: job.version),
        Column("state", "smallint", lambda job: int(job.state)),
        Column("failed", "boolean", lambda job: job.failed),
        Column("reason", "text", lambda job: job.reason),
        Column("priority", "smallint", lambda job: job.priority),
        Column("run_at", "timestamptz", lambda job: job.run_at),
        Column("updated_at", "timestamptz", lambda job: job.modified_on),
        Column("semaphore", "text", lambda job: None if job.semaphore is None else job.semaphore.model_dump_json()),
        Column("next_queue", "text", lambda job: job.next_queue),
        Column("started_at", "timestamptz", started_at),
        Column("ended_at", "timestamptz", ended_at),
        Column("client", "text", lambda job: job.submission.client, fixed=True),
        Column("workflow", "text", lambda job: job.submission.workflow, fixed=True),
        Column("content_id", "text", lambda job: job.submission.content_id, fixed=True),
        Column("created_at", "timestamptz", lambda job: job.created_on, fixed=True),
        Column("parameters", "text", lambda job: to_json(job.submission.parameters).decode(), fixed=True),
        Column("search_text", "text", search_text, fixed=True),
        Column("transaction_id", "text", lambda job: job.transaction_id, fixed=True),
        Column("shard", "smallint", lambda job: shard_of(job.key, SHARDS), fixed=True),
    ),
    key=("id",),
    indexes={
        "queue": f"{{table}} (client, priority, id) WHERE state = {JobState.QUEUED}",
        "waiting": f"{{table}} (client, ({DUE_FROM}), id) WHERE state IN {WAITING}",
        "state": "{table} (client, state, failed, id)",
        "ended": f"{{table}} (updated_at) WHERE state IN {ENDED}",
        "created": "{table} USING brin (created_at) WITH (autosummarize = on)",
    },
    tallies=(Tally(DIMENSION, _COUNTED_AS),),
)

JOB_TASK_VIEW = View[TaskOfJob](
    name="job_task_view",
    version=1,
    kinds=(Job.KIND,),
    columns=(
        Column("job", "bigint", lambda row: row.number),
        Column("version", "bigint", lambda row: row.job.version),
        Column("task", "integer", lambda row: row.task.plan.id),
        Column("client", "text", lambda row: row.job.submission.client, fixed=True),
        Column("name", "text", lambda row: row.task.plan.name, fixed=True),
        Column("queue", "text", lambda row: row.task.plan.queue, fixed=True),
        Column("state", "smallint", lambda row: int(row.job.state_of(row.task))),
        Column("priority", "smallint", lambda row: row.job.priority),
        Column("run", "integer", lambda row: row.task.run),
        Column("attempts", "integer", lambda row: row.task.attempts),
        Column("due_at", "timestamptz", lambda row: row.task.due_at),
        Column("worker", "text", lambda row: row.task.worker),
        Column("started_at", "timestamptz", lambda row: row.task.started_at),
        Column("ended_at", "timestamptz", lambda row: row.task.ended_at),
        Column("error", "text", lambda row: row.task.error),
        Column("transaction_id", "text", lambda row: row.job.transaction_id, fixed=True),
        Column("shard", "smallint", lambda row: row.shard, fixed=True),
    ),
    parts=job_tasks,
    key=("job", "task"),
    indexes={
        "ready": f"{{table}} (queue, priority, job, task) WHERE state IN ({TaskState.READY}, {TaskState.PUBLISHING})",
        "under_way": f"{{table}} (job, task) WHERE state IN ({TaskState.RUNNING}, {TaskState.PUBLISHING})",
        "state": "{table} (client, state)",
    },
)
