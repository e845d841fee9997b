"""Client: a caller of the API, with roles, API keys and DRM settings: docs/reference/api/clients.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Self

from domain.client import events
from domain.client.names import check_name, likeness
from domain.client.roles import checked_roles
from domain.drm.settings import DrmSettings
from domain.kernel.aggregate import AggregateRoot, Claim
from domain.kernel.command import decision
from domain.kernel.errors import Conflict, NotFound, Refused
from domain.kernel.event import DomainEvent

_DRM = tuple(field.name for field in fields(DrmSettings))


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key of a client: its id and the hash of its text."""

    key_id: str
    key_hash: str
    created_at: datetime
    expires_at: datetime | None = None

    def usable(self, at: datetime) -> bool:
        return self.expires_at is None or at < self.expires_at


@dataclass(frozen=True)
class NewKey:
    """A key to be issued: its public id and the hash of its text."""

    key_id: str
    key_hash: str


class Client(AggregateRoot):
    """A caller of the API. Its key in the log is its name."""

    KIND: ClassVar[str] = "client"
    EVENTS: ClassVar[tuple[type[DomainEvent], ...]] = events.EVENTS

    roles: tuple[str, ...]
    keys: tuple[ApiKey, ...]
    registered_at: datetime
    deleted: bool
    drm: DrmSettings
    trust_actor: bool

    def begin(self) -> None:
        self.roles = ()
        self.keys = ()
        self.registered_at = self.created_on
        self.deleted = False
        self.drm = DrmSettings()
        self.trust_actor = False

    def claims(self) -> frozenset[Claim]:
        """Return the claim of the client's name. A deleted client keeps it, because its name stays in the log."""
        return frozenset({Claim("client.name", likeness(self.key), self.id)})

    # --- decisions

    @classmethod
    def register(cls, name: str, at: datetime, /, roles: Iterable[str]) -> Self:
        check_name(name)
        return cls._begin(events.ClientRegistered, name, at, roles=checked_roles(roles))

    @decision
    def restore(self, at: datetime, /, roles: Iterable[str]) -> None:
        if not self.deleted:
            raise Conflict(f"a client {self.key} already exists")
        self._trigger(events.ClientRestored, at=at, roles=checked_roles(roles))

    @decision
    def change(self, at: datetime, /, roles: Iterable[str] | None, *, other_admins: bool, trust_actor: bool | None = None) -> None:
        """Replace the roles, and decide whether the end users that the client reports are believed. None leaves a value
        unchanged."""
        if roles is not None:
            self._change_roles(roles, other_admins=other_admins, at=at)
        if trust_actor is not None:
            self.trust(at, trust_actor)

    def _change_roles(self, roles: Iterable[str], *, other_admins: bool, at: datetime) -> None:
        self._check_not_deleted()
        new = checked_roles(roles)
        if "admin" in self.roles and "admin" not in new and not other_admins:
            raise Refused(f"{self.key} is the last client with the role admin and cannot lose it")
        if new != self.roles:
            self._trigger(events.RolesChanged, at=at, roles=new)

    @decision
    def trust(self, at: datetime, /, trusted: bool) -> None:
        """Decide whether the end users that the client reports are believed."""
        self._check_not_deleted()
        if trusted != self.trust_actor:
            self._trigger(events.ActorTrustChanged, at=at, trusted=trusted)

    @decision
    def issue_key(self, at: datetime, /, new: NewKey, *, expire_others_after: int | None = None) -> None:
        """Add a key. After `expire_others_after` seconds the other keys expire, if they do not expire sooner."""
        self._check_not_deleted()
        others = self.keys
        self._trigger(events.KeyIssued, at=at, key_id=new.key_id, key_hash=new.key_hash)
        if expire_others_after is None:
            return
        end = at + timedelta(seconds=expire_others_after)
        for other in others:
            if other.expires_at is None or other.expires_at > end:
                self._trigger(events.KeyExpirySet, at=at, key_id=other.key_id, expires_at=end)

    @decision
    def revoke_key(self, at: datetime, /, key_id: str, *, other_admins: bool) -> None:
        self._check_not_deleted()
        key = next((key for key in self.keys if key.key_id == key_id), None)
        if key is None:
            raise NotFound("client key", key_id)
        lasting = [other for other in self.keys if other is not key and other.expires_at is None]
        if "admin" in self.roles and not lasting and not other_admins:
            raise Refused(f"{self.key} is the last client with the role admin: its last key that does not expire cannot be revoked")
        self._trigger(events.KeyRevoked, at=at, key_id=key_id)

    @decision
    def configure_drm(self, at: datetime, /, new: DrmSettings) -> None:
        self._check_not_deleted()
        if new != self.drm:
            self._trigger(events.ClientDrmConfigured, at=at, **asdict(new))

    @decision
    def delete(self, at: datetime, /, *, other_admins: bool) -> None:
        self._check_not_deleted()
        if "admin" in self.roles and not other_admins:
            raise Refused(f"{self.key} is the last client with the role admin and cannot be deleted")
        self._trigger(events.ClientDeleted, at=at)

    def _check_not_deleted(self) -> None:
        if self.deleted:
            raise NotFound(self.KIND, self.key)

    # --- state

    def _when_registered(self, event: events.ClientRegistered) -> None:
        self.roles = event.roles

    def _when_restored(self, event: events.ClientRestored) -> None:
        self.roles = event.roles
        self.registered_at = event.timestamp
        self.deleted = False

    def _when_roles_changed(self, event: events.RolesChanged) -> None:
        self.roles = event.roles

    def _when_key_issued(self, event: events.KeyIssued) -> None:
        self.keys = (*self.keys, ApiKey(event.key_id, event.key_hash, event.timestamp))

    def _when_key_expiry_set(self, event: events.KeyExpirySet) -> None:
        self.keys = tuple(replace(k, expires_at=event.expires_at) if k.key_id == event.key_id else k for k in self.keys)

    def _when_key_revoked(self, event: events.KeyRevoked) -> None:
        self.keys = tuple(key for key in self.keys if key.key_id != event.key_id)

    def _when_actor_trust_changed(self, event: events.ActorTrustChanged) -> None:
        self.trust_actor = event.trusted

    def _when_drm_configured(self, event: events.ClientDrmConfigured) -> None:
        self.drm = DrmSettings(**{name: getattr(event, name) for name in _DRM})

    def _when_deleted(self, event: events.ClientDeleted) -> None:
        self.keys = ()
        self.drm = DrmSettings()
        self.trust_actor = False
        self.deleted = True

    # --- snapshots

    def _to_snapshot(self) -> dict[str, Any]:
        keys = [
            (k.key_id, k.key_hash, k.created_at.isoformat(), k.expires_at.isoformat() if k.expires_at else None) for k in self.keys
        ]
        return {
            "roles": self.roles,
            "keys": keys,
            "registered_at": self.registered_at.isoformat(),
            "deleted": self.deleted,
            "drm": asdict(self.drm),
            "trust_actor": self.trust_actor,
        }

    def _load_snapshot(self, details: dict[str, Any]) -> None:
        moment = datetime.fromisoformat
        self.roles = tuple(details["roles"])
        self.keys = tuple(
            ApiKey(key_id, key_hash, moment(created), moment(expires) if expires else None)
            for key_id, key_hash, created, expires in details["keys"]
        )
        self.registered_at = moment(details["registered_at"])
        self.deleted = details["deleted"]
        self.drm = DrmSettings(**details.get("drm", {}))  # a snapshot may be older than the settings
        self.trust_actor = details.get("trust_actor", False)


events.ClientRegistered.AGGREGATE = Client
