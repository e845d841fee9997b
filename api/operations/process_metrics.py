"""Metrics of the process: its memory, processor time, files and build, and the delay of its event loop."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from projections.kernel.background_task import FAULTS, start_forever

_EVERY: Final = 0.5
_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


def register_process(registry: CollectorRegistry, *, version: str) -> None:
    """Register the `process_…` metrics of all Prometheus clients, and `medialedger_build_info`."""
    ProcessCollector(registry=registry)
    registry.register(_TaskFaults())
    build = Gauge(
        "medialedger_build_info", "1, with the version of the product as a label", ("version", "python"), registry=registry
    )
    build.labels(version, platform.python_version()).set(1)


class _TaskFaults(Collector):
    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily("medialedger_task_faults", "Faults of background tasks", labels=["task"])
        for what, count in sorted(FAULTS.items()):
            family.add_metric([what], count)
        yield family


class LoopDelay:
    """The delay of the event loop: how much later than requested a task continues. Requests wait for this time while the loop is
    busy."""

    def __init__(self, registry: CollectorRegistry, *, every: float = _EVERY) -> None:
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._delays = Histogram(
            "medialedger_event_loop_delay_seconds",
            "Delay with which a task of the event loop continued",
            buckets=_BOUNDS,
            registry=registry,
        )

    async def start(self) -> None:
        self._task = start_forever(self._measure, what="event loop delay")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._every
        await asyncio.sleep(self._every)
        self._delays.observe(max(loop.time() - due, 0.0))
