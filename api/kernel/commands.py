"""From an endpoint to the ledger: carries a command out and makes the answer that is kept with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from api.kernel.answer import Answer
from api.kernel.call import Call
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.answers import RecordedAnswer
from domain.kernel.command import Command
from projections.log.ledger import Ledger, Plan

R = TypeVar("R", bound=AggregateRoot)


class CommandBus:
    """Sends commands on behalf of a call: its cause, its If-Match, its Idempotency-Key."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def send(
        self,
        call: Call,
        wanted: Command[R] | Callable[[], Awaitable[Plan[R]]],
        show: Callable[[R], Awaitable[Answer]],
    ) -> Answer:
        """`show` words the answer from the aggregate as it will be; it is asked before the append, whose transaction keeps the
        answer for a repeat, so that there is never the one without the other."""
        shown: Answer | None = None

        async def seal(root: R, changes: bool) -> RecordedAnswer | None:
            nonlocal shown
            shown = await show(root)
            if call.idempotency is None:
                return None
            call.idempotency.sealed = False  # of a try that lost its race
            return call.idempotency.seal(shown) if changes else None

        await self._ledger.execute(wanted, cause=call.cause, if_match=call.if_match, seal=seal)
        assert shown is not None, "the ledger always asks for the answer"
        return shown
