"""Why a command or a question was refused, as data. Words and status codes are made at the edge, in `api`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class DomainError(Exception):
    """Base of every refusal."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field. `field` is a path as the caller spelled it, such as `scheduledStart` or `tags[2].name`."""

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
    """There is no such thing. `kind` is an aggregate name (`event`, `room`), `key` what was asked for."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"no {kind} {key}")
        self.kind = kind
        self.key = key


class Refused(DomainError):
    """A rule says no to a well-formed command. `rule` is one sentence for the person who sent it."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


class Conflict(DomainError):
    """Somebody else was first: a name is taken, a version moved on, a race was lost."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Overtaken(Conflict):
    """What a plan was made from has changed since: it must be made again."""

    def __init__(self, kind: str, key: str) -> None:
        super().__init__(f"the {kind.replace('_', ' ')} {key} was changed by somebody else at the same time")


class StaleVersion(Conflict):
    """The version that the caller insists on (`If-Match`) is not the current one."""

    def __init__(self, current: int) -> None:
        super().__init__(f"the current version is {current}")
        self.current = current


class Unavailable(DomainError):
    """Something that we depend on is down or overloaded; try again after `retry_after` seconds."""

    def __init__(self, what: str, *, retry_after: int = 1) -> None:
        super().__init__(what)
        self.what = what
        self.retry_after = retry_after
