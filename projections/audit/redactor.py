"""Carries out redactions: erases parts of events in appends of the log, and then what was made of them and is no view.

Every step can be repeated. One that was cut off, by a crash or a change that was faster, is done again by whoever takes the
redaction up next: what is erased already is not found any more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, cast
from uuid import UUID, uuid5

from domain.kernel.aggregate import NO_REFERENCES, AggregateRoot
from domain.kernel.cause import Cause
from domain.kernel.clock import Clock
from domain.kernel.command import Command
from domain.kernel.decision import Decision
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, Conflict, LinkBroken, NotFound
from domain.kernel.event import DomainEvent
from domain.kernel.ids import new_id
from domain.kernel.mapper import EventMapper
from domain.kernel.stream_name import StreamName
from domain.redaction.aggregate import Redaction
from domain.redaction.events import Part
from projections.kernel.arrays import bigints, texts
from projections.kernel.database import Database
from projections.kernel.view import Views
from projections.log.append import Appender
from projections.log.reader import head
from projections.log.streams import Streams
from projections.log.write_set import WriteSets

KEPT_KINDS: Final = frozenset({"client", "content_key", "provision", "log"})
"""Without their content nobody could log in, play, or give infrastructure back. They describe no persons."""
_CAUSES: Final = UUID("5a1d0a53-7a39-4d0c-9d32-0d8f4a4be1b7")
_BATCH: Final = 500
_SCANNED: Final = 50_000
_TRIES: Final = 4
_CLEAN_AGAIN: Final = 60.0
"""Seconds between two looks for what was made of erased content, while consumers are behind: each reads whole tables."""

_FOUND: Final = """
SELECT e.position, e.originator_id,
    (%(content)s AND e.state_hash IS NULL AND e.topic = ANY(%(topics)s::text[])) AS content,
    (%(cause)s AND e.metadata_hash IS NULL) AS cause
FROM {events} WHERE {chosen} AND e.position > %(after)s AND e.position <= %(until)s
    AND (%(content)s AND e.state_hash IS NULL AND e.topic = ANY(%(topics)s::text[]) OR %(cause)s AND e.metadata_hash IS NULL)
ORDER BY e.position LIMIT %(limit)s
"""
_HISTORY: Final = (
    "SELECT position, version, topic, state, redacted_state(recorded_at) FROM stream_events WHERE stream = stream_key(%s)"
)
_ORDER: Final = """
SELECT id, reason, parts, selection::text, requested_by, correlation_id, through, reached, events, streams, kept, requested_at,
    finished_at
FROM redactions
"""
_REQUEST: Final = """
INSERT INTO redactions (id, reason, parts, selection, requested_by, correlation_id, through)
VALUES (%s, %s, %s, %s::jsonb, %s, %s, %s)
"""
_REACHED: Final = """
UPDATE redactions SET reached = greatest(reached, %s), events = events + %s, streams = streams + %s, kept = kept + %s WHERE id = %s
"""
_FINISHED: Final = "UPDATE redactions SET finished_at = clock_timestamp(), selection = NULL WHERE id = %s"
_PASSED: Final = """
SELECT NOT EXISTS (
    SELECT FROM consumer_shards s WHERE s.position < (SELECT coalesce(max(position), 0) FROM redacted_streams)
        AND EXISTS (SELECT FROM consumer_members m WHERE m.consumer = s.consumer AND m.seen_at > now() - interval '1 minute'))
"""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which events: those of a stream, at positions, or caused by somebody. One of them is given."""

    stream: str | None = None
    positions: Sequence[tuple[int, int]] | None = None
    actor: str | None = None

    def text(self) -> str:
        return json.dumps({"stream": self.stream, "positions": self.positions, "actor": self.actor})

    @classmethod
    def read(cls, text: str) -> Selection:
        given = json.loads(text)
        positions = given["positions"]
        return cls(stream=given["stream"], actor=given["actor"], positions=positions and [(low, high) for low, high in positions])

    def events(self) -> tuple[str, str]:
        """The tables and the condition, in SQL."""
        if self.stream is not None:
            return "stream_versions v JOIN events e USING (position)", "v.stream = stream_key(%(stream)s)"
        if self.positions is not None:
            ranges = "unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS r (first, last) JOIN events e"
            return f"{ranges} ON e.position BETWEEN r.first AND r.last", "true"
        return "events e", "(e.metadata->>'actor' = %(actor)s OR e.metadata->>'end_user' = %(actor)s)"

    def named(self) -> dict[str, Any]:
        given = self.positions or ()
        return {
            "stream": self.stream,
            "actor": self.actor,
            "firsts": bigints([low for low, _ in given]),
            "lasts": bigints([high for _, high in given]),
        }


