"""Metrics of unfinished jobs, of failed jobs that have not been handled, and of the steps in the queues."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from projections.job.backlog import JobBacklogQueries


class JobBacklog:
    """Gauges of jobs and steps that are set from the database."""

    def __init__(self, jobs: JobBacklogQueries, *, registry: CollectorRegistry) -> None:
        self._read = jobs
        self._jobs = Gauge(
            "medialedger_jobs",
            "Jobs by state; failed counts failed jobs that have not been handled",
            ("state",),
            registry=registry,
        )
        self._oldest = Gauge(
            "medialedger_jobs_oldest_queued_seconds", "Time that the oldest queued job has been waiting", registry=registry
        )
        self._steps = Gauge("medialedger_steps", "Steps that are ready or running, by queue", ("queue", "state"), registry=registry)
        self._workers = Gauge("medialedger_step_workers", "Processes that run steps and have a valid lease", registry=registry)

    async def refresh(self) -> None:
        backlog = await self._read.all()
        for state, count in backlog.jobs.items():
            self._jobs.labels(state).set(count)
        self._oldest.set(backlog.oldest_queued)
        self._workers.set(backlog.workers)
        self._steps.clear()
        for (queue, step_state), count in backlog.steps.items():
            self._steps.labels(queue, step_state).set(count)
