"""Views of jobs: a row for each job, and a row for each task, which is the queue of the workers.

The append that changes a job writes both, so an accepted job is in its queue when the response is sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from pydantic_core import to_json

from domain.job.aggregate import Job
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


def row(job: Job) -> tuple[Any, ...]:
    submission = job.submission
    return (
        *changing(job),
        submission.client,
        submission.workflow,
        submission.content_id,
        job.created_on,
        to_json(submission.parameters).decode(),
        search_text(job),
        job.transaction_id,
        shard_of(job.key, SHARDS),
    )


def changing(job: Job) -> tuple[Any, ...]:
    """Return the columns that a change of the job may change."""
    return (
        job.number,
        job.version,
        int(job.state),
        job.failed,
        job.reason,
        job.priority,
        job.run_at,
        job.modified_on,
        None if job.semaphore is None else job.semaphore.model_dump_json(),
        job.next_queue,
        started_at(job),
        ended_at(job),
    )


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


def task_rows(job: Job) -> list[tuple[Any, ...]]:
    shard = shard_of(job.key, SHARDS)
    return [
        (
            job.number,
            job.version,
            task.plan.id,
            job.submission.client,
            task.plan.name,
            task.plan.queue,
            int(job.state_of(task)),
            job.priority,
            task.run,
            task.attempts,
            task.due_at,
            task.worker,
            task.started_at,
            task.ended_at,
            task.error,
            job.transaction_id,
            shard,
        )
        for task in job.tasks.values()
    ]


JOB_VIEW = View(
    name="job_view",
    version=2,
    kinds=(Job.KIND,),
    columns=(
        Column("id", "bigint"),
        Column("version", "bigint"),
        Column("state", "smallint"),
        Column("failed", "boolean"),
        Column("reason", "text"),
        Column("priority", "smallint"),
        Column("run_at", "timestamptz"),
        Column("updated_at", "timestamptz"),
        Column("semaphore", "text"),
        Column("next_queue", "text"),
        Column("started_at", "timestamptz"),
        Column("ended_at", "timestamptz"),
        Column("client", "text"),
        Column("workflow", "text"),
        Column("content_id", "text"),
        Column("created_at", "timestamptz"),
        Column("parameters", "text"),
        Column("search_text", "text"),
        Column("transaction_id", "text"),
        Column("shard", "smallint"),
    ),
    row=row,
    key=("id",),
    indexes={
        "queue": f"{{table}} (client, priority, id) WHERE state = {JobState.QUEUED}",
        "waiting": f"{{table}} (client, ({DUE_FROM}), id) WHERE state IN {WAITING}",
        "state": "{table} (client, state, failed, id)",
        "ended": f"{{table}} (updated_at) WHERE state IN {ENDED}",
        "created": "{table} USING brin (created_at) WITH (autosummarize = on)",
    },
    fixed=("client", "workflow", "content_id", "created_at", "parameters", "search_text", "transaction_id", "shard"),
    changing=changing,
    tallies=(Tally(DIMENSION, _COUNTED_AS),),
)

JOB_TASK_VIEW = View(
    name="job_task_view",
    version=1,
    kinds=(Job.KIND,),
    columns=(
        Column("job", "bigint"),
        Column("version", "bigint"),
        Column("task", "integer"),
        Column("client", "text"),
        Column("name", "text"),
        Column("queue", "text"),
        Column("state", "smallint"),
        Column("priority", "smallint"),
        Column("run", "integer"),
        Column("attempts", "integer"),
        Column("due_at", "timestamptz"),
        Column("worker", "text"),
        Column("started_at", "timestamptz"),
        Column("ended_at", "timestamptz"),
        Column("error", "text"),
        Column("transaction_id", "text"),
        Column("shard", "smallint"),
    ),
    row=task_rows,
    key=("job", "task"),
    indexes={
        "ready": f"{{table}} (queue, priority, job, task) WHERE state IN ({TaskState.READY}, {TaskState.PUBLISHING})",
        "under_way": f"{{table}} (job, task) WHERE state IN ({TaskState.RUNNING}, {TaskState.PUBLISHING})",
        "state": "{table} (client, state)",
    },
    many_rows=True,
)
