"""The hub that wakes the workers of this process when jobs or settings have changed."""

from __future__ import annotations

from typing import Final

from domain.job import events
from domain.job.aggregate import Job
from domain.record.kinds.setting import Setting
from workers.kernel.consumer_factory import ConsumerFactory
from workers.kernel.wakeups import WakeupHub

_CHANGES_TASKS: Final = frozenset(
    event.TOPIC
    for event in (
        events.JobStarted,
        events.TaskCompleted,
        events.TaskFailed,
        events.TaskInterrupted,
        events.TaskLeaseExpired,
        events.PriorityChanged,
        events.Broken,
    )
)
"""The events after which a task of the job may be ready, or its running steps may be obsolete."""


class JobWakeups(WakeupHub):
    """The hub of the controller, the scheduler and the task workers of a process."""

    def __init__(self, consumers: ConsumerFactory) -> None:
        super().__init__(consumers.log, {Job.KIND, Setting.KIND}, followed=_CHANGES_TASKS)
