"""Twins in memory of the ports of handlers: the executor over a log of stored bytes, look-ups of records and Events, service
notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from domain.client.aggregate import Client
from domain.content_key.aggregate import ContentKey
from domain.content_key.ports import StoredKey
from domain.event.aggregate import MediaEvent
from domain.event.ports import EventRow
from domain.event.values import EventDetails
from domain.kernel.aggregate import AggregateRoot, Claim
from domain.kernel.command import Command
from domain.kernel.decision import Decision, decide
from domain.kernel.encryption import NONCE_BYTES, EncryptedSecret, SecretCipher
from domain.kernel.errors import ClaimTaken, ConcurrencyConflict, InUse, LinkBroken, PlanOutdated
from domain.kernel.event import DomainEvent
from domain.kernel.idempotency import IdempotencyKeyUsed, IdempotencyRecord
from domain.kernel.ports import Invocation, Link, Outcome, Plan
from domain.record.kinds.custom_property import CustomProperty, P
from domain.record.ports import HasName, PropertyFilter, RecordRow
from domain.record.record import D, Record
from tests.domain.scenario import NOW, Fact, facts_of, folded

R = TypeVar("R", bound=AggregateRoot)
_TRIES = 4


@dataclass(frozen=True)
class Appended:
    """An event in the log, with who caused it."""

    position: int
    event: DomainEvent
    actor: str


class MemoryLog:
    """Events in order, and what the append keeps beside them: claims, link targets, links, idempotency keys."""

    def __init__(self) -> None:
        self.entries: list[Appended] = []
        self._of_stream: defaultdict[str, list[Appended]] = defaultdict(list)
        self.claims: dict[tuple[str, str], str] = {}
        self.linkable: set[str] = set()
        self.links: set[tuple[str, str]] = set()
        self.keys: dict[tuple[str, str], IdempotencyRecord] = {}
        self.vault: dict[UUID, EncryptedSecret] = {}

    @property
    def head(self) -> int:
        return len(self.entries)

    def load(self, stream: str, *, as_of: int | None = None) -> AggregateRoot | None:
        entries = self._of_stream.get(stream, ())
        return folded([entry.event for entry in entries if as_of is None or entry.position <= as_of])

    def all(self, kind: str) -> list[AggregateRoot]:
        loaded = (self.load(stream) for stream in self._of_stream if stream.partition(":")[0] == kind)
        return [root for root in loaded if root is not None]

    def append(self, decisions: Sequence[Decision], invocation: Invocation, *, record: IdempotencyRecord | None) -> int:
        """All or nothing, like the statement that it stands for."""
        before = (dict(self.claims), set(self.linkable), set(self.links))
        try:
            self._check(decisions, record)
        except Exception:
            self.claims, self.linkable, self.links = before
            raise
        for decision in decisions:
            after = decision.aggregate.references()
            self.vault |= {secret.reference: secret for secret in decision.command.sealed if secret.reference in after.secrets}
            for gone in decision.before.secrets - after.secrets:
                self.vault.pop(gone, None)
            appended = [Appended(self.head + at, event, invocation.cause.actor) for at, event in enumerate(decision.events, 1)]
            self.entries += appended
            self._of_stream[decision.aggregate.id] += appended
        if record is not None:
            self.keys[record.of.client, record.of.key] = IdempotencyRecord(record.of, record.streams, record.result, self.head)
        return self.head

    def _check(self, decisions: Sequence[Decision], record: IdempotencyRecord | None) -> None:
        versions = {decision.aggregate.id: decision.aggregate.version - len(decision.events) for decision in decisions}
        for stream, version in versions.items():
            if version != len(self._of_stream.get(stream, ())):
                raise ConcurrencyConflict(stream)
        if record is not None and (record.of.client, record.of.key) in self.keys:
            raise IdempotencyKeyUsed(record.of.client, record.of.key)
        self._check_claims(decisions)
        self._check_links(decisions)

    def _check_claims(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            for claim in decision.before.claims - decision.aggregate.references().claims:
                self.claims.pop((claim.scope, claim.value), None)
        taken: list[Claim] = []
        for decision in decisions:
            new = decision.aggregate.references().claims - decision.before.claims
            taken += [claim for claim in new if (claim.scope, claim.value) in self.claims]
            self.claims |= {(claim.scope, claim.value): claim.owner for claim in new}
        if taken:
            raise ClaimTaken(taken)

    def _check_links(self, decisions: Sequence[Decision]) -> None:
        gone: list[str] = []
        for decision in decisions:
            stream, before, after = decision.aggregate.id, decision.before, decision.aggregate.references()
            if after.linkable and not before.linkable:
                self.linkable.add(stream)
            elif before.linkable and not after.linkable:
                self.linkable.discard(stream)
                gone.append(stream)
        for decision in decisions:
            stream, before, after = decision.aggregate.id, decision.before, decision.aggregate.references()
            new = after.links - before.links
            if decision.command.ignore_missing_links:
                new &= self.linkable
            self.links |= {(stream, target) for target in new}
            self.links -= {(stream, target) for target in before.links - after.links}
        if any(target not in self.linkable for _, target in self.links):
            raise LinkBroken(gone)


class MemoryExecutor:
    """The twin of the executor over PostgreSQL: the same tries, the same errors."""

    def __init__(
        self, log: MemoryLog, clock: Callable[[], datetime], *, before: Callable[[], Awaitable[Any]] | None = None
    ) -> None:
        self._log = log
        self._clock = clock
        self.interruptions: list[Callable[[], Awaitable[Any]]] = []
        """Actions that are run between the next decisions and their appends, one for each attempt."""
        self.before_each = before

    async def execute(self, wanted: Any, *, invocation: Invocation) -> Outcome[Any]:
        fixed = Plan((wanted,)) if isinstance(wanted, Command) else None
        repeats = fixed is None or wanted.ignore_missing_links
        for remaining in reversed(range(_TRIES)):
            plan = fixed or await wanted()
            try:
                return await self._try(plan, invocation)
            except (ConcurrencyConflict, ClaimTaken, LinkBroken, PlanOutdated) as lost:
                if remaining and (repeats or isinstance(lost, ConcurrencyConflict)):
                    continue
                if isinstance(lost, LinkBroken) and (users := self._users_of(lost.no_longer_linkable)):
                    raise InUse(users) from None
                raise
        raise AssertionError("unreachable")

    async def _try(self, plan: Plan, invocation: Invocation) -> Outcome[Any]:
        if len({command.stream for command in plan.commands}) < len(plan.commands):
            raise ValueError("a plan has two commands for one aggregate")
        decisions = [
            decide(
                command,
                self._log.load(command.stream),
                if_match=invocation.if_match if command is plan.commands[-1] else None,
                at=self._clock(),
            )
            for command in plan.commands
        ]
        if self.interruptions:
            await self.interruptions.pop(0)()
        if self.before_each is not None:
            await self.before_each()
        aggregates, key, position = [decision.aggregate for decision in decisions], invocation.idempotency, None
        before = None
        if any(decision.events for decision in decisions):
            streams = [aggregate.id for aggregate in aggregates]
            record = IdempotencyRecord(key, streams, plan.result) if key is not None else None
            before = self._log.head
            position = self._log.append([made for made in decisions if made.events], invocation, record=record)
        return Outcome(
            aggregates,
            plan.result,
            position=position,
            before=before,
            previous=[decision.previous for decision in decisions],
            recorded=key is not None and position is not None,
        )

    def _users_of(self, gone: Sequence[str]) -> list[str]:
        users = sorted({owner for owner, target in self._log.links if target in gone and owner not in gone})
        return [f"{kind.replace('_', ' ')} {key}" for kind, _, key in (owner.partition(":") for owner in users)]


class MemoryRecords:
    """The twin of the look-ups over the record view."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def all(self, kind: type[Record[D]]) -> list[RecordRow[D]]:
        roots = self._log.all(kind.KIND)
        return [RecordRow.of(root) for root in roots if isinstance(root, kind) and not root.deleted]

    async def shown(self, links: Iterable[Link]) -> Mapping[Link, RecordRow[HasName]]:
        links = set(links)
        stored = (root for kind in {kind for kind, _ in links} for root in self._log.all(kind))
        rows = [RecordRow.of(root) for root in stored if isinstance(root, Record) and not root.deleted]
        return {row.link: row for row in rows if row.link in links}

    async def find(self, kind: type[Record[D]], key: object) -> RecordRow[D] | None:
        return next((row for row in self.all(kind) if row.id == str(key)), None)

    async def by_ids(self, kind: type[Record[D]], keys: Iterable[object]) -> Sequence[RecordRow[D]]:
        return [row for key in keys if (row := await self.find(kind, key)) is not None]

    async def look_up(
        self, links: Iterable[Link], *, names: Iterable[Link]
    ) -> tuple[Mapping[Link, RecordRow[HasName]], Mapping[Link, RecordRow[HasName]]]:
        names = set(names)
        stored = (root for kind in {kind for kind, _ in names} for root in self._log.all(kind))
        rows = [RecordRow.of(root) for root in stored if isinstance(root, Record) and not root.deleted]
        by_name = {(row.kind, getattr(row.details, "name", "")): row for row in rows}
        return await self.shown(links), {name: by_name[name] for name in names if name in by_name}

    async def named(self, kind: type[Record], names: Iterable[str]) -> Mapping[str, RecordRow[HasName]]:
        _, rows = await self.look_up((), names=[(kind.KIND, name) for name in names])
        return {name: row for (_, name), row in rows.items()}

    async def of_parent(self, kind: type[Record[D]], parent: object) -> Sequence[RecordRow[D]]:
        return [row for row in self.all(kind) if str(getattr(row.details, kind.PARENT)) == str(parent)]

    async def of_owners(self, kind: type[CustomProperty[P]], owners: Iterable[object]) -> Mapping[str, Sequence[RecordRow[P]]]:
        by_owner = {str(owner): await self.of_parent(kind, owner) for owner in owners}
        return {
            owner: sorted(rows, key=lambda row: (row.details.category, row.details.key)) for owner, rows in by_owner.items() if rows
        }


