"""Deletion of an Event: its infrastructure is terminated in the same append."""

from __future__ import annotations

from uuid import UUID

from domain.kernel.clock import Clock
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.media_event.aggregate import MediaEvent
from domain.media_event.commands import DeleteEvent
from domain.provision.handlers import ending
from domain.provision.ports import LoadStream


class EventDeletion:
    """Deletes Events. A restored one stays without infrastructure until somebody provisions it."""

    def __init__(self, executor: Executor, load: LoadStream, *, clock: Clock) -> None:
        self._executor = executor
        self._load = load
        self._clock = clock

    async def delete(self, key: UUID, *, invocation: Invocation) -> Outcome[MediaEvent]:
        async def plan() -> Plan:
            infrastructure = await ending(key, self._load, clock=self._clock)
            deletion = DeleteEvent(key, infrastructure.before, infrastructure.after)
            return Plan((*infrastructure.commands, deletion))

        return await self._executor.execute(plan, invocation=invocation)
