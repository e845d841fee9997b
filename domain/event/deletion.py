"""Deletion of an Event. The same append terminates its infrastructure and ends the generation of its film."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from domain.event.aggregate import MediaEvent
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.ports import Executor, Invocation, Outcome, Plan
from domain.provision.handlers import LoadStream, ending


@dataclass(frozen=True, slots=True)
class CompositionEnd:
    """The effect of an Event's deletion on its playlist. `job` is the job that `commands` cancel."""

    job: int | None = None
    commands: Sequence[Command[Any]] = ()


class EndingCompositions(Protocol):
    async def ending(self, event_id: UUID) -> CompositionEnd: ...


class EventDeletion:
    """Deletes Events. A restored Event has no infrastructure until it is provisioned again."""

    def __init__(self, executor: Executor, load: LoadStream, *, compositions: EndingCompositions, clock: Clock) -> None:
        self._executor = executor
        self._load = load
        self._compositions = compositions
        self._clock = clock

    async def delete(self, key: UUID, *, invocation: Invocation) -> Outcome[MediaEvent]:
        async def plan() -> Plan:
            infrastructure = await ending(key, self._load, clock=self._clock)
            composition = await self._compositions.ending(key)
            deletion = MediaEvent.delete.on(
                key, before=infrastructure.before, after=infrastructure.after, composing_job=composition.job
            )
            return Plan((*infrastructure.commands, *composition.commands, deletion))

        return await self._executor.execute(plan, invocation=invocation)
