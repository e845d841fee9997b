"""In-memory twins of what the handlers of compositions need, and the handlers over them."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from domain.composition.aggregate import Composition
from domain.composition.checks import event_of
from domain.composition.handlers import CompositionHandlers, CompositionJobOwners
from domain.composition.row import CompositionRow
from domain.job.callbacks import JobCallbacks
from domain.job.handlers import JobHandlers
from domain.job.owners import OwnersOfRooms
from domain.kernel.aggregate import AggregateRoot
from tests.domain.asset.memory_assets import AssetWorkflows, Numbers
from tests.domain.memory import Memory, MemoryLog


class MemoryCompositions:
    """The twin of the look-ups over the view of compositions."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def _all(self, event_id: UUID) -> list[Composition]:
        matches = [root for root in self._log.all(Composition.KIND) if isinstance(root, Composition)]
        return [root for root in matches if root.event_id == event_id]

    async def of_event(self, event_id: UUID) -> CompositionRow | None:
        return next((CompositionRow.of(row) for row in self._all(event_id) if not row.removed), None)

    async def awaiting(self, events: Collection[UUID]) -> Collection[UUID]:
        wanted = set(events)
        waiting = [row for row in self._log.all(Composition.KIND) if isinstance(row, Composition) and row.awaits_sources]
        return {row.event_id for row in waiting if not row.removed and wanted & {event_of(item) for item in row.playlist.items}}

    async def last_generation(self, event_id: UUID) -> int:
        return max((row.generation for row in self._all(event_id)), default=0)


def job_handlers(memory: Memory) -> JobHandlers:
    async def load(stream: str) -> AggregateRoot | None:
        return memory.log.load(stream)

    callbacks = JobCallbacks(
        memory.vault, memory.events, memory.records, clock=lambda: memory.now, new_signing_secret=lambda: "whsec_1"
    )
    return JobHandlers(
        memory.executor,
        load,
        numbers=Numbers(),
        workflows=AssetWorkflows(),
        vault=memory.vault,
        callbacks=callbacks,
        owners=OwnersOfRooms(CompositionJobOwners()),
        clock=lambda: memory.now,
    )


def composition_handlers(memory: Memory, *, jobs: JobHandlers | None = None) -> CompositionHandlers:
    return CompositionHandlers(
        memory.executor,
        MemoryCompositions(memory.log),
        events=memory.events,
        known_events=memory.events,
        records=memory.records,
        jobs=jobs or job_handlers(memory),
        clock=lambda: memory.now,
    )
