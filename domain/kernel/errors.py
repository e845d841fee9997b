"""Errors of commands and queries, as data. `api` translates them into status codes and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.kernel.aggregate import Claim


class DomainError(Exception):
    """Base of every refusal."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error in one field. `field` is a path in the caller's spelling, such as `scheduledStart` or `tags[2].name`."""

    field: str
    message: str


class Malformed(DomainError):
    """Raised when input cannot be understood. Nothing was changed."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors: Sequence[FieldError] = errors

    @classmethod
    def at(cls, field: str, message: str) -> Malformed:
        return cls(FieldError(field, message))


class NotFound(DomainError):
    """Raised when an aggregate does not exist. `kind` is its name (`event`, `room`), and `key` the requested key. `sentence`, if
    present, says more exactly what is missing and what exists instead."""

    def __init__(self, kind: str, key: str, *, sentence: str = "") -> None:
        super().__init__(f"no {kind} {key}")
        self.kind = kind
        self.key = key
        self.sentence = sentence


class Refused(DomainError):
    """Raised when a rule forbids a well-formed command. `rule` is one sentence for the person who sent it."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


class InUse(Refused):
    """Raised when an aggregate cannot be deleted because others link to it. `users` lists them by names that a person
    recognises."""

    def __init__(self, users: Sequence[str]) -> None:
        super().__init__(f"cannot delete: it is used by {', '.join(users)}")
        self.users = users


class Conflict(DomainError):
    """Raised on a conflict with another change: a name is taken, a version is newer, or another writer was faster."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PlanOutdated(Conflict):
    """Raised when the state that a plan was made from has changed. The plan must be made again."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"the {kind.replace('_', ' ')} {key} was changed by another request at the same time")


class PreconditionFailed(Conflict):
    """Raised when the version that the caller requires (`If-Match`) is not the current one."""

    def __init__(self, current: int) -> None:
        super().__init__(f"changed meanwhile: the current version is {current}")
        self.current = current


class ConcurrencyConflict(Conflict):
    """Raised when another process appended to the stream first. The caller must load and decide again."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} was changed by another request at the same time")
        self.stream = stream


class ClaimTaken(Conflict):
    """Raised when a value that must be unique belongs to another aggregate."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        named = (f"the {claim.scope.replace('.', ' ').replace('_', ' ')} {claim.value!r}" for claim in claims)
        super().__init__(" or ".join(named) + " is taken")
        self.claims = claims


class LinkBroken(Conflict):
    """Raised when the target of a new link was deleted, or when a target that others link to would be deleted
    (`no_longer_linkable`)."""

    def __init__(self, no_longer_linkable: Sequence[str] = ()) -> None:
        super().__init__("a record that this refers to was deleted at the same time")
        self.no_longer_linkable = no_longer_linkable


class Unavailable(DomainError):
    """Raised when a service that the product depends on is down or overloaded. Retry after `retry_after` seconds."""

    def __init__(self, what: str, *, retry_after: int = 1) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after = retry_after


class OutcomeUnknown(Unavailable):
    """Raised when the database became unavailable while a change was being written. The change may or may not have been written."""

    def __init__(self) -> None:
        super().__init__("the database became unavailable while the change was being written; it may or may not have been written")


class DecryptionFailed(Exception):
    """Raised when a secret was encrypted with another key or for another owner, or was changed. The message names the secret as the
    subject of a sentence."""


class KeyMissing(DecryptionFailed):
    """Raised when the master key that encrypted the secret is not loaded in this process."""
