"""The append as one SQL statement: a CTE that takes the head row and writes the events, and one for everything that goes along."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from domain.kernel.aggregate import Claim
from domain.kernel.answers import RecordedAnswer
from domain.kernel.sealed import Sealed
from projections.kernel.arrays import bigints, booleans, byte_strings, texts, uuids
from projections.kernel.view import View
from projections.log.leaf import leaf


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as the log stores it; `leaf` is what the hash chain takes of it."""

    stream: str
    version: int
    topic: str
    event_id: UUID
    state: bytes
    metadata: str
    leaf: bytes

    @classmethod
    def of(cls, *, stream: str, version: int, topic: str, event_id: UUID, state: bytes, metadata: str) -> EventRow:
        mark = leaf(stream=stream, version=version, topic=topic, event_id=event_id, metadata=metadata.encode(), state=state)
        return cls(stream, version, topic, event_id, state, metadata, mark)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """`owner` points at `target`, both streams. One that is not `required` is left out when its target is gone."""

    owner: str
    target: str
    required: bool = True


@dataclass(slots=True)
class Append:
    """What one command writes, all or nothing: events, view rows, and what its aggregates take hold of or let go."""

    events: Sequence[EventRow]
    rows: list[tuple[View, tuple[Any, ...]]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    releases: list[Claim] = field(default_factory=list)
    stood: list[str] = field(default_factory=list)
    fell: list[str] = field(default_factory=list)
    linked: list[LinkRow] = field(default_factory=list)
    unlinked: list[LinkRow] = field(default_factory=list)
    sealed: list[Sealed] = field(default_factory=list)
    erased: list[UUID] = field(default_factory=list)
    answer: RecordedAnswer | None = None


Part = tuple[str, list[Any]]

_APPENDED = (
    "appended AS MATERIALIZED (SELECT * FROM log_append(%s::text[], %s::bigint[], %s::text[], %s::uuid[], "
    "%s::bytea[], %s::text[], %s::bytea[]))"
)
_RELEASED = (
    "released AS (DELETE FROM claims USING appended, unnest(%s::text[], %s::text[], %s::text[]) AS r(scope, value, owner) "
    "WHERE claims.scope = r.scope AND claims.value = r.value AND claims.owner = r.owner RETURNING 1)"
)
_CLAIMED = (
    "claimed AS (INSERT INTO claims (scope, value, owner) "
    "SELECT c.* FROM appended, {first}unnest(%s::text[], %s::text[], %s::text[]) AS c(scope, value, owner))"
)
# PostgreSQL runs the parts of a statement in an order of its own; a claim on what is freed beside it has to ask for that first.
_FREED = "(SELECT count(*) FROM released) AS freed, "
# A foreign key between links and what stands is checked when the whole statement is done, so the order of these does not matter.
_STOOD = "stood AS (INSERT INTO standing (stream) SELECT s.stream FROM appended, unnest(%s::text[]) AS s(stream))"
_FELL = "fell AS (DELETE FROM standing USING appended, unnest(%s::text[]) AS f(stream) WHERE standing.stream = f.stream)"
_LINKED = (
    "linked AS (INSERT INTO links (owner, target) SELECT l.owner, l.target "
    "FROM appended, unnest(%s::text[], %s::text[], %s::boolean[]) AS l(owner, target, required) "
    "WHERE l.required OR EXISTS (SELECT FROM standing s WHERE s.stream = l.target))"
)
_UNLINKED = (
    "unlinked AS (DELETE FROM links USING appended, unnest(%s::text[], %s::text[]) AS u(owner, target) "
    "WHERE links.owner = u.owner AND links.target = u.target)"
)
_SEALED = (
    "sealed AS (INSERT INTO vault (reference, owner, key_id, fingerprint, nonce, box) SELECT s.* FROM appended, "
    "unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[]) "
    "AS s(reference, owner, key_id, fingerprint, nonce, box))"
)
_ERASED = "erased AS (DELETE FROM vault USING appended, unnest(%s::uuid[]) AS e(reference) WHERE vault.reference = e.reference)"
_ANSWERED = (
    "answered AS (INSERT INTO answers (client, key, fingerprint, status, headers, body) "
    "SELECT a.client, a.key, a.fingerprint, a.status, a.headers::json, a.body FROM appended, "
    "unnest(%s::text[], %s::text[], %s::bytea[], %s::bigint[], %s::text[], %s::bytea[]) "
    "AS a(client, key, fingerprint, status, headers, body))"
)


def statement(appends: Sequence[Append]) -> tuple[str, list[Any]]:
    """The SQL and its parameters. The text depends only on which parts are there, so few statements are ever prepared."""
    parts = [_appended([event for append in appends for event in append.events])]
    if releases := [claim for append in appends for claim in append.releases]:
        parts.append((_RELEASED, _claims(releases)))
    if claims := [claim for append in appends for claim in append.claims]:
        parts.append((_CLAIMED.format(first=_FREED if releases else ""), _claims(claims)))
    parts += _holdings(appends)
    if answers := [append.answer for append in appends if append.answer is not None]:
        parts.append((_ANSWERED, _answers(answers)))
    parts += _views(row for append in appends for row in append.rows)
    text = "WITH " + ", ".join(sql for sql, _ in parts) + " SELECT last_position, recorded FROM appended"
    return text, [parameter for _, parameters in parts for parameter in parameters]


def _appended(events: Sequence[EventRow]) -> Part:
    return _APPENDED, [
        texts([event.stream for event in events]),
        bigints([event.version for event in events]),
        texts([event.topic for event in events]),
        uuids([event.event_id for event in events]),
        byte_strings([event.state for event in events]),
        texts([event.metadata for event in events]),
        byte_strings([event.leaf for event in events]),
    ]


def _claims(claims: Sequence[Claim]) -> list[Any]:
    return [texts([c.scope for c in claims]), texts([c.value for c in claims]), texts([c.owner for c in claims])]


def _holdings(appends: Sequence[Append]) -> Iterable[Part]:
    """What comes to stand or falls, links that are made or cut, secrets that are kept or erased: rare, so mostly nothing."""
    if stood := [stream for append in appends for stream in append.stood]:
        yield _STOOD, [texts(stood)]
    if fell := [stream for append in appends for stream in append.fell]:
        yield _FELL, [texts(fell)]
    if linked := [link for append in appends for link in append.linked]:
        yield _LINKED, [*_ends(linked), booleans([link.required for link in linked])]
    if unlinked := [link for append in appends for link in append.unlinked]:
        yield _UNLINKED, _ends(unlinked)
    if sealed := [secret for append in appends for secret in append.sealed]:
        yield (
            _SEALED,
            [
                uuids([secret.reference for secret in sealed]),
                texts([secret.owner for secret in sealed]),
                texts([secret.key_id for secret in sealed]),
                texts([secret.fingerprint for secret in sealed]),
                byte_strings([secret.nonce for secret in sealed]),
                byte_strings([secret.box for secret in sealed]),
            ],
        )
    if erased := [reference for append in appends for reference in append.erased]:
        yield _ERASED, [uuids(erased)]


def _ends(links: Sequence[LinkRow]) -> list[Any]:
    return [texts([link.owner for link in links]), texts([link.target for link in links])]


def _answers(answers: Sequence[RecordedAnswer]) -> list[Any]:
    return [
        texts([answer.client for answer in answers]),
        texts([answer.key for answer in answers]),
        byte_strings([answer.fingerprint for answer in answers]),
        bigints([answer.status for answer in answers]),
        texts([json.dumps(answer.headers) for answer in answers]),
        byte_strings([answer.body for answer in answers]),
    ]


def _views(rows: Iterable[tuple[View, tuple[Any, ...]]]) -> list[Part]:
    by_view: dict[str, tuple[View, list[tuple[Any, ...]]]] = {}
    for view, row in rows:
        by_view.setdefault(view.name, (view, []))[1].append(row)
    return [(f"{name}_rows AS ({view.upsert_appended})", view.pack(values)) for name, (view, values) in sorted(by_view.items())]
