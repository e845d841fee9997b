"""Services by type. Each service is made at its first use, so their order in a list does not matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from domain.destination.targets import Target
from domain.kernel.clock import Clock
from domain.kernel.media_files import MediaFiles
from projections.client.console_sessions import SessionLimits
from workers.ports.media import MediaSource
from workers.ports.outbound import Notifying
from workers.ports.targets import Targets

if TYPE_CHECKING:
    from api.kernel.authentication import Authenticate
    from api.wiring.siblings import Siblings
    from workers.origin.live_origin import LiveOrigin

S = TypeVar("S")
Providers = Mapping[type[Any], Callable[[], Any]]


@dataclass(frozen=True)
class Environment:
    """The dependencies of services that have no type of their own to be found by."""

    conninfo: str
    clock: Clock
    outbound: Notifying
    files: MediaFiles
    machine: str
    siblings: Siblings
    targets: Targets
    callers: Authenticate
    """Finds the caller of an API key."""
    media_served: MediaSource | None = None
    """The source of published media; None if they are not served."""
    own_hosts: Collection[str] = ()
    """The host names of this server."""
    origin: LiveOrigin | None = None
    """The built-in origin; None if this process has none."""
    point_name: Callable[[str], str | None] = lambda url: None
    """Returns the name of the publishing point of the built-in origin at a URL."""
    refused_targets: Mapping[Target, str] = field(default_factory=dict)
    """The publishing targets that this installation does not accept, with the reasons."""
    templates: Path | None = None
    """The directory where the operator has installed templates of infrastructure; None if there is none."""
    console_media_origins: Sequence[str] = ()
    """Other origins from which players in the console may load."""
    session_limits: SessionLimits = field(default_factory=SessionLimits)
    directories: Mapping[str, Path] = field(default_factory=dict)
    """The directories that this process fills, by their names."""


class Services:
    """A container of services. `given` are ready; `provide` adds functions that make the others."""

    def __init__(self, given: Mapping[type[Any], Any], environment: Environment) -> None:
        self.environment = environment
        self._made: dict[type[Any], Any] = dict(given)
        self._providers: dict[type[Any], Callable[[], Any]] = {}
        self._being_made: list[type[Any]] = []

    def provide(self, providers: Providers) -> None:
        for kind in providers:
            if kind in self._providers or kind in self._made:
                raise ValueError(f"two rooms provide {kind.__name__}")
        self._providers.update(providers)

    def get(self, kind: type[S]) -> S:
        """Return a service. Raise `LookupError` for a service that no room provides, and for one that needs itself."""
        if kind not in self._made:
            if kind in self._being_made:
                raise LookupError(f"services depend on each other: {_names([*self._being_made, kind])}")
            if kind not in self._providers:
                raise LookupError(f"no room provides {_names([*self._being_made, kind])}")
            self._being_made.append(kind)
            self._made[kind] = self._providers[kind]()
            self._being_made.pop()
        service: S = self._made[kind]
        return service

    def all(self) -> dict[Any, Any]:
        """Return every service; missing ones are made now."""
        return {**self._made, **{kind: self.get(kind) for kind in self._providers}}


def _names(kinds: Sequence[type[Any]]) -> str:
    return " -> ".join(kind.__name__ for kind in kinds)