@dataclass(frozen=True, slots=True)
class RedactionOrder:
    """A redaction that was asked for, and how far it is. `kept` events are of streams whose work is under way."""

    id: UUID
    reason: str
    parts: tuple[Part, ...]
    selection: Selection | None
    requested_by: str
    correlation_id: str
    through: int
    reached: int
    events: int
    streams: int
    kept: int
    requested_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> RedactionOrder:
        key, reason, parts, selection, *rest = row
        return cls(key, reason, tuple(map(Part, parts)), None if selection is None else Selection.read(selection), *rest)


@dataclass(frozen=True, slots=True)
class Found:
    """An event that is to lose its content, its cause, or both."""

    position: int
    stream: str
    content: bool
    cause: bool


@dataclass(frozen=True)
class _ToldOfRedaction(Command[Any]):
    """What is appended to a stream that loses content refuses nothing, and accepts that what it links to is gone."""

    @property
    def ignore_missing_links(self) -> bool:
        return True


class Redactor:
    """Asks the log for what is to go, a batch at a time."""

    def __init__(
        self, database: Database, streams: Streams, *, appender: Appender, mapper: EventMapper, views: Views, clock: Clock
    ) -> None:
        self._database = database
        self._streams = streams
        self._appender = appender
        self._mapper = mapper
        self._write_sets = WriteSets(mapper, views)
        self._clock = clock
        self._cleaned: dict[UUID, float] = {}
        """When this process has last looked for what was made of the content, of redactions that wait for consumers."""

    @cached_property
    def _topics(self) -> list[str]:
        """Of the events whose content may go."""
        return [topic for topic in self._mapper.catalogue.personal_topics() if topic.partition(".")[0] not in KEPT_KINDS]

    async def request(self, selection: Selection, parts: Sequence[Part], *, reason: str, cause: Cause) -> RedactionOrder:
        """Remember what is to be erased. It is not erased yet. The same request gives the same order."""
        key, through = cause.command_id, await head(self._database)
        values = (key, reason, list(parts), selection.text(), cause.actor, cause.correlation_id, through)
        await self._database.execute(_REQUEST, values)
        found = await self.find(key)
        assert found is not None, "it was inserted"
        return found

    async def check(self, stream: str, parts: Sequence[Part]) -> None:
        """Raises `NotFound`, and `Conflict` where the content is needed for what is being done."""
        root = await self._streams.load(stream)
        kind, key = StreamName.read(stream)
        if root is None:
            raise NotFound(kind, key)
        if Part.CONTENT in parts and root.under_way():
            raise Conflict(f"the {kind.replace('_', ' ')} {key} is at work: its content can be erased when that has ended")

    async def find(self, key: UUID) -> RedactionOrder | None:
        row = await self._database.row(_ORDER + "WHERE id = %s", (key,))
        return None if row is None else RedactionOrder.of(row)

    async def unfinished(self) -> list[RedactionOrder]:
        """The oldest first."""
        rows = await self._database.rows(_ORDER + "WHERE finished_at IS NULL ORDER BY requested_at LIMIT 10")
        return [RedactionOrder.of(row) for row in rows]

    async def count(self, selection: Selection, parts: Sequence[Part]) -> tuple[int, int]:
        """How many events would lose a part, and how many streams content."""
        after, through, events, streams = 0, await head(self._database), 0, set[str]()
        while after < through:
            found, after = await self._next(selection, parts, after=after, through=through)
            events += len(found)
            streams |= {one.stream for one in found if one.content}
        return events, len(streams)

    async def step(self, order: RedactionOrder) -> RedactionOrder:
        """Go on with the redaction, for one batch, or with what was made of its events. Gives it as it is afterwards."""
        if order.reached < order.through:
            await self._erase_next(order)
        elif order.finished_at is None:
            await self._clean(order)
        found = await self.find(order.id)
        assert found is not None, "redactions are not deleted"
        return found

    async def _erase_next(self, order: RedactionOrder) -> None:
        assert order.selection is not None, "it is forgotten at the end"
        for left in reversed(range(_TRIES)):
            found, reached = await self._next(order.selection, order.parts, after=order.reached, through=order.through)
            try:
                erased, streams = await self._erase(order, found)
                break
            except (ConcurrencyConflict, ClaimTaken, LinkBroken):
                if not left:
                    raise
        await self._database.execute(_REACHED, (reached, erased, streams, len(found) - erased, order.id))

    async def _next(self, selection: Selection, parts: Sequence[Part], *, after: int, through: int) -> tuple[list[Found], int]:
        """What of the next part of the log is to go, and the position up to which it was looked at."""
        until = through if selection.actor is None else min(through, after + _SCANNED)
        events, chosen = selection.events()
        named = {
            **selection.named(),
            "topics": texts(self._topics),
            "content": Part.CONTENT in parts,
            "cause": Part.CAUSE in parts,
            "after": after,
            "until": until,
            "limit": _BATCH,
        }
        rows = await self._database.rows(_FOUND.format(events=events, chosen=chosen), named)
        found = [Found(*row) for row in rows]
        return found, found[-1].position if len(found) == _BATCH else until

    async def _erase(self, order: RedactionOrder, found: Sequence[Found]) -> tuple[int, int]:
        """One append: the redaction, and the event in each stream that loses content. How many events lost a part, and streams
        content. Raises `ConcurrencyConflict` where another process has erased them since they were found."""
        decisions, key, at = [], new_id(), self._clock()
        under_way: set[str] = set()
        for stream in sorted({one.stream for one in found if one.content}):
            positions = {one.position for one in found if one.content and one.stream == stream}
            decision = await self._decision(stream, positions, redaction=key, at=at)
            if decision is None:
                under_way.add(stream)
            else:
                decisions.append(decision)
        contents = [one.position for one in found if one.content and one.stream not in under_way]
        causes = [one.position for one in found if one.cause]
        if not contents and not causes:
            return 0, 0
        roots = [
            Redaction.record(
                _key_of_causes(those) if part is Part.CAUSE else key, reason=order.reason, parts=[part], positions=those, at=at
            )
            for part, those in ((Part.CONTENT, contents), (Part.CAUSE, causes))
            if those
        ]
        cause = Cause.by(order.requested_by, correlation_id=order.correlation_id)
        append = self._write_sets.of([*map(_recorded, roots), *decisions], cause)
        append.redacts = True
        await self._appender.append(append)
        return len({*contents, *causes}), len(decisions)

    async def _decision(self, stream: str, positions: set[int], *, redaction: UUID, at: datetime) -> Decision | None:
        """The stream folded without the content at these positions, and told of it. None while its work is under way. Raises
        `ConcurrencyConflict` where the content is gone already."""
        before: AggregateRoot | None = None
        root: AggregateRoot | None = None
        for position, version, topic, state, emptied in await self._database.rows(_HISTORY + " ORDER BY version", (stream,)):
            if position in positions and state == emptied:
                raise ConcurrencyConflict(stream)
            taken = emptied if position in positions else state
            root = self._streams.applied(root, stream=stream, version=version, topic=topic, state=taken)
            before = self._streams.applied(before, stream=stream, version=version, topic=topic, state=state)
        assert root is not None, "a stream with positions has events"
        assert before is not None, "as much as the other"
        if before.under_way():
            return None
        references = before.references()
        kind, key = StreamName.read(stream)
        root.trigger_redacted(self._mapper.catalogue.redacted(kind), redaction=redaction, at=at)
        return Decision(_ToldOfRedaction(key), root, _pending(root), None, references)

    async def _clean(self, order: RedactionOrder) -> None:
        """Once consumers are past it they make nothing of the erased content any more; what they made until then goes."""
        row = await self._database.row(_PASSED)
        passed = row is not None and bool(row[0])
        if passed or time.monotonic() - self._cleaned.get(order.id, float("-inf")) >= _CLEAN_AGAIN:
            await self._erase_traces(order)
            self._cleaned[order.id] = time.monotonic()
        if passed:
            await self._database.execute(_FINISHED, (order.id,))
            self._cleaned.pop(order.id, None)

    async def _erase_traces(self, order: RedactionOrder) -> None:
        connection = await self._database.connect("redaction", seconds=None)
        try:
            await connection.execute("SELECT erase_traces(%s)", (order.through,))
        finally:
            await connection.close()


def _key_of_causes(positions: Sequence[int]) -> UUID:
    """The id of a redaction of causes: the same in two processes that erase the same ones, so that the log takes one of them. For
    content the version of its stream decides."""
    return uuid5(_CAUSES, str(positions[0]))


def _recorded(root: Redaction) -> Decision:
    return Decision(_ToldOfRedaction(root.key), root, _pending(root), None, NO_REFERENCES)


def _pending(root: AggregateRoot) -> Sequence[DomainEvent]:
    return cast("Sequence[DomainEvent]", root.collect_events())
