"""Requests about several live publications: each is tried by itself, at the same time as others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from domain.kernel.errors import DomainError, Malformed
from domain.kernel.ports import Invocation, Outcome
from domain.publication.aggregate import Publication
from domain.publication.live_handlers import Entry, LivePublicationHandlers
from domain.publication.several_handlers import FIELD
from domain.publication.values import MOST_AT_ONCE, PublicationState

AT_ONCE: Final = 25


@dataclass(frozen=True, slots=True)
class EntryResult:
    """What became of one. `fault` is None where it was done."""

    entry: Entry
    fault: str | None = None


async def each(entries: Sequence[Entry], act: Callable[[Entry], Awaitable[str | None]]) -> Sequence[EntryResult]:
    """What became of each, in their order. `act` gives what went wrong, or raises it."""
    if not 0 < len(entries) <= MOST_AT_ONCE:
        raise Malformed.at(FIELD, f"must have 1 to {MOST_AT_ONCE} entries")
    seats = asyncio.Semaphore(AT_ONCE)

    async def one(entry: Entry) -> EntryResult:
        async with seats:
            try:
                return EntryResult(entry, await act(entry))
            except DomainError as refusal:
                return EntryResult(entry, str(refusal))

    return await asyncio.gather(*map(one, entries))


async def started_after(
    made: Outcome[Publication], handlers: LivePublicationHandlers, *, invocation: Invocation
) -> Outcome[Publication]:
    """The outcome of a creation, with the publications as their starts have left them. One that cannot be started now is Scheduled,
    and says so. A repeated request starts what nothing has touched since its creation, and answers all others as they are."""
    roots = {place: made.aggregates[place] for place in made.result["places"]}
    entries = {
        Entry(UUID(root.key), root.destination_id): place
        for place, root in roots.items()
        if root.state is PublicationState.Scheduled
    }
    aggregates = list(made.aggregates)

    async def start(entry: Entry) -> None:
        place = entries[entry]
        event_id, version = UUID(roots[place].content_id), roots[place].version
        aggregates[place] = (await handlers.start_new(event_id, entry, version=version, invocation=invocation)).aggregate

    if entries:
        await each(list(entries), start)
    return replace(made, aggregates=aggregates)
