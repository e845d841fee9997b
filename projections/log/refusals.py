"""Finds the commands of a batch that the log refuses, so that the others can be written in one commit.

An append of many commands is one statement, and PostgreSQL refuses a statement as a whole. One query then finds the reasons: which
expected versions exist already, which claims and idempotency keys are taken, which links would lead nowhere. All of this was
committed before, so a refusal is right whatever happens concurrently. A race that is lost after the query makes the next append
fail, and the next query finds it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, LinkBroken
from domain.kernel.idempotency import IdempotencyKeyUsed
from projections.kernel.database.arrays import PackedArray, bigints, texts
from projections.log.statement import WriteSet

Ask = Callable[[str, Sequence[Any]], Awaitable[Sequence[Sequence[Any]]]]

# A row of a part consists of (which part, which of its questions, position and id of an event, owner of a link).
_VERSIONS = """
SELECT 0, v.number, e.position, e.event_id, NULL::text
FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY AS v(stream, version, number)
JOIN stream_versions s ON s.stream = stream_key(v.stream) AND s.version = v.version
JOIN events e ON e.position = s.position
"""
_KEYS = """
SELECT 1, k.number, NULL, NULL, NULL FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS k(client, key, number)
JOIN idempotency_keys USING (client, key)
"""
_CLAIMS = """
SELECT 2, c.number, NULL, NULL, NULL
FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS c(scope, value, releasing, number)
JOIN unique_claims u USING (scope, value) WHERE u.owner IS DISTINCT FROM c.releasing
"""
_TARGETS = """
SELECT 3, t.number, NULL, NULL, NULL FROM unnest(%s::text[]) WITH ORDINALITY AS t(stream, number)
WHERE NOT EXISTS (SELECT FROM link_targets WHERE link_targets.stream = t.stream)
"""
_LINKED = """
SELECT 4, t.number, NULL, NULL, l.owner FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY AS t(stream, most, number)
CROSS JOIN LATERAL (SELECT owner FROM links WHERE links.target = t.stream LIMIT t.most) AS l
"""
_PARTS: Sequence[tuple[str, Sequence[Callable[[Sequence[Any]], PackedArray]]]] = (
    (_VERSIONS, (texts, bigints)),
    (_KEYS, (texts, texts)),
    (_CLAIMS, (texts, texts, texts)),
    (_TARGETS, (texts,)),
    (_LINKED, (texts, bigints)),
)


@dataclass(slots=True)
class _Facts:
    """The findings about one command. `written` is the position of its last event, if the log has that very event."""

    written: int | None = None
    version: bool = False
    key: bool = False
    claim: bool = False
    link: bool = False


@dataclass(slots=True)
class _Questions:
    """The questions of one part: their parameters, column by column, and the number of the command that each is about."""

    commands: list[int] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, command: int, *row: Any) -> None:
        self.commands.append(command)
        self.rows.append(row)


async def refusals(ask: Ask, appends: Sequence[WriteSet]) -> dict[int, Exception | int]:
    """Return, by index in `appends`, the error of each command that the log refuses, or the position of a command that is already
    in the log.

    The commands must be independent of each other.
    """
    facts = [_Facts() for _ in appends]
    parts = _parts(appends)
    asked = [number for number, part in enumerate(parts) if part.rows]
    parameters = [
        pack(column)
        for number in asked
        for pack, column in zip(_PARTS[number][1], zip(*parts[number].rows, strict=True), strict=True)
    ]
    text = " UNION ALL ".join(_PARTS[number][0] for number in asked)
    for number, question, position, event_id, owner in await ask(text, parameters):
        command = parts[number].commands[question - 1]
        command_facts, append = facts[command], appends[command]
        if number == 0:
            command_facts.version = True
            if event_id == append.events[-1].event_id:
                command_facts.written = position
        elif number == 1:
            command_facts.key = True
        elif number == 2:
            command_facts.claim = True
        elif number == 3 or all(link.owner != owner for link in append.unlinked):
            command_facts.link = True
    verdicts = {
        number: _verdict(append, command_facts) for number, (append, command_facts) in enumerate(zip(appends, facts, strict=True))
    }
    return {number: verdict for number, verdict in verdicts.items() if verdict is not None}


def _parts(appends: Sequence[WriteSet]) -> tuple[_Questions, ...]:
    versions, keys, claims, targets, linked = (_Questions() for _ in _PARTS)
    for number, append in enumerate(appends):
        for event in append.events:
            versions.add(number, event.stream, event.version)
        if append.idempotency is not None:
            keys.add(number, append.idempotency.of.client, append.idempotency.of.key)
        releasing = {(claim.scope, claim.value): claim.owner for claim in append.releases}
        for claim in append.claims:
            claims.add(number, claim.scope, claim.value, releasing.get((claim.scope, claim.value)))
        for link in append.linked:
            if link.required and link.target not in append.now_linkable:
                targets.add(number, link.target)
        for stream in append.no_longer_linkable:
            linked.add(number, stream, len(append.unlinked) + 1)
    return versions, keys, claims, targets, linked


def _verdict(append: WriteSet, facts: _Facts) -> Exception | int | None:
    if facts.written is not None:
        return facts.written
    if facts.version:
        return ConcurrencyConflict(append.events[0].stream)
    if facts.key and append.idempotency is not None:
        return IdempotencyKeyUsed(append.idempotency.of.client, append.idempotency.of.key)
    if facts.claim:
        return ClaimTaken(append.claims)
    return LinkBroken(append.no_longer_linkable) if facts.link else None


def independent(appends: Sequence[WriteSet]) -> Iterator[bool]:
    """Yield for each command True if it is independent of all commands before it. If not, it can be judged only after them."""
    changed: set[tuple[Any, ...]] = set()
    used: set[tuple[Any, ...]] = set()
    for append in appends:
        changes = {*_changes(append)}
        uses = {("target", link.target) for link in (*append.linked, *append.unlinked)} - changes
        yield changes.isdisjoint(changed) and changes.isdisjoint(used) and uses.isdisjoint(changed)
        changed |= changes
        used |= uses


def _changes(append: WriteSet) -> Iterator[tuple[Any, ...]]:
    for event in append.events:
        yield "event", event.stream, event.version
    for claim in (*append.claims, *append.releases):
        yield "claim", claim.scope, claim.value
    for stream in (*append.now_linkable, *append.no_longer_linkable):
        yield "target", stream
    if append.idempotency is not None:
        yield "key", append.idempotency.of.client, append.idempotency.of.key
