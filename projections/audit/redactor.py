"""Executes redactions: erases parts of events in appends to the log, and then the data derived from them outside the views.

Every step can be repeated. A step that was interrupted, by a crash or a concurrent change, is repeated by the process that
continues the redaction: parts that are erased already are not selected any more.
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
from projections.kernel.database.arrays import bigints, texts
from projections.kernel.database.database import Database
from projections.kernel.schema.view import Views
from projections.log.append import Appender
from projections.log.reader import head
from projections.log.streams import Streams
from projections.log.write_set import WriteSets

PROTECTED_KINDS: Final = frozenset({"client", "content_key", "provision", "log"})
"""The kinds whose content is never erased. Without it nobody could log in, play, or release infrastructure; it does not describe
persons."""
_CAUSES: Final = UUID("5a1d0a53-7a39-4d0c-9d32-0d8f4a4be1b7")
_BATCH: Final = 500
_SCANNED: Final = 50_000
_TRIES: Final = 4
_CLEAN_AGAIN: Final = 60.0
"""The number of seconds between two cleanings of derived data while consumers are behind. Each reads whole tables."""

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
class RedactionSelection:
    """The selected events: those of a stream, at positions, or caused by an actor. Exactly one of them is set."""

    stream: str | None = None
    positions: Sequence[tuple[int, int]] | None = None
    actor: str | None = None

    def text(self) -> str:
        return json.dumps({"stream": self.stream, "positions": self.positions, "actor": self.actor})

    @classmethod
    def read(cls, text: str) -> RedactionSelection:
        document = json.loads(text)
        positions = document["positions"]
        return cls(
            stream=document["stream"], actor=document["actor"], positions=positions and [(low, high) for low, high in positions]
        )

    def events(self) -> tuple[str, str]:
        """Return the tables and the condition, in SQL."""
        if self.stream is not None:
            return "stream_versions v JOIN events e USING (position)", "v.stream = stream_key(%(stream)s)"
        if self.positions is not None:
            ranges = "unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) AS r (first, last) JOIN events e"
            return f"{ranges} ON e.position BETWEEN r.first AND r.last", "true"
        return "events e", "(e.metadata->>'actor' = %(actor)s OR e.metadata->>'end_user' = %(actor)s)"

    def parameters(self) -> dict[str, Any]:
        ranges = self.positions or ()
        return {
            "stream": self.stream,
            "actor": self.actor,
            "firsts": bigints([low for low, _ in ranges]),
            "lasts": bigints([high for _, high in ranges]),
        }


@dataclass(frozen=True, slots=True)
class RedactionOrder:
    """A requested redaction and its progress. `skipped` events belong to streams whose work is in progress."""

    id: UUID
    reason: str
    parts: tuple[Part, ...]
    selection: RedactionSelection | None
    requested_by: str
    correlation_id: str
    through: int
    reached: int
    events: int
    streams: int
    skipped: int
    requested_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Sequence[Any]) -> RedactionOrder:
        key, reason, parts, selection, *rest = row
        return cls(key, reason, tuple(map(Part, parts)), None if selection is None else RedactionSelection.read(selection), *rest)


@dataclass(frozen=True, slots=True)
class Match:
    """An event that is to lose its content, its cause, or both."""

    position: int
    stream: str
    content: bool
    cause: bool


@dataclass(frozen=True)
class _RedactionNotice(Command[Any]):
    """The command of the event that is appended to a stream that loses content. It refuses nothing, and accepts that linked
    aggregates are gone."""

    @property
    def ignore_missing_links(self) -> bool:
        return True


class Redactor:
    """Finds and erases the selected events, a batch at a time."""

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
        """The time when this process last erased derived data, by redaction that waits for consumers."""

    @cached_property
    def _topics(self) -> list[str]:
        """The topics of the events whose content may be erased."""
        return [topic for topic in self._mapper.catalogue.personal_topics() if topic.partition(".")[0] not in PROTECTED_KINDS]

    async def request(self, selection: RedactionSelection, parts: Sequence[Part], *, reason: str, cause: Cause) -> RedactionOrder:
        """Store a request for a redaction, and return it. Nothing is erased yet. The same request results in the same order."""
        key, through = cause.command_id, await head(self._database)
        values = (key, reason, list(parts), selection.text(), cause.actor, cause.correlation_id, through)
        await self._database.execute(_REQUEST, values)
        order = await self.find(key)
        assert order is not None, "it was inserted"
        return order

    async def check(self, stream: str, parts: Sequence[Part]) -> None:
        """Raise `NotFound` if the stream does not exist, and `Conflict` if its content is needed for work in progress."""
        root = await self._streams.load(stream)
        kind, key = StreamName.read(stream)
        if root is None:
            raise NotFound(kind, key)
        if Part.CONTENT in parts and root.in_progress():
            raise Conflict(f"the {kind.replace('_', ' ')} {key} is in use: its content can be erased when its work has ended")

    async def find(self, key: UUID) -> RedactionOrder | None:
        row = await self._database.row(_ORDER + "WHERE id = %s", (key,))
        return None if row is None else RedactionOrder.of(row)

    async def unfinished(self) -> list[RedactionOrder]:
        """Return the unfinished redactions, the oldest first."""
        rows = await self._database.rows(_ORDER + "WHERE finished_at IS NULL ORDER BY requested_at LIMIT 10")
        return [RedactionOrder.of(row) for row in rows]

    async def count(self, selection: RedactionSelection, parts: Sequence[Part]) -> tuple[int, int]:
        """Return the number of events that would lose a part, and of streams that would lose content."""
        after, through, events, streams = 0, await head(self._database), 0, set[str]()
        while after < through:
            matches, after = await self._next(selection, parts, after=after, through=through)
            events += len(matches)
            streams |= {match.stream for match in matches if match.content}
        return events, len(streams)

    async def step(self, order: RedactionOrder) -> RedactionOrder:
        """Continue the redaction with one batch of events, or with their derived data, and return its state afterwards."""
        if order.reached < order.through:
            await self._erase_next(order)
        elif order.finished_at is None:
            await self._clean(order)
        updated = await self.find(order.id)
        assert updated is not None, "redactions are not deleted"
        return updated

    async def _erase_next(self, order: RedactionOrder) -> None:
        assert order.selection is not None, "the selection is deleted only at the end"
        for remaining in reversed(range(_TRIES)):
            matches, reached = await self._next(order.selection, order.parts, after=order.reached, through=order.through)
            try:
                erased, streams = await self._erase(order, matches)
                break
            except (ConcurrencyConflict, ClaimTaken, LinkBroken):
                if not remaining:
                    raise
        await self._database.execute(_REACHED, (reached, erased, streams, len(matches) - erased, order.id))

    async def _next(
        self, selection: RedactionSelection, parts: Sequence[Part], *, after: int, through: int
    ) -> tuple[list[Match], int]:
        """Return the matches in the next part of the log, and the position up to which it was searched."""
        until = through if selection.actor is None else min(through, after + _SCANNED)
        events, chosen = selection.events()
        parameters = {
            **selection.parameters(),
            "topics": texts(self._topics),
            "content": Part.CONTENT in parts,
            "cause": Part.CAUSE in parts,
            "after": after,
            "until": until,
            "limit": _BATCH,
        }
        rows = await self._database.rows(_FOUND.format(events=events, chosen=chosen), parameters)
        matches = [Match(*row) for row in rows]
        return matches, matches[-1].position if len(matches) == _BATCH else until

    async def _erase(self, order: RedactionOrder, matches: Sequence[Match]) -> tuple[int, int]:
        """Append the redaction, and an event to each stream that loses content. Return the number of events that lost a part, and
        of streams that lost content.

        Raise `ConcurrencyConflict` if another process has erased them in the meantime.
        """
        decisions, key, at = [], new_id(), self._clock()
        in_progress: set[str] = set()
        for stream in sorted({match.stream for match in matches if match.content}):
            positions = {match.position for match in matches if match.content and match.stream == stream}
            decision = await self._decision(stream, positions, redaction=key, at=at)
            if decision is None:
                in_progress.add(stream)
            else:
                decisions.append(decision)
        contents = [match.position for match in matches if match.content and match.stream not in in_progress]
        causes = [match.position for match in matches if match.cause]
        if not contents and not causes:
            return 0, 0
        roots = [
            Redaction.record(
                _key_of_causes(positions_of_part) if part is Part.CAUSE else key,
                reason=order.reason,
                parts=[part],
                positions=positions_of_part,
                at=at,
            )
            for part, positions_of_part in ((Part.CONTENT, contents), (Part.CAUSE, causes))
            if positions_of_part
        ]
        cause = Cause.by(order.requested_by, correlation_id=order.correlation_id)
        append = self._write_sets.of([*map(_redaction_decision, roots), *decisions], cause)
        append.redacts = True
        await self._appender.append(append)
        return len({*contents, *causes}), len(decisions)

    async def _decision(self, stream: str, positions: set[int], *, redaction: UUID, at: datetime) -> Decision | None:
        """Return the decision that records the redaction in a stream, folded without the content at these positions. Return None
        while its work is in progress.

        Raise `ConcurrencyConflict` if the content is gone already.
        """
        before: AggregateRoot | None = None
        root: AggregateRoot | None = None
        for position, version, topic, state, emptied in await self._database.rows(_HISTORY + " ORDER BY version", (stream,)):
            if position in positions and state == emptied:
                raise ConcurrencyConflict(stream)
            taken = emptied if position in positions else state
            root = self._streams.apply(root, stream=stream, version=version, topic=topic, state=taken)
            before = self._streams.apply(before, stream=stream, version=version, topic=topic, state=state)
        assert root is not None, "a stream with positions has events"
        assert before is not None, "it has the same events as the root"
        if before.in_progress():
            return None
        references = before.references()
        kind, key = StreamName.read(stream)
        root.trigger_redacted(self._mapper.catalogue.redacted(kind), redaction=redaction, at=at)
        return Decision(_RedactionNotice(key), root, _pending(root), None, references)

    async def _clean(self, order: RedactionOrder) -> None:
        """Erase derived data. The redaction is finished once all consumers have passed it, since they then derive nothing from the
        erased content any more."""
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
    """Return the id of a redaction of causes. It is the same in two processes that erase the same causes, so that the log accepts
    only one of them. For content the version of its stream decides."""
    return uuid5(_CAUSES, str(positions[0]))


def _redaction_decision(root: Redaction) -> Decision:
    return Decision(_RedactionNotice(root.key), root, _pending(root), None, NO_REFERENCES)


def _pending(root: AggregateRoot) -> Sequence[DomainEvent]:
    return cast("Sequence[DomainEvent]", root.collect_events())
