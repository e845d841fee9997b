"""Carries out the orders of outcomes: executes the command that an outcome of a job is to its owner.

Any number of processes may do it at once. What fails is tried again, later each time, for as long as it takes. Later orders of the
same owner wait meanwhile, and no others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from domain.job.outcome import JobOutcome
from domain.kernel.cause import Cause
from domain.kernel.command import Command
from domain.kernel.errors import NotFound
from domain.kernel.ports import Executor, Invocation
from domain.kernel.stream_name import StreamName
from projections.effects.orders import AT_ONCE, Order, Orders
from projections.kernel.background_task import BackgroundTask
from workers.kernel.wakeups import Waker

OwnerCommand = Callable[[str, JobOutcome], Command[Any]]
"""Makes the command that an outcome is to the owner with this key. The owner keeps quiet when it is repeated."""

Followup = Callable[[str, JobOutcome, Invocation], Awaitable[None]]
"""What is done after the owner with this key was told of an outcome. It is done again where the order is repeated."""

NO_FOLLOWUPS: Final[Mapping[str, Followup]] = MappingProxyType({})
_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 300.0

_log = logging.getLogger(__name__)


class OrderWorker(BackgroundTask):
    """`owners` and `followups` are by the kinds of the aggregates. An order for a kind without an owner here waits for a process
    that knows it."""

    WHAT: ClassVar[str] = "orders of outcomes"

    def __init__(
        self,
        orders: Orders,
        executor: Executor,
        *,
        owners: Mapping[str, OwnerCommand],
        followups: Mapping[str, Followup] = NO_FOLLOWUPS,
        waker: Waker,
    ) -> None:
        self._orders = orders
        self._executor = executor
        self._owners = owners
        self._followups = followups
        self._waker = waker

    async def _turn(self) -> None:
        if await self.carry_out() < AT_ONCE:
            await self._waker.sleep()

    async def carry_out(self) -> int:
        """Returns how many were due."""
        taken = await self._orders.take()
        for ended in await asyncio.gather(*map(self._carry_out_one, taken), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
        if taken:
            self._waker.wake()  # the next ones of these owners are due
        return len(taken)

    async def _carry_out_one(self, order: Order) -> None:
        try:
            await self._execute(order)
        except NotFound:
            _log.warning("%s is not there any more; an outcome of its job is left out", order.target)
        except Exception as fault:
            seconds = min(_FIRST_RETRY * 2 ** min(order.attempt - 1, 16), _LONGEST_RETRY)
            _log.warning("%s was not told of the end of its job: %s; trying again in %.0f s", order.target, fault, seconds)
            await self._orders.retry(order, seconds=seconds, error=f"{type(fault).__name__}: {fault}")
            return
        await self._orders.done(order)

    async def _execute(self, order: Order) -> None:
        owner = StreamName.read(order.target)
        outcome = JobOutcome.model_validate_json(order.body)
        command = self._owners[owner.kind](owner.key, outcome)
        invocation = Invocation(Cause.by("system", correlation_id=order.correlation_id or None, causation_id=order.event_id))
        await self._executor.execute(command, invocation=invocation)
        if owner.kind in self._followups:
            await self._followups[owner.kind](owner.key, outcome, invocation)
