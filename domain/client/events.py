"""Events of clients. They hold hashes of API keys, never a key."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from domain.kernel.event import DomainEvent, FirstEvent


class ClientRegistered(FirstEvent):
    TOPIC: ClassVar[str] = "client.registered"

    roles: tuple[str, ...]


class RolesChanged(DomainEvent):
    TOPIC: ClassVar[str] = "client.roles_changed"

    roles: tuple[str, ...]


class KeyIssued(DomainEvent):
    """A key was issued. `key_hash` is the SHA-256 of the key, in hex. Keys are random with 256 bits or more, so a plain hash is
    enough."""

    TOPIC: ClassVar[str] = "client.key_issued"

    key_id: str
    key_hash: str


class KeyExpirySet(DomainEvent):
    """The key got an expiry time. During a rotation two keys work for a while."""

    TOPIC: ClassVar[str] = "client.key_expiry_set"

    key_id: str
    expires_at: datetime


class KeyRevoked(DomainEvent):
    TOPIC: ClassVar[str] = "client.key_revoked"

    key_id: str


class ClientDeleted(DomainEvent):
    """The client and its keys were deleted. The name may be registered again."""

    TOPIC: ClassVar[str] = "client.deleted"


class ClientRestored(DomainEvent):
    """A deleted name was registered again, as a client without keys."""

    TOPIC: ClassVar[str] = "client.restored"

    roles: tuple[str, ...]


class ActorTrustChanged(DomainEvent):
    """The trust in the end users that the client reports was changed."""

    TOPIC: ClassVar[str] = "client.actor_trust_changed"

    trusted: bool


class ClientDrmConfigured(DomainEvent):
    """The DRM settings of the client were changed. The event holds all of them: docs/reference/api/clients.md#drm-settings."""

    TOPIC: ClassVar[str] = "client.drm_configured"
    class_version: ClassVar[int] = 2

    playready_la_url: str | None
    widevine_provider: str | None
    content_id_in_pssh: bool
    fairplay_uri_template: str
    fairplay_key_format_versions: str
    fairplay_direct_plain_value: bool = False
    fairplay_hex_form: bool = False

    @staticmethod
    def upcast_v1_v2(state: dict[str, Any]) -> None:
        """Version 2 added the last two settings. Their defaults describe the earlier behaviour."""


EVENTS: tuple[type[DomainEvent], ...] = (
    ClientRegistered,
    RolesChanged,
    KeyIssued,
    KeyExpirySet,
    KeyRevoked,
    ClientDeleted,
    ClientRestored,
    ActorTrustChanged,
    ClientDrmConfigured,
)
