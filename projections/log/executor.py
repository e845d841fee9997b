"""The executor of commands: it loads the aggregate, compares `If-Match`, decides and appends. Nothing else writes to the log."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from typing import Any, Final, Protocol, TypeVar, overload

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.decision import Decision, decide
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, DomainError, InUse, LinkBroken, PlanOutdated
from domain.kernel.idempotency import IdempotencyRecord
from domain.kernel.mapper import EventMapper
from domain.kernel.ports import Invocation, Outcome, Plan
from projections.kernel.background_task import start_task
from projections.kernel.schema.view import ViewRow, Views
from projections.kernel.sizes import MIB
from projections.kernel.tracing import UNTRACED, Span, Tracer, within
from projections.log.append import Appender
from projections.log.sized_cache import NOTHING, SizedCache, Weighed, memory_of, weigh
from projections.log.statement import WriteSet
from projections.log.streams import SNAPSHOT_EVERY, Streams
from projections.log.write_set import WriteSets


class _StreamLock:
    __slots__ = ("_lock", "_locks", "_stream", "_users")

    def __init__(self, locks: dict[str, _StreamLock], stream: str) -> None:
        self._locks = locks
        self._stream = stream
        self._lock = asyncio.Lock()
        self._users = 0

    async def __aenter__(self) -> None:
        self._users += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            del self._locks[self._stream]


class StreamLocks:
    """The locks of a process. A lock exists while a command holds it or waits for it. Only other processes can then cause
    concurrency conflicts."""

    def __init__(self) -> None:
        self._locks: dict[str, _StreamLock] = {}

    def of(self, stream: str) -> _StreamLock:
        lock = self._locks.get(stream)
        if lock is None:
            lock = self._locks[stream] = _StreamLock(self._locks, stream)
        return lock


_log = logging.getLogger(__name__)
_TRIES = 4

R = TypeVar("R", bound=AggregateRoot)


class Users(Protocol):
    """Finds the aggregates that link to a stream."""

    async def users_of(self, streams: Sequence[str]) -> Sequence[object]:
        """Return the first few users of the streams. The text of each names it for a person."""
        ...


_LOST: Final = {ConcurrencyConflict: "version", ClaimTaken: "claim", LinkBroken: "link", PlanOutdated: "plan"}


class CommandExecutor:
    """Executes commands. It caches the aggregates that were used last, so most commands read nothing before they write.

    A cached aggregate may be out of date if another process wrote to it. Changes decided on it are safe: the append rejects the
    expected version and the command is decided again. But a refusal, or "nothing to do", is never reported on the basis of the
    cache alone.
    """

    def __init__(
        self,
        appender: Appender,
        streams: Streams,
        *,
        mapper: EventMapper,
        views: Views,
        users: Users,
        clock: Clock,
        cache: int = 128 * MIB,
        tracer: Tracer = UNTRACED,
    ) -> None:
        self._appender = appender
        self._streams = streams
        self._write_sets = WriteSets(mapper, views)
        self._users = users
        self._clock = clock
        self._tracer = tracer
        self._cache = SizedCache[AggregateRoot](cache)
        self._locks = StreamLocks()
        self._snapshots: set[asyncio.Task[None]] = set()
        self._timeline = appender.timeline
        self.lost_races: Counter[str] = Counter()
        """The number of lost races against other commands, by what was lost."""

    async def stop(self) -> None:
        if self._snapshots:
            await asyncio.wait(self._snapshots)

    def forget(self, streams: Iterable[str]) -> None:
        """Drop these aggregates from the cache, because content was erased from them."""
        for stream in streams:
            self._cache.pop(stream)

    @overload
    async def execute(self, command: Command[R], *, invocation: Invocation) -> Outcome[R]: ...

    @overload
    async def execute(self, command: Callable[[], Awaitable[Plan]], *, invocation: Invocation) -> Outcome[Any]: ...

    async def execute(self, command: Any, *, invocation: Invocation) -> Outcome[Any]:
        """Execute a command or a plan, as described by the port. A concurrency conflict is always retried; another lost race only
        if the result may differ."""
        fixed = Plan((command,)) if isinstance(command, Command) else None
        repeats = fixed is None or command.ignore_missing_links
        for remaining in reversed(range(_TRIES)):
            plan = fixed or await command()
            try:
                return await self._try(plan, invocation, first=remaining == _TRIES - 1)
            except (ConcurrencyConflict, ClaimTaken, LinkBroken, PlanOutdated) as lost:
                self.lost_races[_LOST[type(lost)]] += 1
                if remaining and (repeats or isinstance(lost, ConcurrencyConflict)):
                    continue
                if isinstance(lost, LinkBroken) and (users := await self._users_of(lost)):
                    raise InUse([str(user) for user in users]) from None
                raise
        raise AssertionError("unreachable")

    async def _users_of(self, broken: LinkBroken) -> Sequence[object]:
        return await self._users.users_of(broken.no_longer_linkable) if broken.no_longer_linkable else ()

    async def _try(self, plan: Plan, invocation: Invocation, *, first: bool) -> Outcome[Any]:
        """Decide and append a plan once.

        A new key needs no lock, because no other command has it; after a lost race no key counts as new. After a promotion the new
        primary may lack events that the cache holds, so the cache is cleared.
        """
        timeline = self._appender.timeline
        if timeline != self._timeline:
            self._cache.clear()
            self._timeline = timeline
        commands = plan.commands
        if len(commands) == 1 and not (first and commands[0].creates):
            async with self._locks.of(commands[0].stream):
                return await self._append([await self._decide_one(commands[0], invocation)], plan, invocation, timeline=timeline)
        if len({command.stream for command in commands}) < len(commands):
            raise ValueError("a plan has two commands for one aggregate")  # the second command would wait for the lock of the first
        async with AsyncExitStack() as locks:
            existing = [command.stream for command in commands if not (first and command.creates)]
            for stream in sorted(existing):  # in the same order for all plans, so that no two wait for each other
                await locks.enter_async_context(self._locks.of(stream))
            decisions = await self._decide_all(plan, invocation, existing=existing)
            return await self._append(decisions, plan, invocation, timeline=timeline)

    async def _decide_one(self, command: Command[Any], invocation: Invocation) -> Decision:
        cached = self._cache.get(command.stream)
        if cached is not None:
            try:
                decision = decide(command, cached.root, if_match=invocation.if_match, at=self._clock())
            except DomainError:
                pass
            else:
                if decision.events:
                    return decision
        self._cache.pop(command.stream)
        current = await self._streams.load(command.stream)
        return decide(command, current, if_match=invocation.if_match, at=self._clock())

    async def _decide_all(self, plan: Plan, invocation: Invocation, *, existing: Sequence[str]) -> list[Decision]:
        """Decide the commands in their order, so that the first error is reported."""
        for stream in existing:
            self._cache.pop(stream)
        current = await self._streams.load.many(existing) if existing else {}
        last = plan.commands[-1] if plan.commands else None
        return [
            decide(
                command,
                current.get(command.stream),
                if_match=invocation.if_match if command is last else None,
                at=self._clock(),
            )
            for command in plan.commands
        ]

    async def _append(self, decisions: Sequence[Decision], plan: Plan, invocation: Invocation, *, timeline: int) -> Outcome[Any]:
        aggregates = [decision.aggregate for decision in decisions]
        position, before, key = None, None, invocation.idempotency
        rows: Sequence[ViewRow] = ()
        sizes: Counter[str] = Counter()
        if any(decision.events for decision in decisions):
            with self._span(decisions, invocation.cause) as span:
                append = self._write_sets.of(decisions, within(span, invocation.cause))
                append.timeline = timeline
                if key is not None:
                    append.idempotency = IdempotencyRecord(key, [aggregate.id for aggregate in aggregates], plan.result)
                position = await self._append_or_forget(append, aggregates)
            rows = append.rows
            before = position - len(append.events)
            for event in append.events:
                sizes[event.stream] += memory_of(event.record)
            for decision in decisions:
                self._snapshot_if_due(decision)
        for decision in decisions if timeline == self._timeline else ():
            self._keep(decision, size=sizes[decision.aggregate.id])
        return Outcome(
            aggregates,
            plan.result,
            position=position,
            before=before,
            previous=[decision.previous for decision in decisions],
            linked=plan.linked,
            rows=rows,
            recorded=key is not None and position is not None,
        )

    def _span(self, decisions: Sequence[Decision], cause: Cause) -> AbstractContextManager[Span]:
        """Return the span of an append, named by its first event. The events carry its context."""
        if not self._tracer.on:
            return self._tracer.span("", parent=None)
        events = [event for decision in decisions for event in decision.events]
        attributes: dict[str, str | int] = {
            "db.system.name": "postgresql",
            "db.operation.name": "INSERT",
            "db.collection.name": "events",
            "db.operation.batch.size": len(events),
            "medialedger.stream": str(events[0].originator_id),
            "medialedger.transaction_id": cause.correlation_id,
        }
        return self._tracer.span(f"append {events[0].TOPIC}", kind="client", parent=cause.trace_parent, attributes=attributes)

    async def _append_or_forget(self, append: WriteSet, aggregates: Sequence[AggregateRoot]) -> int:
        """Append, and drop the aggregates from the cache if the append fails. The cache holds the states from before the append,
        which may then be out of date."""
        try:
            return await self._appender.append(append)
        except BaseException:
            for aggregate in aggregates:
                self._cache.pop(aggregate.id)
            raise

    def _keep(self, decision: Decision, *, size: int) -> None:
        """Cache the aggregate of a decision. `size` is the size of the new events in memory, in bytes."""
        aggregate, entry = decision.aggregate, self._cache.get(decision.aggregate.id)
        if decision.previous is None:
            weighed = Weighed(aggregate, NOTHING + size)
        elif entry is not None and entry.root is decision.previous:
            weighed = Weighed(aggregate, entry.weight + size)
        else:
            weighed = weigh(aggregate)
        self._cache.keep(aggregate.id, weighed)

    def _snapshot_if_due(self, decision: Decision) -> None:
        aggregate = decision.aggregate
        if aggregate.version // SNAPSHOT_EVERY == (aggregate.version - len(decision.events)) // SNAPSHOT_EVERY:
            return
        task = start_task(self._store_snapshot(aggregate), what="snapshots")
        self._snapshots.add(task)
        task.add_done_callback(self._snapshots.discard)

    async def _store_snapshot(self, aggregate: AggregateRoot) -> None:
        try:
            await self._streams.keep(aggregate.id, version=aggregate.version, snapshot=aggregate.snapshot())
        except DomainError as fault:
            _log.warning("no snapshot of %s was stored: %s", aggregate.id, fault)
