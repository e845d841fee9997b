"""Commands on clients: docs/reference/api/clients.md#calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from domain.client.aggregate import Client, NewKey
from domain.client.names import FIRST
from domain.drm.settings import DrmSettings, checked
from domain.kernel.command import Command
from domain.kernel.errors import Malformed


@dataclass(frozen=True)
class _ClientCommand(Command[Client]):
    key: str

    def kind(self) -> type[Client]:
        return Client


@dataclass(frozen=True)
class RegisterClient(_ClientCommand):
    """Register a client with its first key. A deleted name may be registered again. `founding` says that there is no other admin,
    so the new client may be called `admin`."""

    roles: tuple[str, ...]
    first: NewKey
    trust_actor: bool = False
    founding: bool = True

    def decide(self, root: Client | None, *, at: datetime) -> Client:
        if root is None:
            if self.key == FIRST and not self.founding:
                raise Malformed.at("name", "is reserved for the first client")
            root = Client.register(self.key, at, self.roles)
        else:
            root.restore(at, self.roles)
        root.issue_key(at, self.first)
        root.trust(at, self.trust_actor)
        return root


@dataclass(frozen=True)
class ConfigureClientDrm(_ClientCommand):
    """Change DRM settings. A setting that is not in `changes` stays; None sets its default."""

    changes: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Raise an error early for values that are invalid whatever the present settings are."""
        self._changed(DrmSettings())

    def act(self, root: Client, *, at: datetime) -> None:
        root.configure_drm(at, self._changed(root.drm))

    def _changed(self, settings: DrmSettings) -> DrmSettings:
        default = DrmSettings()
        return checked(replace(settings, **{k: getattr(default, k) if v is None else v for k, v in self.changes.items()}))
