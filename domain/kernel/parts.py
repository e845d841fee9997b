"""Deletion of any number of aggregates in several appends, because one append takes a limited number of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from domain.kernel.command import Command
from domain.kernel.ports import Executor, Invocation, Outcome, Plan

T = TypeVar("T")


async def delete_in_parts(
    executor: Executor,
    find: Callable[[], Awaitable[Sequence[T]]],
    *,
    deletion: Callable[[T], Iterable[Command[Any]]],
    most: int,
    invocation: Invocation,
) -> Outcome[Any]:
    """Delete what `find` returns until it returns at most `most`, then these. `deleted` in the result is the total.

    The last part carries the idempotency key: a request that was interrupted continues when it is repeated.
    """
    deleted = 0
    unconditional = invocation.at_any_version()

    def part(rows: Sequence[T]) -> Plan:
        commands = [command for row in rows[:most] for command in deletion(row)]
        return Plan(commands, {"deleted": deleted + len(rows[:most])})

    async def plan() -> Plan:
        return part(await find())

    while len(await find()) > most:
        outcome = await executor.execute(plan, invocation=replace(unconditional, idempotency=None))
        deleted = outcome.result["deleted"]
    return await executor.execute(plan, invocation=unconditional)