class MemoryProperties:
    """The twin of the look-ups over the view of custom properties."""

    def __init__(self, records: MemoryRecords) -> None:
        self.find = records.find
        self._records = records

    async def of_owner(self, kind: type[CustomProperty[P]], owner: object) -> Sequence[RecordRow[P]]:
        return (await self._records.of_owners(kind, [owner])).get(str(owner), ())

    async def matching(self, kind: type[CustomProperty[P]], wanted: PropertyFilter) -> Sequence[RecordRow[P]]:
        given = {name: value for name, value in vars(wanted).items() if value is not None}
        rows = self._records.all(kind)
        return [row for row in rows if all(str(getattr(row.details, name)) == value for name, value in given.items())]


class MemoryEvents:
    """The twin of the look-ups over the Event view."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def _rows(self) -> list[EventRow]:
        return [EventRow.of(root) for root in self._log.all("event") if isinstance(root, MediaEvent) and not root.deleted]

    async def by_id(self, key: UUID) -> EventRow | None:
        return next((row for row in self._rows() if row.id == key), None)

    async def existing(self, keys: Collection[UUID]) -> Collection[UUID]:
        return {row.id for row in self._rows() if row.id in keys}

    async def details_of(self, keys: Collection[UUID]) -> dict[UUID, EventDetails]:
        return {row.id: row.details for row in self._rows() if row.id in keys}

    async def protected(self, keys: Collection[UUID]) -> Collection[UUID]:
        return {row.id for row in self._rows() if row.id in keys and row.details.vod_drm}

    async def by_reference(self, reference_id: str) -> EventRow | None:
        matches = [row for row in self._rows() if row.details.ref_id == reference_id]
        return max(matches, key=lambda row: (row.date_created, row.id), default=None)

    async def on_air(self, channel_id: UUID) -> EventRow | None:
        return next((row for row in self._rows() if row.details.on_air_channel_id == channel_id), None)


class MemoryVault:
    """The twin of the vault. It really encrypts."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._cipher = SecretCipher(bytes(32))
        self._drawn = 0

    def encrypt(self, secret: str, *, owner: str) -> EncryptedSecret:
        self._drawn += 1
        nonce = self._drawn.to_bytes(NONCE_BYTES, "big")
        return self._cipher.encrypt(secret, owner=owner, reference=UUID(int=self._drawn), nonce=nonce)

    def decrypt(self, secret: EncryptedSecret) -> str:
        return self._cipher.decrypt(secret)

    async def read(self, reference: UUID, *, owner: str) -> str | None:
        stored = self._log.vault.get(reference)
        return None if stored is None else self._cipher.decrypt(replace(stored, owner=owner))


