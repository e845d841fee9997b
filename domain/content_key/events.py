"""What can happen to a content key. The key is never here: it lies in the vault, and an event holds a reference to it."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.kernel.event import DomainEvent, FirstEvent
from domain.kernel.sealed import SecretRef


class Issued(FirstEvent):
    """A key was made for a client, or brought along (`imported`). `iv` is in hex: no secret, playlists show it."""

    TOPIC: ClassVar[str] = "content_key.issued"

    client: str
    content_id: str
    period: str
    kid: UUID
    iv: str
    sealed_key: SecretRef
    imported: bool


class Answered(DomainEvent):
    """The key was given out `count` times in a short while, for these DRM systems, by these versions of SPEKE."""

    TOPIC: ClassVar[str] = "content_key.answered"

    client: str
    content_id: str
    kid: UUID
    systems: tuple[str, ...]
    speke_versions: tuple[str, ...]
    count: int
    first_at: datetime
    last_at: datetime


EVENTS: tuple[type[DomainEvent], ...] = (Issued, Answered)
