"""The aggregate root: public methods decide, private `_when_…` methods apply."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self
from uuid import UUID

from eventsourcing.domain import BaseAggregate

from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.redaction import Redacted


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
class References:
    """The claims, links and secrets of an aggregate. The append writes the difference from the previous state."""

    claims: frozenset[Claim] = NO_CLAIMS
    links: frozenset[str] = NO_LINKS
    secrets: frozenset[UUID] = NO_SECRETS
    linkable: bool = False


NO_REFERENCES = References()


class AggregateRoot(BaseAggregate[str]):
    """An aggregate of the eventsourcing library, with our events and streams.

    A stream is named `<kind>:<key>` (`event:1f0c…`, `client:admin`), so that aggregates of two kinds may share a key.

    `shown_version` and `shown_on` are the version and the time of the last change that a GET shows: the ETag and the modification
    time. `version` and `modified_on` count every event.
    """

    KIND: ClassVar[str] = ""
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = ()
    SNAPSHOT_VERSION: ClassVar[int] = 1
    """Raised when `_to_snapshot` or an applier changes while events and details stay the same; older snapshots are then ignored."""

    shown_version: int
    shown_on: datetime

    def __base_init__(self, originator_id: Any, originator_version: int, timestamp: datetime) -> None:
        super().__base_init__(originator_id, originator_version, timestamp)
        self.shown_version, self.shown_on = originator_version, timestamp

    @classmethod
    def stream(cls, key: object) -> str:
        return f"{cls.KIND}:{key}"

    @property
    def key(self) -> str:
        return self.id.partition(":")[2]

    def begin(self) -> None:
        """Set up the empty state that the first event fills."""

    def copy(self) -> Self:
        """Return an equal aggregate that changes independently. A class whose appliers change a value in place must copy that value
        too."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._pending_events = []
        return twin

    @classmethod
    def _begin(cls, event: type[FirstEvent], key: object, at: datetime, /, **facts: Any) -> Self:
        first = event(originator_id=cls.stream(key), originator_version=cls.INITIAL_VERSION, timestamp=at, **facts)
        root: Self = first.mutate(None)
        root.pending_events.append(first)
        return root

    def _trigger(self, event: type[DomainEvent], *, at: datetime, **facts: Any) -> None:
        """Add an event and apply it. Times never run backwards within a stream, whatever the clocks do."""
        happened = event(originator_id=self.id, originator_version=self.version + 1, timestamp=max(at, self.modified_on), **facts)
        happened.mutate(self)
        self.pending_events.append(happened)

    def in_progress(self) -> bool:
        """Return True while an operation that needs the aggregate's content is running. The content cannot be erased until it
        ends."""
        return False

    def trigger_redacted(self, event: type[Redacted], *, redaction: UUID, at: datetime) -> None:
        """Record that content of earlier events was erased. This aggregate was folded without that content."""
        self._trigger(event, at=at, redaction=redaction)

    def when(self, event: DomainEvent) -> None:
        getattr(self, f"_when_{event.verb()}")(event)

    def references(self) -> References:
        return References(self.claims(), self.links(), self.secrets(), self.linkable())

    def claims(self) -> frozenset[Claim]:
        """Return the unique values that belong to this aggregate."""
        return NO_CLAIMS

    def links(self) -> frozenset[str]:
        """Return the streams that this aggregate links to while it counts as their user."""
        return NO_LINKS

    def secrets(self) -> frozenset[UUID]:
        """Return references to the secrets of this aggregate in the vault."""
        return NO_SECRETS

    def linkable(self) -> bool:
        """Return True if other aggregates may link to this one. A deleted aggregate cannot be linked to."""
        return False

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as JSON-compatible data, which is stored outside the log and read by `from_snapshot`. This class
        writes the envelope; a subclass writes the details in `_to_snapshot`."""
        return {
            "created_on": self.created_on.isoformat(),
            "modified_on": self.modified_on.isoformat(),
            "shown_version": self.shown_version,
            "shown_on": self.shown_on.isoformat(),
            "details": self._to_snapshot(),
        }

    def _to_snapshot(self) -> dict[str, Any]:
        raise NotImplementedError(type(self).__name__)

    @classmethod
    def from_snapshot(cls, *, stream: str, version: int, state: dict[str, Any]) -> Self:
        """Return the aggregate whose state `snapshot` returned. This class reads the envelope; a subclass reads the details in
        `_load_snapshot`."""
        root = cls.__new__(cls)
        root.__base_init__(stream, version, datetime.fromisoformat(state["created_on"]))
        root.modified_on = datetime.fromisoformat(state["modified_on"])
        root.shown_version, root.shown_on = state["shown_version"], datetime.fromisoformat(state["shown_on"])
        root.begin()
        root._load_snapshot(state["details"])
        return root

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        raise NotImplementedError(type(self).__name__)
