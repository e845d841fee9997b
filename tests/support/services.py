"""The services of the API on a core, for tests: adapters and settings are those that the test gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from api.console.files import ConsoleFiles
from api.kernel.authentication import Authenticate
from api.wiring.assembly import services_of
from api.wiring.container import Container
from api.wiring.core import Core
from api.wiring.parts import ConsoleOrigins, Directories, RefusedTargets, ServedMedia, ServiceTemplates
from api.wiring.services import PROVIDERS, authenticate, console_files, services_by_type
from api.wiring.siblings import Alone, Siblings
from domain.kernel.encryption import IngestKeys, SecretCipher
from domain.kernel.internal_addresses import InternalAddresses
from domain.kernel.media_files import MediaFiles
from projections.client.console_sessions import SessionLimits
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.registry import TargetRegistry
from workers.kernel.confinement import NO_PLACES, Places
from workers.kernel.point_tokens import PointNames
from workers.kernel.quiet import QuietMode
from workers.kernel.settings import Identity
from workers.origin.live_origin import LiveOrigin
from workers.ports.targets import Targets

CIPHER: Final = SecretCipher(bytes(32))


def container(core: Core, *, cipher: SecretCipher = CIPHER, given: Mapping[Any, Any] | None = None) -> Container:
    """Return a container on this core. `given` are further objects by their types; they replace those of this function."""
    services = services_of(core)
    values = {
        IngestKeys: IngestKeys(bytes(32)),
        Identity: Identity("here", "media.example", "0"),
        Places: NO_PLACES,
        QuietMode: QuietMode(),
        SecretCipher: cipher,
        Targets: TargetRegistry(GuardedClient),
    }
    for kind, service in {**values, **(given or {})}.items():
        services.give(kind, service)
    return services


def services(
    core: Core,
    *,
    outbound: GuardedClient,
    files: MediaFiles,
    cipher: SecretCipher = CIPHER,
    given: Mapping[Any, Any] | None = None,
) -> dict[Any, Any]:
    """Return all services of the endpoints by their types."""

    async def callers(key: str) -> Any:
        return await authenticate(core.directory, key)

    values = {
        Authenticate: callers,
        ConsoleFiles: _built_console(),
        ConsoleOrigins: ConsoleOrigins(),
        Directories: Directories(),
        GuardedClient: outbound,
        InternalAddresses: InternalAddresses(),
        LiveOrigin: None,
        MediaFiles: files,
        PointNames: PointNames(),
        RefusedTargets: RefusedTargets(),
        ServedMedia: ServedMedia(),
        ServiceTemplates: ServiceTemplates(),
        SessionLimits: SessionLimits(),
        Siblings: Alone(core.registry),
    }
    made = container(core, cipher=cipher, given={**values, **(given or {})})
    made.bind(PROVIDERS)
    return services_by_type(made)


@cache
def _built_console() -> ConsoleFiles:
    """Return the files of the console, which are read from the disk once: two hundred files for each test would be slow."""
    return console_files(ConsoleOrigins())
