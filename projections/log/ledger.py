"""Load, decide, append: how every command of the product is carried out, and nothing else writes."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic_core import to_json

from domain.kernel.aggregate import NO_CLAIMS, AggregateRoot, Claim
from domain.kernel.answers import RecordedAnswer
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.errors import DomainError, Malformed, NotFound, StaleVersion
from domain.kernel.event import DomainEvent
from domain.kernel.mapper import EventMapper
from projections.kernel.view import Views
from projections.log.append import Appender, ClaimTaken, StaleStream
from projections.log.statement import Append, EventRow
from projections.log.streams import SNAPSHOT_EVERY, Streams

_log = logging.getLogger(__name__)
_TRIES = 4

R = TypeVar("R", bound=AggregateRoot)
Seal = Callable[[R, bool], Awaitable[RecordedAnswer | None]]


@dataclass(frozen=True)
class Plan(Generic[R]):
    """A command, and new aggregates that must come into being with it (an Event's new tags)."""

    command: Command[R]
    companions: Sequence[AggregateRoot] = ()


@dataclass(slots=True)
class _Decision(Generic[R]):
    root: R
    events: Sequence[DomainEvent]
    before: frozenset[Claim]


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
        `Conflict` after lost races, `Unavailable`.
        """
        for left in reversed(range(_TRIES)):
            plan = Plan(wanted) if isinstance(wanted, Command) else await wanted()
            try:
                if plan.command.fresh and left == _TRIES - 1:
                    decision = self._decide(plan.command, None, if_match)
                    return await self._carried_out(decision, plan.companions, cause=cause, seal=seal)
                stream = plan.command.stream
                async with self._turns.of(stream):
                    decision = await self._decided(plan.command, stream, if_match)
                    return await self._carried_out(decision, plan.companions, cause=cause, seal=seal)
            except StaleStream:
                if not left:
                    raise
            except ClaimTaken:
                if not left or not plan.companions:
                    raise
        raise AssertionError("unreachable")

    async def _carried_out(
        self, decision: _Decision[R], companions: Sequence[AggregateRoot], *, cause: Cause, seal: Seal[R] | None
    ) -> R:
        root = decision.root
        answer = await seal(root, bool(decision.events)) if seal is not None else None
        if decision.events:
            await self._appender.append(self._appended(decision, companions, cause=cause, answer=answer))
            self._snapshot_if_due(root, len(decision.events))
        self._put(root)
        return root

    async def _decided(self, command: Command[R], stream: str, if_match: frozenset[int] | None) -> _Decision[R]:
        kept = self._kept.pop(stream, None)
        if kept is not None:
            try:
                decision = self._decide(command, cast("R", kept), if_match)
            except DomainError:
                pass
            else:
                if decision.events:
                    return decision
        return self._decide(command, cast("R | None", await self._streams.load(stream)), if_match)

    def _decide(self, command: Command[R], root: R | None, if_match: frozenset[int] | None) -> _Decision[R]:
        """400 and 404 come before a failed If-Match, which comes before any other refusal."""
        before = root.claims() if root is not None else NO_CLAIMS
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
        return _Decision(decided, cast("Sequence[DomainEvent]", decided.collect_events()), before)

    def _appended(
        self, decision: _Decision[R], companions: Sequence[AggregateRoot], *, cause: Cause, answer: RecordedAnswer | None
    ) -> Append:
        roots: list[AggregateRoot] = [*companions, decision.root]
        events = [event for other in companions for event in cast("Sequence[DomainEvent]", other.collect_events())]
        after = frozenset[Claim]().union(*(root.claims() for root in roots))
        return Append(
            events=self.event_rows([*events, *decision.events], cause),
            rows=[row for root in roots for row in self._views.rows(root)],
            claims=[*(after - decision.before)],
            releases=[*(decision.before - after)],
            answer=answer,
        )

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


def metadata_text(cause: Cause) -> str:
    """The cause as it is stored beside the event: compact JSON, absent causation left out."""
    members = {"actor": cause.actor, "correlation_id": cause.correlation_id, "command_id": cause.command_id}
    if cause.causation_id is not None:
        members["causation_id"] = cause.causation_id
    return to_json(members).decode()
