"""The worker that carries out the orders of one consumer.

Any number of processes may do so at once. A failed order is retried, later each time, for as long as it takes. Later orders of the
same target wait meanwhile, and no others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final

from domain.kernel.cause import Cause
from domain.kernel.errors import NotFound
from domain.kernel.ports import Invocation
from projections.consumers.orders import AT_ONCE, Order, Orders, due
from projections.kernel.background_task import BackgroundTask
from projections.kernel.database.database import Database
from projections.kernel.tracing import UNTRACED, Tracer, within
from workers.kernel.wakeups import POLL, Waker

CarryOut = Callable[[Order, Invocation], Awaitable[None]]
"""Carries out an order. It may be called again for an order that was already carried out."""

_FIRST_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 300.0

_log = logging.getLogger(__name__)


class OrderWorker(BackgroundTask):
    """The background task for the orders of one consumer. An order for which `carry_out` raises `NotFound` is skipped: its target
    no longer exists."""

    WHAT: ClassVar[str] = "orders"

    def __init__(self, orders: Orders, carry_out: CarryOut, *, waker: Waker, poll: float = POLL, tracer: Tracer = UNTRACED) -> None:
        """`poll` is the number of seconds after which it looks for orders without being woken."""
        self._orders = orders
        self._carry_out = carry_out
        self._waker = waker
        self._poll = poll
        self._tracer = tracer

    async def _turn(self) -> None:
        if await self.carry_out() < AT_ONCE:
            await self._waker.sleep(self._poll)

    async def carry_out(self) -> int:
        """Carry out the orders that are due, and return their number."""
        taken = await self._orders.take()
        for ended in await asyncio.gather(*map(self._carry_out_one, taken), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
        if taken:
            self._waker.wake()  # the next ones of these targets are due
        return len(taken)

    async def _carry_out_one(self, order: Order) -> None:
        what = f"an order of {self._orders.consumer} for {order.target}"
        cause = Cause.by(
            "system",
            correlation_id=order.correlation_id or None,
            causation_id=order.event_id,
            trace_parent=self._tracer.consumer_context(self._orders.consumer, order.trace_parent),
        )
        try:
            with self._tracer.span(f"order {self._orders.consumer}", parent=cause.trace_parent) as span:
                await self._carry_out(order, Invocation(within(span, cause)))
        except NotFound as missing:
            _log.warning("%s is skipped: there is %s any more", what, missing)
        except Exception as fault:
            seconds = min(_FIRST_RETRY * 2 ** min(order.attempt - 1, 16), _LONGEST_RETRY)
            _log.warning("%s failed: %s; trying again in %.0f s", what, fault, seconds)
            await self._orders.retry(order, seconds=seconds, error=f"{type(fault).__name__}: {fault}")
            return
        await self._orders.done(order)


class OrderPoll(BackgroundTask):
    """Wakes the order workers of a process that have due orders: those that are to be retried, or that another process has left."""

    WHAT: ClassVar[str] = "due orders"
    SECONDS: ClassVar[float] = 60.0
    """Seconds after which an order worker looks without being woken."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._wakers: dict[str, Waker] = {}

    def add(self, consumer: str, waker: Waker) -> None:
        """Wake the order worker of a consumer from now on."""
        self._wakers[consumer] = waker

    async def _turn(self) -> None:
        for consumer in await due(self._database, self._wakers) if self._wakers else ():
            self._wakers[consumer].wake()
        await asyncio.sleep(POLL)
