"""Errors of commands and queries, as data. `api` makes status codes and texts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.kernel.aggregate import Claim


class DomainError(Exception):
    """Base of every refusal."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error in one field. `field` is a path as the caller spelled it, such as `scheduledStart` or `tags[2].name`."""

    field: str
    message: str


class Malformed(DomainError):
    """The input cannot be understood; nothing was changed."""

    def __init__(self, *errors: FieldError) -> None:
        super().__init__("; ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors: Sequence[FieldError] = errors

    @classmethod
    def at(cls, field: str, message: str) -> Malformed:
        return cls(FieldError(field, message))


class NotFound(DomainError):
    """There is no such aggregate. `kind` is its name (`event`, `room`), `key` the key that was requested. `sentence`, where
    it is given, says more exactly what there is not, and what there is instead."""

    def __init__(self, kind: str, key: str, *, sentence: str = "") -> None:
        super().__init__(f"no {kind} {key}")
        self.kind = kind
        self.key = key
        self.sentence = sentence


class Refused(DomainError):
    """A rule forbids a well-formed command. `rule` is one sentence for the person who sent it."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


class InUse(Refused):
    """An aggregate cannot be deleted because others link to it. `users` lists them, each as a person knows it."""

    def __init__(self, users: Sequence[str]) -> None:
        super().__init__(f"it is in use by {', '.join(users)}")
        self.users = users


class Conflict(DomainError):
    """A conflict with another change: a name is taken, a version is newer, a race was lost."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PlanOutdated(Conflict):
    """The state that a plan was made from has changed: the plan must be made again."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"the {kind.replace('_', ' ')} {key} was changed by somebody else at the same time")


class PreconditionFailed(Conflict):
    """The version that the caller requires (`If-Match`) is not the current one."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the current version is {current}")
        self.current = current


class ConcurrencyConflict(Conflict):
    """Another process appended to the stream first: load again and decide again."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream} was changed by somebody else at the same time")
        self.stream = stream


class ClaimTaken(Conflict):
    """A value that must be unique belongs to another aggregate."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        named = (f"the {claim.scope.replace('.', ' ').replace('_', ' ')} {claim.value!r}" for claim in claims)
        super().__init__(" or ".join(named) + " is taken")
        self.claims = claims


class LinkBroken(Conflict):
    """The target of a new link was deleted, or a target that others link to would be deleted (`no_longer_linkable`)."""

    def __init__(self, no_longer_linkable: Sequence[str] = ()) -> None:
        super().__init__("something that this points at was deleted at the same time")
        self.no_longer_linkable = no_longer_linkable


class Unavailable(DomainError):
    """A service that we depend on is down or overloaded; try again after `retry_after` seconds."""

    def __init__(self, what: str, *, retry_after: int = 1) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after = retry_after


class OutcomeUnknown(Unavailable):
    """The database went away while a change was being written. It may be written or not."""

    def __init__(self) -> None:
        super().__init__("the database became unavailable while the change was being written; it may be written or not")


class DecryptionFailed(Exception):
    """A secret was encrypted with another key or for another owner, or was changed. The message names it as the subject of a
    sentence."""


class KeyMissing(DecryptionFailed):
    """The secret was encrypted with a master key that this process does not hold."""
