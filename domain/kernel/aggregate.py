"""The aggregate root: public methods decide, private `_when_…` methods apply."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from eventsourcing.domain import BaseAggregate

from domain.kernel.event import DomainEvent, FirstEvent


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that only one owner (a stream) may hold within a scope, such as (`tag.name`, `football`)."""

    scope: str
    value: str
    owner: str


NO_CLAIMS: frozenset[Claim] = frozenset()
NO_LINKS: frozenset[str] = frozenset()
NO_SECRETS: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class Holding:
    """What an aggregate, as it now is, has a hold on beyond itself. The append takes and lets go of the difference."""

    claims: frozenset[Claim] = NO_CLAIMS
    links: frozenset[str] = NO_LINKS
    secrets: frozenset[UUID] = NO_SECRETS
    stands: bool = False


NOTHING_HELD = Holding()


class AggregateRoot(BaseAggregate[str]):
    """An aggregate of the eventsourcing library, with our events and streams.

    A stream is named `<kind>:<key>` (`event:1f0c…`, `client:admin`), so that things of two kinds may share a key.
    """

    KIND: ClassVar[str] = ""
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = ()

    @classmethod
    def stream(cls, key: object) -> str:
        return f"{cls.KIND}:{key}"

    @property
    def key(self) -> str:
        return self.id.partition(":")[2]

    def begin(self) -> None:
        """Set up the empty state that the first event fills."""

    @classmethod
    def _begin(cls, event: type[FirstEvent], key: object, at: datetime, /, **facts: Any) -> Self:
        first = event(originator_id=cls.stream(key), originator_version=cls.INITIAL_VERSION, timestamp=at, **facts)
        root: Self = first.mutate(None)
        root.pending_events.append(first)
        return root

    def _trigger(self, event: type[DomainEvent], *, at: datetime, **facts: Any) -> None:
        """Record that something happened now. `at` never runs backwards within a stream, whatever the clocks do."""
        happened = event(originator_id=self.id, originator_version=self.version + 1, timestamp=max(at, self.modified_on), **facts)
        happened.mutate(self)
        self.pending_events.append(happened)

    def when(self, event: DomainEvent) -> None:
        getattr(self, f"_when_{event.verb()}")(event)

    def holding(self) -> Holding:
        return Holding(self.claims(), self.links(), self.secrets(), self.stands())

    def claims(self) -> frozenset[Claim]:
        """The values that this aggregate holds against all others."""
        return NO_CLAIMS

    def links(self) -> frozenset[str]:
        """The streams that this aggregate points at, as long as it counts as their user."""
        return NO_LINKS

    def secrets(self) -> frozenset[UUID]:
        """References to what lies for this aggregate in the vault."""
        return NO_SECRETS

    def stands(self) -> bool:
        """Whether others may point at it. What does not stand, or no longer does, cannot be linked to."""
        return False

    def snapshot(self) -> dict[str, Any]:
        """The whole state as JSON-able data, to be stored beside the log and given back to `restored`."""
        raise NotImplementedError(type(self).__name__)

    @classmethod
    def restored(cls, *, stream: str, version: int, state: dict[str, Any]) -> Self:
        """The aggregate as `snapshot` left it. The base takes the envelope; a subclass takes the rest in `_restore`."""
        root = cls.__new__(cls)
        root.__base_init__(stream, version, datetime.fromisoformat(state["created_on"]))
        root.modified_on = datetime.fromisoformat(state["modified_on"])
        root.begin()
        root._restore(state["details"])
        return root

    def _restore(self, details: dict[str, Any]) -> None:
        raise NotImplementedError(type(self).__name__)
