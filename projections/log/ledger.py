"""Load, decide, append: how every command of the product is carried out, and nothing else writes."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic_core import to_json

from domain.kernel.aggregate import NOTHING_HELD, AggregateRoot, Holding
from domain.kernel.answers import RecordedAnswer
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.errors import DomainError, Malformed, NotFound, Overtaken, StaleVersion
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.kernel.view import Views
from projections.log.append import Appender, ClaimTaken, LinkBroken, StaleStream
from projections.log.statement import Append, EventRow, LinkRow
from projections.log.streams import SNAPSHOT_EVERY, Streams

_log = logging.getLogger(__name__)
_TRIES = 4

R = TypeVar("R", bound=AggregateRoot)
Seal = Callable[[R, bool], Awaitable[RecordedAnswer | None]]
SealAll = Callable[[Sequence[Any], bool], Awaitable[RecordedAnswer | None]]


@dataclass(frozen=True)
class Plan(Generic[R]):
    """A command, and others that are carried out with it, just before it (an Event's new tags), all or nothing."""

    command: Command[R]
    companions: Sequence[Command[Any]] = ()


@dataclass(slots=True)
class _Decision:
    command: Command[Any]
    root: AggregateRoot
    events: Sequence[DomainEvent]
    before: Holding


class _Turn:
    """The lock of one stream while anybody wants it."""

    __slots__ = ("_lock", "_stream", "_turns", "_users")

    def __init__(self, turns: dict[str, _Turn], stream: str) -> None:
        self._turns = turns
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
            del self._turns[self._stream]


class _Turns:
    """One command at a time per aggregate and process: conflicts then come from other processes only."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}

    def of(self, stream: str) -> _Turn:
        turn = self._turns.get(stream)
        if turn is None:
            turn = self._turns[stream] = _Turn(self._turns, stream)
        return turn


class Ledger:
    """Carries out commands. Aggregates lately used are kept, so most commands read nothing before they write.

    A kept aggregate may be behind, when another process wrote. Its changes are safe all the same: the expected version fails and
    the command is decided again. But a refusal, or "nothing to do", that rests on it is never given before the log was asked.
    """

    def __init__(
        self,
        appender: Appender,
        streams: Streams,
        *,
        mapper: EventMapper,
        views: Views,
        clock: Clock,
        keep: int = 20_000,
    ) -> None:
        self._appender = appender
        self._streams = streams
        self._mapper = mapper
        self._views = views
        self._clock = clock
        self._kept: OrderedDict[str, AggregateRoot] = OrderedDict()
        self._keep = keep
        self._turns = _Turns()
        self._snapshots: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        if self._snapshots:
            await asyncio.wait(self._snapshots)

    async def execute(
        self,
        wanted: Command[R] | Callable[[], Awaitable[Plan[R]]],
        *,
        cause: Cause,
        if_match: frozenset[int] | None = None,
        seal: Seal[R] | None = None,
    ) -> R:
        """Carry a command out; the aggregate as it is after it.

        `wanted` may be a question that gives the plan: it is asked again for every try. `if_match` are the versions that the
        caller insists on. `seal` makes the answer to be kept with the change; it is called before the append, with the
        aggregate as it will be and whether anything changes. Raises what the command refuses with, `StaleVersion`,
        `Conflict` after lost races (at once, where asking again would change nothing), `Unavailable`.
        """
        fixed = Plan(wanted) if isinstance(wanted, Command) else None

        async def ask() -> Sequence[Command[Any]]:
            plan = fixed or await cast("Callable[[], Awaitable[Plan[R]]]", wanted)()
            return [*plan.companions, plan.command]

        repeats = fixed is None or fixed.command.forgiving
        sealed = None if seal is None else _of_last(seal)
        roots = await self._tried(ask, repeats=repeats, cause=cause, if_match=if_match, seal=sealed)
        return cast("R", roots[-1])

    async def execute_all(
        self, wanted: Callable[[], Awaitable[Sequence[Command[Any]]]], *, cause: Cause, seal: SealAll | None = None
    ) -> list[Any]:
        """Carry out any number of commands on as many aggregates, all or nothing; the aggregates, in the same order.

        Otherwise as `execute`."""
        return await self._tried(wanted, repeats=True, cause=cause, seal=seal)

    async def _tried(
        self,
        ask: Callable[[], Awaitable[Sequence[Command[Any]]]],
        *,
        repeats: bool,
        cause: Cause,
        if_match: frozenset[int] | None = None,
        seal: SealAll | None,
    ) -> list[Any]:
        """A stale version is always decided again; what was lost to somebody else only where that may come to another end."""
        for left in reversed(range(_TRIES)):
            commands = await ask()
            try:
                return await self._carry_out(commands, cause=cause, if_match=if_match, seal=seal, first_try=left == _TRIES - 1)
            except (StaleStream, ClaimTaken, LinkBroken, Overtaken) as lost:
                if not left or not (repeats or isinstance(lost, StaleStream)):
                    raise
        raise AssertionError("unreachable")

    async def _carry_out(
        self,
        commands: Sequence[Command[Any]],
        *,
        cause: Cause,
        if_match: frozenset[int] | None = None,
        seal: SealAll | None,
        first_try: bool,
    ) -> list[Any]:
        """A fresh key has nobody else who wants it, so it needs no turn; after a lost race nothing is taken for fresh."""
        if len(commands) == 1 and not (first_try and commands[0].fresh):
            async with self._turns.of(commands[0].stream):
                decisions = [await self._decided(commands[0], if_match)]
                return await self._settle(decisions, cause=cause, seal=seal)
        if len({command.stream for command in commands}) < len(commands):
            raise ValueError("a plan asks twice of one aggregate")  # it would wait for itself
        async with AsyncExitStack() as turns:
            known = [command.stream for command in commands if not (first_try and command.fresh)]
            for stream in sorted(known):  # in one order for all, so that no two wait for each other
                await turns.enter_async_context(self._turns.of(stream))
            decisions = await self._decided_together(commands, known, if_match)
            return await self._settle(decisions, cause=cause, seal=seal)

    async def _settle(self, decisions: Sequence[_Decision], *, cause: Cause, seal: SealAll | None) -> list[Any]:
        roots = [decision.root for decision in decisions]
        changed = any(decision.events for decision in decisions)
        answer = await seal(roots, changed) if seal is not None else None
        if changed:
            await self._appender.append(self._appended(decisions, cause=cause, answer=answer))
            for decision in decisions:
                self._snapshot_if_due(decision.root, len(decision.events))
        for root in roots:
            self._put(root)
        return roots

    async def _decided(self, command: Command[Any], if_match: frozenset[int] | None) -> _Decision:
        kept = self._kept.pop(command.stream, None)
        if kept is not None:
            try:
                decision = self._decide(command, kept, if_match)
            except DomainError:
                pass
            else:
                if decision.events:
                    return decision
        return self._decide(command, await self._streams.load(command.stream), if_match)

    async def _decided_together(
        self, commands: Sequence[Command[Any]], known: Sequence[str], if_match: frozenset[int] | None
    ) -> list[_Decision]:
        """All in the order of the commands, so that the first fault is the one that is told. `if_match` is of the last."""
        for stream in known:
            self._kept.pop(stream, None)
        loaded = await self._streams.load.many(known) if known else {}
        return [
            self._decide(command, loaded.get(command.stream), if_match if command is commands[-1] else None) for command in commands
        ]

    def _decide(self, command: Command[Any], root: AggregateRoot | None, if_match: frozenset[int] | None) -> _Decision:
        """400 and 404 come before a failed If-Match, which comes before any other refusal."""
        before = root.holding() if root is not None else NOTHING_HELD
        version = root.version if root is not None else 0
        stale = if_match is not None and version not in if_match
        try:
            decided = command.decide(root, at=self._clock())
        except (Malformed, NotFound):
            raise
        except DomainError:
            if stale:
                raise StaleVersion(version) from None
            raise
        if stale:
            raise StaleVersion(version)
        return _Decision(command, decided, cast("Sequence[DomainEvent]", decided.collect_events()), before)

    def _appended(self, decisions: Sequence[_Decision], *, cause: Cause, answer: RecordedAnswer | None) -> Append:
        changed = [decision for decision in decisions if decision.events]
        append = Append(
            events=self.event_rows([event for decision in changed for event in decision.events], cause),
            rows=[row for decision in changed for row in self._views.rows(decision.root)],
            answer=answer,
        )
        for decision in changed:
            _take_hold(append, decision)
        return append

    def event_rows(self, events: Sequence[DomainEvent], cause: Cause) -> list[EventRow]:
        metadata = metadata_text(cause)
        return [
            EventRow.of(
                stream=event.originator_id,
                version=event.originator_version,
                topic=event.TOPIC,
                event_id=cause.event_id(index),
                state=self._mapper.state(event),
                metadata=metadata,
            )
            for index, event in enumerate(events)
        ]

    def _put(self, root: AggregateRoot) -> None:
        self._kept[root.id] = root
        if len(self._kept) > self._keep:
            self._kept.popitem(last=False)

    def _snapshot_if_due(self, root: AggregateRoot, added: int) -> None:
        if root.version // SNAPSHOT_EVERY == (root.version - added) // SNAPSHOT_EVERY:
            return
        task = asyncio.create_task(self._keep_snapshot(root.id, root.version, root.snapshot()))
        self._snapshots.add(task)
        task.add_done_callback(self._snapshots.discard)

    async def _keep_snapshot(self, stream: str, version: int, snapshot: dict[str, Any]) -> None:
        try:
            await self._streams.keep(stream, version=version, snapshot=snapshot)
        except DomainError as fault:
            _log.warning("no snapshot of %s was kept: %s", stream, fault)


def _of_last(seal: Seal[R]) -> SealAll:
    return lambda roots, changes: seal(roots[-1], changes)


def _take_hold(append: Append, decision: _Decision) -> None:
    """Add to the append what the aggregate takes hold of and lets go by this decision."""
    root, before, after = decision.root, decision.before, decision.root.holding()
    if before == after:
        return
    append.claims.extend(after.claims - before.claims)
    append.releases.extend(before.claims - after.claims)
    append.linked.extend(LinkRow(root.id, target, not decision.command.forgiving) for target in after.links - before.links)
    append.unlinked.extend(LinkRow(root.id, target) for target in before.links - after.links)
    append.sealed.extend(secret for secret in decision.command.sealed if secret.reference in after.secrets - before.secrets)
    append.erased.extend(before.secrets - after.secrets)
    if after.stands != before.stands:
        (append.stood if after.stands else append.fell).append(root.id)


def metadata_text(cause: Cause) -> str:
    """The cause as it is stored beside the event: compact JSON, absent causation left out."""
    members = {"actor": cause.actor, "correlation_id": cause.correlation_id, "command_id": cause.command_id}
    if cause.causation_id is not None:
        members["causation_id"] = cause.causation_id
    return to_json(members).decode()
