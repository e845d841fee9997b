"""Ports of the use cases: what a handler needs from the outside, as Protocols. Adapters and in-memory twins implement them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Self, TypeVar, cast, overload
from uuid import UUID

from domain.kernel.aggregate import AggregateRoot
from domain.kernel.cause import ActorKind, Cause
from domain.kernel.command import Command
from domain.kernel.encryption import EncryptedSecret
from domain.kernel.errors import PreconditionFailed
from domain.kernel.idempotency import IdempotencyKey

R = TypeVar("R", bound=AggregateRoot)
R_co = TypeVar("R_co", bound=AggregateRoot, covariant=True)


@dataclass(frozen=True, slots=True)
class Invocation:
    """On whose behalf commands are executed, and under which conditions.

    `if_match` holds the versions that the caller accepts (`If-Match`); None accepts any. `idempotency` is written in the same
    transaction as the events."""

    cause: Cause
    if_match: frozenset[int] | None = None
    idempotency: IdempotencyKey | None = None

    @classmethod
    def by(
        cls,
        actor: str,
        *,
        correlation_id: str | None = None,
        causation_id: UUID | None = None,
        kind: ActorKind | None = None,
    ) -> Self:
        """Without conditions: for workers and the command line."""
        return cls(Cause.by(actor, correlation_id=correlation_id, causation_id=causation_id, kind=kind))

    def at_any_version(self) -> Self:
        """For a unit of work on several aggregates, to which a single version cannot refer."""
        return replace(self, if_match=None)

    def check_version(self, current: int) -> None:
        """For what is done or refused before an append, such as a call to the target of a publication. Raises
        `PreconditionFailed`."""
        if self.if_match is not None and current not in self.if_match:
            raise PreconditionFailed(current)


@dataclass(frozen=True, slots=True)
class Plan:
    """A unit of work: commands on as many aggregates, executed in this order, all or nothing.

    The last command is the one that the caller asked for; `If-Match` is compared with its aggregate. `result` goes into the
    outcome and is stored with the idempotency key: small, JSON, never a secret."""

    commands: Sequence[Command[Any]]
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R_co]):
    """The result of a use case; responses are made from it.

    A repeated request gets the outcome of the first one: `as_of` is then the log position of that time, the aggregates are those
    of that position, and `secrets` is empty."""

    aggregates: Sequence[Any] = ()
    """In the order of the commands."""
    result: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Shown in the first response and never again. Not stored."""
    position: int | None = None
    """The position of the last event that was appended; None when nothing changed."""
    before: int | None = None
    """The position before the first of these events: as of it, what a deletion took along can still be read."""
    previous: Sequence[Any] = ()
    """The aggregates as they were before, None for new ones. Empty in a repeat."""
    as_of: int | None = None
    recorded: bool = False
    """Whether the idempotency key is stored already."""

    @property
    def aggregate(self) -> R_co:
        """Of the last command: what the caller asked for."""
        return cast("R_co", self.aggregates[-1])


class Executor(Protocol):
    """Executes commands: load, compare `If-Match`, decide, append."""

    @overload
    async def execute(self, wanted: Command[R], *, invocation: Invocation) -> Outcome[R]: ...

    @overload
    async def execute(self, wanted: Callable[[], Awaitable[Plan]], *, invocation: Invocation) -> Outcome[Any]: ...

    async def execute(self, wanted: Any, *, invocation: Invocation) -> Outcome[Any]:
        """A function that gives a plan is called again for every try: it may look at other records.

        Raises what a command refuses with; `PreconditionFailed`; `InUse` where something that is linked to would go; `Conflict`
        after lost races (at once, where another try would end the same); `Unavailable`."""
        ...


class Vault(Protocol):
    """Encrypts secrets that go along with a command, and decrypts stored ones."""

    def encrypt(self, secret: str, *, owner: str) -> EncryptedSecret:
        """`owner` is the stream of the aggregate that the secret belongs to."""
        ...

    def decrypt(self, secret: EncryptedSecret) -> str:
        """Raises `DecryptionFailed`."""
        ...

    async def read(self, reference: UUID, *, owner: str) -> str | None:
        """A stored secret in plain text; None when it was erased. Raises `DecryptionFailed`, also for that of another owner."""
        ...


class ServiceNotes(Protocol):
    """Entries that the service itself makes in the log store, about one aggregate."""

    async def warn(self, message: str, *, subject: str) -> None:
        """Never fails: the change that the entry is about is made already."""
        ...
