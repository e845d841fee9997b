"""Carries out an order of outcomes: executes the command that reports an outcome of a job to its owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from domain.job.outcome import JobOutcome
from domain.kernel.command import Command
from domain.kernel.ports import Executor, Invocation, Plan
from domain.kernel.stream_name import StreamName
from projections.effects.orders import Order

OwnerCommand = Callable[[str, JobOutcome], Command[Any] | Plan]
"""Makes the command for an outcome to the owner with this key, or a plan if other aggregates change along with it. All of them do
nothing when repeated."""

Followup = Callable[[str, JobOutcome, Invocation], Awaitable[None]]
"""An action after the owner with this key was notified of an outcome. It is repeated if the order is repeated."""

NO_FOLLOWUPS: Final[Mapping[str, Followup]] = MappingProxyType({})


class OwnerCommands:
    """Reports outcomes to owners. `owners` and `followups` are by the kinds of the aggregates. An order for a kind without an owner
    here waits for a process that supports it."""

    def __init__(
        self, executor: Executor, *, owners: Mapping[str, OwnerCommand], followups: Mapping[str, Followup] = NO_FOLLOWUPS
    ) -> None:
        self._executor = executor
        self._owners = owners
        self._followups = followups

    async def carry_out(self, order: Order, invocation: Invocation) -> None:
        owner = StreamName.read(order.target)
        outcome = JobOutcome.model_validate_json(order.body)
        command = self._owners[owner.kind](owner.key, outcome)
        if isinstance(command, Plan):
            await self._executor.execute(_as_is(command), invocation=invocation)
        else:
            await self._executor.execute(command, invocation=invocation)
        if owner.kind in self._followups:
            await self._followups[owner.kind](owner.key, outcome, invocation)


def _as_is(plan: Plan) -> Callable[[], Awaitable[Plan]]:
    async def planned() -> Plan:
        return plan

    return planned
