"""The container of a process, for the API, the workers and the commands alike."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from api.wiring.container import Container
from api.wiring.core import Core
from api.wiring.parts import PARTS
from api.wiring.rooms import ROOMS
from api.wiring.settings import Settings
from domain.kernel.clock import Clock
from domain.kernel.encryption import IngestKeys, SecretCipher
from domain.kernel.mapper import Catalogue, EventMapper
from domain.kernel.ports import Executor
from projections.audit.redactor import Redactor
from projections.client.directory import ClientDirectory
from projections.kernel.database.database import Database
from projections.kernel.tracing import Tracer
from projections.log.append import Appender
from projections.log.executor import CommandExecutor
from projections.log.log_watcher import LogWatcher
from projections.log.streams import Streams
from projections.vault.master_keys import ProcessKeys, VaultState


def services_of(core: Core, settings: Settings | None = None) -> Container:
    """Return the container of the services on this core. Without `settings`, the values that services need are given one by one."""
    container = Container(PARTS)
    for room in ROOMS:
        container.bind(room.services)
    given = {
        Appender: core.appender,
        Catalogue: core.catalogue,
        ClientDirectory: core.directory,
        Clock: core.clock,
        CollectorRegistry: core.registry,
        CommandExecutor: core.executor,
        Database: core.database,
        EventMapper: core.mapper,
        Executor: core.executor,
        LogWatcher: core.log_watcher,
        Redactor: core.redactor,
        Streams: core.streams,
        Tracer: core.tracer,
        VaultState: VaultState(core.database, core.keys),
    }
    for kind, service in given.items():
        container.give(kind, service)
    if core.keys is not None:
        container.give(ProcessKeys, core.keys)
        container.give(SecretCipher, core.ring.cipher)
        container.give(IngestKeys, core.ring.ingest)
    if settings is not None:
        container.give(Settings, settings)
    return container
