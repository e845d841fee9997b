"""ContentKey: a key that media is encrypted with, what it was issued for and how it was given out. spec/1, issue 6.

A key given once never changes, so little can happen to it. How often it was given out is kept as totals: however long it is in
use, the aggregate does not grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from domain.content_key import events
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.errors import Conflict, Malformed
from domain.kernel.event import DomainEvent
from domain.kernel.sealed import SecretRef

KEY_BYTES = 16
IV_BYTES = 16
LONGEST_ID = 256


class KidElsewhere(Conflict):
    """The kid belongs to another content id of the same client. To give its key would open one content with the other's; to make
    a second would break "one kid never has two keys". So neither."""

    def __init__(self, kid: UUID) -> None:
        super().__init__(f"the kid {kid} belongs to another content id")
        self.kid = kid


class KeyDiffers(Conflict):
    """A key was brought along for a kid that has another one. What was given out stays."""

    def __init__(self, kid: UUID) -> None:
        super().__init__(f"the kid {kid} has another key")
        self.kid = kid


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a key is for. The period is that of the first request: a kid that comes again in another period is the same key."""

    client: str
    content_id: str
    period: str
    kid: UUID


@dataclass(frozen=True, slots=True)
class Answers:
    """How a key was given out: the totals of some time, or of all."""

    count: int
    first_at: datetime
    last_at: datetime
    systems: tuple[str, ...]
    speke_versions: tuple[str, ...]

    def __add__(self, other: Answers) -> Answers:
        return Answers(
            self.count + other.count,
            min(self.first_at, other.first_at),
            max(self.last_at, other.last_at),
            _merged(self.systems, other.systems),
            _merged(self.speke_versions, other.speke_versions),
        )


class ContentKey(AggregateRoot):
    """A content key; its key in the log is made of its client and kid (`identity.key_of`)."""

    KIND: ClassVar[str] = "content_key"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS

    purpose: Purpose
    iv: str
    sealed_key: SecretRef
    imported: bool
    answers: Answers | None

    def begin(self) -> None:
        self.answers = None

    # --- deciding

    @classmethod
    def issue(cls, key: UUID, purpose: Purpose, *, iv: bytes, sealed_key: SecretRef, imported: bool, at: datetime) -> Self:
        check(purpose, iv=iv)
        return cls._begin(
            events.Issued,
            key,
            at,
            client=purpose.client,
            content_id=purpose.content_id,
            period=purpose.period,
            kid=purpose.kid,
            iv=iv.hex(),
            sealed_key=sealed_key,
            imported=imported,
        )

    def must_be_of(self, content_id: str) -> None:
        if content_id != self.purpose.content_id:
            raise KidElsewhere(self.purpose.kid)

    def record(self, answers: Answers, *, at: datetime) -> None:
        self._trigger(
            events.Answered,
            at=at,
            client=self.purpose.client,
            content_id=self.purpose.content_id,
            kid=self.purpose.kid,
            systems=answers.systems,
            speke_versions=answers.speke_versions,
            count=answers.count,
            first_at=answers.first_at,
            last_at=answers.last_at,
        )

    # --- applying

    def _when_issued(self, event: events.Issued) -> None:
        self.purpose = Purpose(event.client, event.content_id, event.period, event.kid)
        self.iv = event.iv
        self.sealed_key = event.sealed_key
        self.imported = event.imported

    def _when_answered(self, event: events.Answered) -> None:
        these = Answers(event.count, event.first_at, event.last_at, event.systems, event.speke_versions)
        self.answers = these if self.answers is None else self.answers + these

    # --- holding

    def secrets(self) -> frozenset[UUID]:
        return frozenset((self.sealed_key.reference,))

    # --- remembering

    def snapshot(self) -> dict[str, Any]:
        purpose, answers = self.purpose, self.answers
        return {
            "created_on": self.created_on.isoformat(),
            "modified_on": self.modified_on.isoformat(),
            "details": {
                "purpose": (purpose.client, purpose.content_id, purpose.period, str(purpose.kid)),
                "iv": self.iv,
                "sealed_key": self.sealed_key.model_dump(mode="json"),
                "imported": self.imported,
                "answers": answers
                and (
                    answers.count,
                    answers.first_at.isoformat(),
                    answers.last_at.isoformat(),
                    answers.systems,
                    answers.speke_versions,
                ),
            },
        }

    def _restore(self, details: dict[str, Any]) -> None:
        client, content_id, period, kid = details["purpose"]
        self.purpose = Purpose(client, content_id, period, UUID(kid))
        self.iv = details["iv"]
        self.sealed_key = SecretRef.model_validate(details["sealed_key"])
        self.imported = details["imported"]
        if details["answers"] is not None:
            count, first, last, systems, versions = details["answers"]
            moment = datetime.fromisoformat
            self.answers = Answers(count, moment(first), moment(last), tuple(systems), tuple(versions))


def check(purpose: Purpose, *, iv: bytes) -> None:
    """reference/drm.md, a.1: any content id that is not empty, up to 256 characters."""
    if not 1 <= len(purpose.content_id) <= LONGEST_ID or "\0" in purpose.content_id:
        raise Malformed.at("contentId", f"1 to {LONGEST_ID} characters")
    if len(purpose.period) > LONGEST_ID or "\0" in purpose.period:
        raise Malformed.at("period", f"at most {LONGEST_ID} characters")
    if len(iv) != IV_BYTES:
        raise Malformed.at("explicitIV", f"{IV_BYTES} bytes are required")


def _merged(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


events.Issued.AGGREGATE = ContentKey
