"""The routes of all rooms, and the services that their endpoints request by type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from fastapi import APIRouter
from prometheus_client import CollectorRegistry

from api.audit.past_states import PastStates, Renderer
from api.http.request import Caller
from api.kernel.auth import Role, caller_of
from api.kernel.authentication import Authenticate
from api.kernel.shell_access import PREFIX as SHELL
from api.kernel.shell_access import ShellKeys
from api.kernel.version import product_version
from api.operations.asyncapi.document import AsyncApi
from api.wiring.catalogue import AGGREGATES, RECORDS, RELAYED
from api.wiring.container import Environment, Services
from api.wiring.core import Core
from api.wiring.rooms import ROOMS
from api.wiring.siblings import Alone, Siblings
from domain.destination.targets import Target
from domain.kernel.encryption import SecretCipher
from domain.kernel.mapper import Catalogue, EventMapper
from domain.kernel.media_files import MediaFiles
from projections.audit.redactor import Redactor
from projections.client.console_sessions import SessionLimits
from projections.client.directory import ClientDirectory
from projections.kernel.database.database import Database
from projections.log.append import Appender
from projections.log.executor import CommandExecutor
from projections.log.log_watcher import LogWatcher
from projections.log.streams import Streams
from projections.record.queries import RecordQueries
from projections.vault.master_keys import VaultState
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.adapters.outbound_http import GuardedClient
from workers.adapters.targets.known import KnownTargets
from workers.origin.live_origin import LiveOrigin
from workers.ports.media import MediaSource
from workers.ports.outbound import Notifying
from workers.ports.targets import Targets

ROUTES: Sequence[APIRouter] = tuple(router for room in ROOMS for router in room.routes())


def services(
    core: Core,
    conninfo: str,
    cipher: SecretCipher,
    *,
    outbound: Notifying,
    files: MediaFiles,
    siblings: Siblings | None = None,
    media_served: MediaSource | None = None,
    origin: LiveOrigin | None = None,
    point_name: Callable[[str], str | None] = lambda url: None,
    targets: Targets | None = None,
    refused_targets: Mapping[Target, str] | None = None,
    templates: Path | None = None,
    console_media_origins: Sequence[str] = (),
    session_limits: SessionLimits | None = None,
    directories: Mapping[str, Path] | None = None,
    own_hosts: Collection[str] = (),
    callers: Authenticate | None = None,
) -> dict[Any, Any]:
    """Return every service by its type. Without `siblings` this process is alone; without `media_served` it serves no media,
    without `origin` no live streams; without `targets` it reaches only public destinations. Templates of infrastructure are below
    `templates`; `point_name` maps URLs to publishing points of the built-in origin; players in the console may load from
    `console_media_origins`. `own_hosts` are names of this server."""
    processes = siblings or Alone(core.registry)
    environment = Environment(
        conninfo,
        core.clock,
        outbound,
        files,
        machine=gethostname(),
        siblings=processes,
        media_served=media_served,
        origin=origin,
        point_name=point_name,
        targets=targets or KnownTargets(GuardedClient),
        refused_targets=refused_targets or {},
        templates=templates,
        console_media_origins=console_media_origins,
        session_limits=session_limits or SessionLimits(),
        directories=directories or {},
        own_hosts=(*own_hosts, gethostname()),
        callers=callers or partial(authenticate, core.directory),
    )
    container = Services({**_of_the_log(core), SecretCipher: cipher, AsyncApi: asyncapi(product_version())}, environment)
    for room in ROOMS:
        container.provide(room.services(container))
    renderers: dict[str, Renderer] = {}
    for room in ROOMS:
        renderers |= room.past_states(container)
    return {**container.all(), PastStates: PastStates(renderers)}


def _of_the_log(core: Core) -> dict[Any, Any]:
    return {
        Database: core.database,
        Appender: core.appender,
        Catalogue: core.catalogue,
        ClientDirectory: core.directory,
        CollectorRegistry: core.registry,
        CommandExecutor: core.executor,
        EventMapper: core.mapper,
        LogWatcher: core.log_watcher,
        RecordQueries: RecordQueries(core.database, RECORDS),
        Redactor: core.redactor,
        Streams: core.streams,
        VaultState: VaultState(core.database, core.keys),
    }


def asyncapi(version: str) -> AsyncApi:
    """Return the document about the messages in Kafka and to webhooks."""
    relayed = Catalogue(kind for kind in AGGREGATES if kind.KIND in RELAYED)
    return AsyncApi(relayed, version=version, topic=Topics().of, partitions=PARTITIONS)


async def authenticate(directory: ClientDirectory, key: str, *, shells: ShellKeys | None = None) -> Caller | None:
    """Return the caller of a key; None if it is invalid. With `shells`, a user in a shell of the home is an admin."""
    if shells is not None and key.startswith(SHELL):
        user = shells.user(key)
        return None if user is None else Caller(user, frozenset({Role.ADMIN}))
    client = await directory.authenticate(key)
    return caller_of(client) if client is not None else None
