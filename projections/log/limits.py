"""What a process may take for the log, as the settings say it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from projections.kernel.sizes import MIB
from projections.log.append_queue import AppendLimits
from projections.log.partitions import EVENTS_PER_PARTITION


@dataclass(frozen=True, slots=True)
class LogLimits:
    """`cache` is for aggregates, in bytes; `partition` is the size of the next partitions, in events."""

    appends: AppendLimits = field(default_factory=AppendLimits)
    cache: int = 64 * MIB
    partition: int = EVENTS_PER_PARTITION

    def among(self, processes: int) -> Self:
        """The queues of all processes together have the size of one."""
        one = self.appends
        shared = replace(one, waiting=one.waiting // processes, waiting_bytes=one.waiting_bytes // processes)
        return replace(self, appends=shared)


DEFAULT_LIMITS = LogLimits()
