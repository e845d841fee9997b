"""Ports of the use cases: what a handler needs from outside the domain, as Protocols. Adapters and in-memory twins implement
them."""

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

Link = tuple[str, str]
"""A kind and an id."""


R = TypeVar("R", bound=AggregateRoot)
R_co = TypeVar("R_co", bound=AggregateRoot, covariant=True)


@dataclass(frozen=True, slots=True)
class Invocation:
    """The cause of commands, and the conditions under which they are executed.

    `if_match` holds the versions that the caller accepts (`If-Match`); None accepts any. `idempotency` is written in the same
    transaction as the events.
    """

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
        """Return an invocation without conditions, for workers and the command line."""
        return cls(Cause.by(actor, correlation_id=correlation_id, causation_id=causation_id, kind=kind))

    def at_any_version(self) -> Self:
        """Return this invocation without `If-Match`, for a unit of work on several aggregates, to which a single version cannot
        refer."""
        return replace(self, if_match=None)

    def check_version(self, current: int) -> None:
        """Raise `PreconditionFailed` if the caller does not accept the current version. Use this before an action that precedes the
        append, such as a call to the target of a publication."""
        if self.if_match is not None and current not in self.if_match:
            raise PreconditionFailed(current)


@dataclass(frozen=True, slots=True)
class Plan:
    """A unit of work: commands on as many aggregates, executed in this order, all or nothing.

    The last command is the one that the caller asked for; `If-Match` is compared with its aggregate. `result` is added to the
    outcome and stored with the idempotency key: it is small, JSON, and never contains a secret. `linked` has targets of links that
    the plan was made with.
    """

    commands: Sequence[Command[Any]]
    result: Mapping[str, Any] = field(default_factory=dict)
    linked: Mapping[Link, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R_co]):
    """The result of a use case, from which responses are made.

    A repeated request gets the outcome of the first one: `as_of` is then the log position of that time, the aggregates are those of
    that position, and `secrets` is empty.
    """

    aggregates: Sequence[Any] = ()
    """The aggregates in the order of the commands."""
    result: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets for the first response. They are never shown again and not stored."""
    position: int | None = None
    """The position of the last appended event; None if nothing changed."""
    before: int | None = None
    """The position before the first of these events. As of this position, everything that a deletion removed can still be read."""
    previous: Sequence[Any] = ()
    """The aggregates as they were before, None for new ones. Empty for a repeated request."""
    linked: Mapping[Link, Any] = field(default_factory=dict)
    """The records that the plan was made with, which a response need not read again. Empty for a repeated request."""
    rows: Sequence[Any] = ()
    """The rows of views that were written, from which a response can be made. Empty for a repeated request."""
    as_of: int | None = None
    recorded: bool = False
    """True if the idempotency key is already stored."""

    @property
    def aggregate(self) -> R_co:
        """The aggregate of the last command, which is the one that the caller asked for."""
        return cast("R_co", self.aggregates[-1])


class Executor(Protocol):
    """Executes commands: load, compare `If-Match`, decide, append."""

    @overload
    async def execute(self, wanted: Command[R], *, invocation: Invocation) -> Outcome[R]: ...

    @overload
    async def execute(self, wanted: Callable[[], Awaitable[Plan]], *, invocation: Invocation) -> Outcome[Any]: ...

    async def execute(self, wanted: Any, *, invocation: Invocation) -> Outcome[Any]:
        """Execute a command, or the plan that a function returns. The function is called again for every attempt, because it may
        read other records.

        Raises the refusals of the commands; `PreconditionFailed`; `InUse` if the target of a link would be deleted; `Conflict`
        after repeated concurrent changes (immediately, if another attempt would end the same way); `Unavailable`.
        """
        ...


class Vault(Protocol):
    """Encrypts secrets of a command, and decrypts stored ones."""

    def encrypt(self, secret: str, *, owner: str) -> EncryptedSecret:
        """Encrypt a secret for its owner, the stream of the aggregate that it belongs to."""
        ...

    def decrypt(self, secret: EncryptedSecret) -> str:
        """Decrypt a secret. Raises `DecryptionFailed`."""
        ...

    async def read(self, reference: UUID, *, owner: str) -> str | None:
        """Return a stored secret in plain text; None if it was erased. Raises `DecryptionFailed`, also for a secret of another
        owner."""
        ...


class ServiceNotes(Protocol):
    """Entries about one aggregate that the service itself writes to the log store."""

    async def warn(self, message: str, *, subject: str) -> None:
        """Write a warning. This never fails, because the change that the entry is about is already stored."""
        ...
