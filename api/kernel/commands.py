"""From an endpoint to the ledger: carries commands out and makes the answer that is kept with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from api.kernel.answer import Answer
from api.kernel.call import Call
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.answers import RecordedAnswer
from domain.kernel.command import Command
from domain.kernel.errors import Malformed, Refused
from projections.log.append import ClaimTaken, LinkBroken
from projections.log.ledger import Ledger, Plan
from projections.log.links import Links

R = TypeVar("R", bound=AggregateRoot)


class CommandBus:
    """Sends commands on behalf of a call: its cause, its If-Match, its Idempotency-Key.

    What is still in use is refused with its users named. `taken` names the field that is at fault, with 400, when its value
    belongs to somebody else; without it that is a conflict.
    """

    def __init__(self, ledger: Ledger, links: Links) -> None:
        self._ledger = ledger
        self._links = links

    async def send(
        self,
        call: Call,
        wanted: Command[R] | Callable[[], Awaitable[Plan[R]]],
        show: Callable[[R], Awaitable[Answer]],
        *,
        taken: str | None = None,
    ) -> Answer:
        """`show` words the answer from the aggregate as it will be; it is asked before the append, whose transaction keeps the
        answer for a repeat, so that there is never the one without the other."""
        sealing = _Sealing(call, show)
        async with self._worded(taken):
            await self._ledger.execute(wanted, cause=call.cause, if_match=call.if_match, seal=sealing.seal)
        return sealing.shown

    async def send_all(
        self,
        call: Call,
        wanted: Callable[[], Awaitable[Sequence[Command[Any]]]],
        show: Callable[[Sequence[Any]], Awaitable[Answer]],
    ) -> Answer:
        """Any number of commands, all or nothing; `show` gets their aggregates in the same order."""
        sealing = _Sealing(call, show)
        async with self._worded(None):
            await self._ledger.execute_all(wanted, cause=call.cause, seal=sealing.seal)
        return sealing.shown

    @asynccontextmanager
    async def _worded(self, taken: str | None) -> AsyncIterator[None]:
        try:
            yield
        except ClaimTaken:
            if taken is None:
                raise
            raise Malformed.at(taken, "is used by another one") from None
        except LinkBroken as broken:
            users = await self._links.users_of(broken.fallen) if broken.fallen else ()
            if not users:
                raise
            named = ", ".join(f"{user.kind.replace('_', ' ')} {user.id} {user.name!r}" for user in users)
            raise Refused(f"it is in use by {named}") from None


class _Sealing:
    """Keeps the answer that was shown last: a command that lost a race is shown again."""

    def __init__(self, call: Call, show: Callable[[Any], Awaitable[Answer]]) -> None:
        self._call = call
        self._show = show
        self.shown = Answer()

    async def seal(self, roots: Any, changes: bool) -> RecordedAnswer | None:
        self.shown = await self._show(roots)
        pending = self._call.idempotency
        if pending is None:
            return None
        pending.sealed = False  # of a try that lost its race
        return pending.seal(self.shown) if changes else None
