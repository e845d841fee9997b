"""The limits on the memory that a process uses for the log, taken from the settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from projections.kernel.sizes import MIB
from projections.log.append_queue import AppendLimits
from projections.log.partitions import EVENTS_PER_PARTITION


@dataclass(frozen=True, slots=True)
class LogLimits:
    """`cache` is the size of the cache of aggregates in bytes; `partition` is the size of new partitions in events."""

    appends: AppendLimits = field(default_factory=AppendLimits)
    cache: int = 64 * MIB
    partition: int = EVENTS_PER_PARTITION

    def among(self, processes: int) -> Self:
        """Return the limits for one of several processes, whose queues together have the size of one queue."""
        whole = self.appends
        part = replace(whole, waiting=whole.waiting // processes, waiting_bytes=whole.waiting_bytes // processes)
        return replace(self, appends=part)


DEFAULT_LIMITS = LogLimits()