class MemoryContentKeys:
    """The twin of the look-ups over the content key view and the vault."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.lookups = 0

    async def stored(self, ids: Sequence[UUID]) -> Mapping[UUID, StoredKey]:
        self.lookups += 1
        keys = (root for root in self._log.all(ContentKey.KIND) if isinstance(root, ContentKey))
        return {UUID(key.key): self._stored(key) for key in keys if UUID(key.key) in ids}

    def _stored(self, key: ContentKey) -> StoredKey:
        secret = self._log.vault[key.sealed_key.reference]
        return StoredKey(key.purpose.content_id, key.purpose.kid, bytes.fromhex(key.iv), secret)


class MemoryAdmins:
    """The twin of the look-up of admins."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.locked = False
        self.invalidated = 0

    @asynccontextmanager
    async def admin_lock(self) -> AsyncIterator[None]:
        self.locked = True
        yield
        self.locked = False

    async def other_admins(self, name: str) -> bool:
        assert self.locked, "without the lock two admins could delete each other"
        clients = (root for root in self._log.all(Client.KIND) if isinstance(root, Client) and root.key != name)
        return any("admin" in client.roles and any(key.expires_at is None for key in client.keys) for client in clients)

    def invalidate(self) -> None:
        self.invalidated += 1


@dataclass
class MemoryNotes:
    """Notes by their subject."""

    written: list[tuple[str, str]] = field(default_factory=list)

    async def warn(self, message: str, *, subject: str) -> None:
        self.written.append((subject, message))


