"""Events of content keys. The key itself is in the vault; an event holds a reference to it."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.kernel.encryption import SecretRef
from domain.kernel.event import DomainEvent, FirstEvent


class Issued(FirstEvent):
    """A key was issued for a client, or imported. `iv` is in hex; it is not secret, playlists show it."""

    TOPIC: ClassVar[str] = "content_key.issued"

    client: str
    content_id: str
    period: str
    kid: UUID
    iv: str
    sealed_key: SecretRef
    imported: bool


class Delivered(DomainEvent):
    """The key was delivered `count` times since the last such event, for these DRM systems, by these versions of SPEKE. `total`
    is the number of all counted uses up to this event; it is 0 for uses that are not counted: the first one, and an export."""

    TOPIC: ClassVar[str] = "content_key.delivered"

    client: str
    content_id: str
    kid: UUID
    systems: tuple[str, ...]
    speke_versions: tuple[str, ...]
    count: int
    first_at: datetime
    last_at: datetime
    total: int = 0


EVENTS: tuple[type[DomainEvent], ...] = (Issued, Delivered)
