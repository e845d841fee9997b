"""Metrics of jobs that have not ended, of failed ones that nobody has handled, and of the steps of the queues."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from projections.job.backlog import JobBacklogQueries


class JobBacklog:
    """Gauges that are set from the database."""

    def __init__(self, jobs: JobBacklogQueries, *, registry: CollectorRegistry) -> None:
        self._read = jobs
        self._jobs = Gauge(
            "medialedger_jobs",
            "Jobs by state; failed: ended so, and not handled since",
            ("state",),
            registry=registry,
        )
        self._oldest = Gauge(
            "medialedger_jobs_oldest_queued_seconds", "How long the job waits that was queued first", registry=registry
        )
        self._steps = Gauge("medialedger_steps", "Steps that could start or run, by queue", ("queue", "state"), registry=registry)
        self._workers = Gauge("medialedger_step_workers", "Processes that run steps and whose lease is valid", registry=registry)

    async def refresh(self) -> None:
        found = await self._read.all()
        for state, count in found.jobs.items():
            self._jobs.labels(state).set(count)
        self._oldest.set(found.oldest_queued)
        self._workers.set(found.workers)
        self._steps.clear()
        for (queue, step_state), count in found.steps.items():
            self._steps.labels(queue, step_state).set(count)
