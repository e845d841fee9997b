"""The append as one SQL statement: a CTE that takes the log's lock and writes the events, and one CTE for each other table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from domain.kernel.aggregate import Claim
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.idempotency import IdempotencyRecord
from domain.kernel.ids import random_16
from projections.kernel.database.arrays import bigints, booleans, byte_strings, records, texts, uuids
from projections.kernel.schema.view import View, ViewRow
from projections.log.event_record import event_record
from projections.log.hash_chain import leaf, root


class LogRow(NamedTuple):
    """An event to append. `record` holds everything that the log stores of it; `leaf` is its hash in the tree of its commit."""

    stream: str
    version: int
    event_id: UUID
    record: bytes
    leaf: bytes

    @classmethod
    def of(cls, *, stream: str, version: int, topic: str, event_id: UUID, state: bytes, metadata: str) -> LogRow:
        salt = random_16()
        record = event_record(
            stream=stream, version=version, topic=topic, event_id=event_id, state=state, metadata=metadata, salt=salt
        )
        mark = leaf(stream=stream, version=version, topic=topic, event_id=event_id, metadata=metadata, state=state, salt=salt)
        return cls(stream, version, event_id, record, mark)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link from the stream `owner` to the stream `target`. A link that is not `required` is omitted if its target was deleted."""

    owner: str
    target: str
    required: bool = True


@dataclass(slots=True)
class WriteSet:
    """The writes of one unit of work, all or nothing: events, view rows, and the changes of claims, links and secrets."""

    events: Sequence[LogRow]
    rows: list[ViewRow] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    releases: list[Claim] = field(default_factory=list)
    now_linkable: list[str] = field(default_factory=list)
    no_longer_linkable: list[str] = field(default_factory=list)
    linked: list[LinkRow] = field(default_factory=list)
    unlinked: list[LinkRow] = field(default_factory=list)
    sealed: list[EncryptedSecret] = field(default_factory=list)
    erased: list[UUID] = field(default_factory=list)
    idempotency: IdempotencyRecord | None = None
    redacts: bool = False
    """True if its `log.redacted` events erase the content that they name."""
    timeline: int | None = None
    """The timeline of the primary on which it was decided; None if nothing was read before."""

    @property
    def size(self) -> int:
        """The approximate size in bytes, without parts that are small and limited elsewhere."""
        events = sum([len(event.record) for event in self.events])
        return events + sum([len(value) for row in self.rows for value in row.values if type(value) is str or type(value) is bytes])


Part = tuple[str, list[Any]]

_APPENDED = "appended AS MATERIALIZED (SELECT * FROM {function}(%s::appended_event[], %s::bytea))"
_RELEASED = (
    "released AS (DELETE FROM unique_claims USING appended, unnest(%s::text[], %s::text[], %s::text[]) AS r(scope, value, owner) "
    "WHERE unique_claims.scope = r.scope AND unique_claims.value = r.value AND unique_claims.owner = r.owner RETURNING 1)"
)
_CLAIMED = (
    "claimed AS (INSERT INTO unique_claims (scope, value, owner) "
    "SELECT c.* FROM appended, {first}unnest(%s::text[], %s::text[], %s::text[]) AS c(scope, value, owner))"
)
# PostgreSQL chooses the order of the parts of a statement; a claim on a value that another part frees must refer to that part.
_FREED = "(SELECT count(*) FROM released) AS freed, "
# The foreign key of links is checked at the end of the statement, so the order of these parts does not matter.
_STOOD = "stood AS (INSERT INTO link_targets (stream) SELECT s.stream FROM appended, unnest(%s::text[]) AS s(stream))"
_FELL = "fell AS (DELETE FROM link_targets USING appended, unnest(%s::text[]) AS f(stream) WHERE link_targets.stream = f.stream)"
_LINKED = (
    "linked AS (INSERT INTO links (owner, target) SELECT l.owner, l.target "
    "FROM appended, unnest(%s::text[], %s::text[], %s::boolean[]) AS l(owner, target, required) "
    "WHERE l.required OR EXISTS (SELECT FROM link_targets s WHERE s.stream = l.target))"
)
_UNLINKED = (
    "unlinked AS (DELETE FROM links USING appended, unnest(%s::text[], %s::text[]) AS u(owner, target) "
    "WHERE links.owner = u.owner AND links.target = u.target)"
)
_SEALED = (
    "sealed AS (INSERT INTO vault (reference, owner, key_id, fingerprint, nonce, ciphertext) SELECT s.* FROM appended, "
    "unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[]) "
    "AS s(reference, owner, key_id, fingerprint, nonce, ciphertext))"
)
_ERASED = "erased AS (DELETE FROM vault USING appended, unnest(%s::uuid[]) AS e(reference) WHERE vault.reference = e.reference)"
# A batch holds several commands. `later` is the number of events that it has after those of the command itself.
_KEYS_USED = (
    "keys_used AS (INSERT INTO idempotency_keys (client, key, fingerprint, status, base_url, streams, result, position) "
    "SELECT k.client, k.key, k.fingerprint, k.status, k.base_url, string_to_array(k.streams, E'\\n'), k.result::jsonb, "
    "appended.last_position - k.later FROM appended, "
    "unnest(%s::text[], %s::text[], %s::bytea[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::bigint[]) "
    "AS k(client, key, fingerprint, status, base_url, streams, result, later))"
)


