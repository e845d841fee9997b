"""Requests for several live publications. Each publication is processed independently and concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from domain.kernel.errors import DomainError, Malformed
from domain.kernel.ports import Invocation, Outcome
from domain.publication.aggregate import Publication
from domain.publication.handlers import FIELD
from domain.publication.live_handlers import LivePublicationHandlers, RequestedLive
from domain.publication.values import MOST_AT_ONCE, PublicationState

AT_ONCE: Final = 25


@dataclass(frozen=True, slots=True)
class EntryResult:
    """The result for one publication. `fault` is None if it succeeded."""

    entry: RequestedLive
    fault: str | None = None


async def each(entries: Sequence[RequestedLive], act: Callable[[RequestedLive], Awaitable[str | None]]) -> Sequence[EntryResult]:
    """Return the result of each entry, in the order of the entries. `act` returns the fault, or raises it."""
    if not 0 < len(entries) <= MOST_AT_ONCE:
        raise Malformed.at(FIELD, f"must have 1 to {MOST_AT_ONCE} entries")
    seats = asyncio.Semaphore(AT_ONCE)

    async def process(entry: RequestedLive) -> EntryResult:
        async with seats:
            try:
                return EntryResult(entry, await act(entry))
            except DomainError as refusal:
                return EntryResult(entry, str(refusal))

    return await asyncio.gather(*map(process, entries))


async def started_after(
    made: Outcome[Publication], handlers: LivePublicationHandlers, *, invocation: Invocation
) -> Outcome[Publication]:
    """Start the created publications and return the outcome with their new states. A publication that cannot be started now is
    Scheduled, with the reason. A repeated request starts the publications that have not changed since their creation, and
    returns the others unchanged."""
    roots = {place: made.aggregates[place] for place in made.result["places"]}
    entries = {
        RequestedLive(UUID(root.key), root.destination_id): place
        for place, root in roots.items()
        if root.state is PublicationState.Scheduled
    }
    aggregates = list(made.aggregates)

    async def start(entry: RequestedLive) -> None:
        place = entries[entry]
        event_id, version = UUID(roots[place].content_id), roots[place].version
        aggregates[place] = (await handlers.start_new(event_id, entry, version=version, invocation=invocation)).aggregate

    if entries:
        await each(list(entries), start)
    return replace(made, aggregates=aggregates)
