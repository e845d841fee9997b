"""What can happen to a client of the product. A key is never here, only its hash."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from domain.kernel.event import DomainEvent, FirstEvent


class Registered(FirstEvent):
    TOPIC: ClassVar[str] = "client.registered"

    roles: tuple[str, ...]


class RolesChanged(DomainEvent):
    TOPIC: ClassVar[str] = "client.roles_changed"

    roles: tuple[str, ...]


class KeyIssued(DomainEvent):
    """`key_hash` is the SHA-256 of the key, in hex. Keys are random with 256 bits or more, so a plain hash is enough."""

    TOPIC: ClassVar[str] = "client.key_issued"

    key_id: str
    key_hash: str


class KeyExpirySet(DomainEvent):
    """The key stops working at that time: a rotation with an overlap."""

    TOPIC: ClassVar[str] = "client.key_expiry_set"

    key_id: str
    expires_at: datetime


class KeyRevoked(DomainEvent):
    TOPIC: ClassVar[str] = "client.key_revoked"

    key_id: str


class Removed(DomainEvent):
    """The client is gone and so are its keys. Its name may be used again."""

    TOPIC: ClassVar[str] = "client.removed"


class Reinstated(DomainEvent):
    """A removed name is in use again, by a client without keys."""

    TOPIC: ClassVar[str] = "client.reinstated"

    roles: tuple[str, ...]


class DrmConfigured(DomainEvent):
    """What its content keys' answers shall say, all of it. Document 1; reference/drm.md, c."""

    TOPIC: ClassVar[str] = "client.drm_configured"

    playready_la_url: str | None
    widevine_provider: str | None
    content_id_in_pssh: bool
    fairplay_uri_template: str
    fairplay_key_format_versions: str


EVENTS: tuple[type[DomainEvent], ...] = (
    Registered,
    RolesChanged,
    KeyIssued,
    KeyExpirySet,
    KeyRevoked,
    Removed,
    Reinstated,
    DrmConfigured,
)
