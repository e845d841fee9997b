"""ContentKey: a key that encrypts media, its purpose and its usage: docs/reference/api/key-provider.md#keys.

An issued key never changes. Its usage is stored as totals, so the aggregate does not grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from domain.content_key import events
from domain.kernel.aggregate import AggregateRoot
from domain.kernel.command import decision
from domain.kernel.encryption import SecretRef
from domain.kernel.errors import Conflict, Malformed, Refused
from domain.kernel.event import DomainEvent

KEY_BYTES = 16
IV_BYTES = 16
LONGEST_ID = 256


class KidTaken(Conflict):
    """Raised when the kid belongs to another content id of the same client. The same key would decrypt both contents, and one
    kid must not have two keys."""

    def __init__(self, kid: UUID) -> None:
        super().__init__(f"the kid {kid} belongs to another content id")
        self.kid = kid


class TooManyKeys(Refused):
    """Raised when the client has reached its limit of keys. Existing keys are still provided."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the client has {most} content keys, which is its limit")


class KeyMismatch(Conflict):
    """Raised when a key is imported for a kid that has another key. An issued key is never replaced."""

    def __init__(self, kid: UUID) -> None:
        super().__init__(f"the kid {kid} has another key")
        self.kid = kid


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a key. The period is that of the first request: the same kid in another period gets the same key."""

    client: str
    content_id: str
    period: str
    kid: UUID


@dataclass(frozen=True, slots=True)
class Usage:
    """The uses of a key: their number, times, DRM systems and SPEKE versions, as totals of an interval or of all time."""

    count: int
    first_at: datetime
    last_at: datetime
    systems: tuple[str, ...]
    speke_versions: tuple[str, ...]

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.count + other.count,
            min(self.first_at, other.first_at),
            max(self.last_at, other.last_at),
            _merged(self.systems, other.systems),
            _merged(self.speke_versions, other.speke_versions),
        )


class ContentKey(AggregateRoot):
    """A content key. Its key in the log is computed from its client and kid (`identity.key_of`)."""

    KIND: ClassVar[str] = "content_key"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS

    purpose: Purpose
    iv: str
    sealed_key: SecretRef
    imported: bool
    usage: Usage | None
    counted: int
    """The number of uses that were counted outside the log."""

    def begin(self) -> None:
        self.usage = None
        self.counted = 0

    # --- decisions

    @classmethod
    def issue(cls, key: UUID, at: datetime, /, purpose: Purpose, *, iv: bytes, sealed_key: SecretRef, imported: bool) -> Self:
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

    def check_content_id(self, content_id: str) -> None:
        if content_id != self.purpose.content_id:
            raise KidTaken(self.purpose.kid)

    @decision
    def record_counted_usage(self, at: datetime, /, usage: Usage) -> None:
        """Record counted uses. The count of `usage` includes all counted uses ever; those that are recorded already are left
        out."""
        count = usage.count - self.counted
        if count > 0:
            self.record_usage(at, replace(usage, count=count), total=usage.count)

    @decision
    def record_usage(self, at: datetime, /, usage: Usage, *, total: int = 0) -> None:
        self._trigger(
            events.Delivered,
            at=at,
            client=self.purpose.client,
            content_id=self.purpose.content_id,
            kid=self.purpose.kid,
            systems=usage.systems,
            speke_versions=usage.speke_versions,
            count=usage.count,
            first_at=usage.first_at,
            last_at=usage.last_at,
            **({"total": total} if total else {}),
        )

    # --- state

    def _when_issued(self, event: events.Issued) -> None:
        self.purpose = Purpose(event.client, event.content_id, event.period, event.kid)
        self.iv = event.iv
        self.sealed_key = event.sealed_key
        self.imported = event.imported

    def _when_delivered(self, event: events.Delivered) -> None:
        usage = Usage(event.count, event.first_at, event.last_at, event.systems, event.speke_versions)
        self.usage = usage if self.usage is None else self.usage + usage
        self.counted = max(self.counted, event.total)

    # --- references

    def secrets(self) -> frozenset[UUID]:
        return frozenset((self.sealed_key.reference,))

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        purpose, usage = self.purpose, self.usage
        return {
            "purpose": (purpose.client, purpose.content_id, purpose.period, str(purpose.kid)),
            "iv": self.iv,
            "sealed_key": self.sealed_key.model_dump(mode="json"),
            "imported": self.imported,
            "counted": self.counted,
            "usage": usage
            and (
                usage.count,
                usage.first_at.isoformat(),
                usage.last_at.isoformat(),
                usage.systems,
                usage.speke_versions,
            ),
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        client, content_id, period, kid = details["purpose"]
        self.purpose = Purpose(client, content_id, period, UUID(kid))
        self.iv = details["iv"]
        self.sealed_key = SecretRef.model_validate(details["sealed_key"])
        self.imported = details["imported"]
        self.counted = details["counted"]
        if details["usage"] is not None:
            count, first, last, systems, versions = details["usage"]
            moment = datetime.fromisoformat
            self.usage = Usage(count, moment(first), moment(last), tuple(systems), tuple(versions))


def check(purpose: Purpose, *, iv: bytes) -> None:
    """Check the purpose and the IV of a key. A content id is any text of 1 to 256 characters."""
    if not 1 <= len(purpose.content_id) <= LONGEST_ID or "\0" in purpose.content_id:
        raise Malformed.at("contentId", f"1 to {LONGEST_ID} characters")
    if len(purpose.period) > LONGEST_ID or "\0" in purpose.period:
        raise Malformed.at("period", f"at most {LONGEST_ID} characters")
    if len(iv) != IV_BYTES:
        raise Malformed.at("explicitIV", f"{IV_BYTES} bytes are required")


def _merged(names: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *other}))


events.Issued.AGGREGATE = ContentKey
