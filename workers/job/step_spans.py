"""Spans of the runs of steps. They continue the trace in which the job was submitted, in whatever process they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from domain.kernel.errors import Unavailable
from projections.job.queue import QueuedRun
from projections.job.task_runs import JobTraces
from projections.kernel.tracing import UNTRACED, Span, Tracer

_CURRENT: Final = ContextVar[Span | None]("span of a run", default=None)


class StepSpans:
    """Traces runs. The span of a run belongs to the task that executes it, so that all reports to the job have its trace."""

    def __init__(self, tracer: Tracer = UNTRACED, traces: Callable[[], JobTraces] | None = None) -> None:
        self._tracer = tracer
        self._traces = traces() if tracer.on and traces is not None else None

    @asynccontextmanager
    async def span_of(self, run: QueuedRun) -> AsyncIterator[None]:
        if self._traces is None:
            yield
            return
        try:
            parent = await self._traces.parent(run.job)
        except Unavailable:
            parent = None  # the step need not wait for a trace
        attributes = {"medialedger.job": run.job, "medialedger.task": run.task, "medialedger.run": run.run}
        with self._tracer.span("step", kind="consumer", parent=parent, attributes=attributes) as span:
            before = _CURRENT.set(span)
            try:
                yield
            finally:
                _CURRENT.reset(before)

    def describe(self, *, workflow: str, step: str) -> None:
        """Add the workflow and the step, which are known once the job has been loaded."""
        span = _CURRENT.get()
        if span is not None:
            span.note("medialedger.workflow", workflow)
            span.note("medialedger.step", step)

    def ended(self, outcome: str) -> None:
        span = _CURRENT.get()
        if span is not None:
            span.note("medialedger.outcome", outcome)
            if outcome == "failed":
                span.failed(outcome)

    @property
    def trace_parent(self) -> str | None:
        """The trace context of the run's reports; None if the run is not traced."""
        span = _CURRENT.get()
        return None if span is None else span.child_context(None)