def statement(appends: Sequence[WriteSet]) -> tuple[str, list[Any]]:
    """Return the SQL text and its parameters. The text depends only on which parts are present, so few statements are prepared."""
    redacts = any(append.redacts for append in appends)
    parts = [_append_part([event for append in appends for event in append.events], redacts=redacts)]
    if releases := [claim for append in appends for claim in append.releases]:
        parts.append((_RELEASED, _claims(releases)))
    if claims := [claim for append in appends for claim in append.claims]:
        parts.append((_CLAIMED.format(first=_FREED if releases else ""), _claims(claims)))
    parts += _reference_parts(appends)
    parts += _key_parts(appends)
    parts += _views(row for append in appends for row in append.rows)
    text = "WITH " + ", ".join(sql for sql, _ in parts) + " SELECT last_position, ahead FROM appended"
    return text, [parameter for _, parameters in parts for parameter in parameters]


def _append_part(events: Sequence[LogRow], *, redacts: bool) -> Part:
    return _APPENDED.format(function="log_redact" if redacts else "log_append"), [
        records([event.record for event in events]),
        root([event.leaf for event in events]),
    ]


def _claims(claims: Sequence[Claim]) -> list[Any]:
    return [texts([c.scope for c in claims]), texts([c.value for c in claims]), texts([c.owner for c in claims])]


def _reference_parts(appends: Sequence[WriteSet]) -> Iterable[Part]:
    """Yield the parts for link targets that are added or removed, links that are made or cut, and secrets that are stored or
    erased. These are rare, so mostly there are none."""
    if now_linkable := [stream for append in appends for stream in append.now_linkable]:
        yield _STOOD, [texts(now_linkable)]
    if no_longer_linkable := [stream for append in appends for stream in append.no_longer_linkable]:
        yield _FELL, [texts(no_longer_linkable)]
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
                byte_strings([secret.ciphertext for secret in sealed]),
            ],
        )
    if erased := [reference for append in appends for reference in append.erased]:
        yield _ERASED, [uuids(erased)]


def _ends(links: Sequence[LinkRow]) -> list[Any]:
    return [texts([link.owner for link in links]), texts([link.target for link in links])]


def _key_parts(appends: Sequence[WriteSet]) -> Iterable[Part]:
    records: list[IdempotencyRecord] = []
    later: list[int] = []
    remaining = sum(len(append.events) for append in appends)
    for append in appends:
        remaining -= len(append.events)
        if append.idempotency is not None:
            records.append(append.idempotency)
            later.append(remaining)
    if records:
        yield _KEYS_USED, [*_record_columns(records), bigints(later)]


def _record_columns(records: Sequence[IdempotencyRecord]) -> list[Any]:
    return [
        texts([record.of.client for record in records]),
        texts([record.of.key for record in records]),
        byte_strings([record.of.fingerprint for record in records]),
        bigints([record.of.status for record in records]),
        texts([record.of.base_url for record in records]),
        texts(["\n".join(record.streams) for record in records]),
        texts([json.dumps(record.result) for record in records]),
    ]


def _views(rows: Iterable[ViewRow]) -> Iterable[Part]:
    written: dict[tuple[str, int], tuple[View[Any], list[tuple[Any, ...]]]] = {}
    changed: dict[tuple[str, int], tuple[View[Any], list[tuple[Any, ...]]]] = {}
    for view, values, update in rows:
        (changed if update else written).setdefault((view.name, view.version), (view, []))[1].append(values)
    for (name, version), (view, view_rows) in sorted(written.items(), key=itemgetter(0)):
        yield f"{name}_{version}_rows AS ({view.upsert_appended})", view.pack(view_rows)
    for (name, version), (view, view_rows) in sorted(changed.items(), key=itemgetter(0)):
        yield f"{name}_{version}_changes AS ({view.update_appended})", view.pack_changes(view_rows)