class Memory:
    """An in-memory log, and the ports over it."""

    def __init__(self) -> None:
        self.now = NOW
        self.log = MemoryLog()
        self.executor = MemoryExecutor(self.log, lambda: self.now)
        self.records = MemoryRecords(self.log)
        self.properties = MemoryProperties(self.records)
        self.events = MemoryEvents(self.log)
        self.vault = MemoryVault(self.log)
        self.content_keys = MemoryContentKeys(self.log)
        self.admins = MemoryAdmins(self.log)
        self.notes = MemoryNotes()

    def another(self, before: Callable[[], Awaitable[Any]] | None = None) -> MemoryExecutor:
        """Another executor on the same log. `before` happens between each of its decisions and the append."""
        return MemoryExecutor(self.log, lambda: self.now, before=before)

    async def given(self, *commands: Command[Any]) -> None:
        """Execute commands before the test. Their events do not count as happened."""
        for command in commands:
            await self.executor.execute(command, invocation=Invocation.by("somebody"))
        self._seen = self.log.head

    _seen = 0

    @property
    def happened(self) -> list[Fact]:
        """The events since what was given."""
        return facts_of([entry.event for entry in self.log.entries[self._seen :]])

    @property
    def topics(self) -> list[str]:
        return [entry.event.TOPIC for entry in self.log.entries[self._seen :]]

    async def load(self, stream: str) -> AggregateRoot | None:
        return self.log.load(stream)

    def meanwhile(self, *commands: Command[Any]) -> None:
        """Somebody else's commands, between the next decision and its append."""

        async def theirs() -> None:
            for command in commands:
                await self.another().execute(command, invocation=Invocation.by("somebody else"))

        self.executor.interruptions.append(theirs)

    def outcome(self, client: str, key: str) -> Outcome[Any]:
        """Return the outcome from which a repeat under an idempotency key is answered."""
        record = self.log.keys[client, key]
        aggregates = [self.log.load(stream, as_of=record.position) for stream in record.streams]
        return Outcome(aggregates, record.result, position=record.position, as_of=record.position, recorded=True)
