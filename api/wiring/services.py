"""The services of the API that its container cannot make by their constructors. Only the process of the API imports this module."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from api.audit.checkpoints import LogProofs
from api.audit.past_states import PastStates, Renderer
from api.audit.routes import Verifier
from api.console.files import ConsoleFiles, built_console
from api.engine.broadcast import DashboardBroadcast
from api.engine.dashboard import Dashboards
from api.engine.job_counts import WaitingJobs
from api.engine.surface import Strangers
from api.guards.seats import Seats
from api.http.request import Caller
from api.http.routing import routes_of
from api.kernel.auth import Role, caller_of
from api.kernel.authentication import Sessions
from api.kernel.browser_sessions import BrowserSessions
from api.kernel.shell_access import PREFIX as SHELL
from api.kernel.shell_access import ShellKeys
from api.kernel.version import product_version
from api.media.health import Health
from api.media.health_overview import Overview
from api.operations.asyncapi.document import AsyncApi
from api.operations.backlog import Backlog, JobBacklog, ProvisionBacklog, SessionBacklog
from api.operations.metrics import DatabaseMetrics
from api.operations.routes import AllMetrics, Completeness, LogHead
from api.origin.access import MOST_READ, OriginAccess
from api.published.files import PublishedFiles
from api.published.readers import Readers
from api.published.viewers import Viewers
from api.speke.rate import RateLimit
from api.speke.routes import ContentKeyCeiling
from api.wiring.catalogue import AGGREGATES, RELAYED, routes
from api.wiring.container import Container
from api.wiring.parts import ConsoleOrigins, Directories, ServedMedia
from api.wiring.providers import overview, verdicts
from api.wiring.rooms import ROOMS
from api.wiring.siblings import Siblings
from domain.content_key.ports import KeyCeiling
from domain.kernel.mapper import Catalogue
from projections.audit.unsealed_events import Unsealed
from projections.audit.verify import verify
from projections.client.console_sessions import ConsoleSessions
from projections.client.directory import ClientDirectory
from projections.consumers.queries import ConsumerQueries
from projections.event.due_events import DueEvents
from projections.event.queries import EventQueries
from projections.job.backlog import JobBacklogQueries
from projections.job.counts import JobCounts
from projections.job.settings import EngineSettingsQueries
from projections.kernel.database.database import Database, Pool
from projections.provision.queries import ProvisionQueries
from projections.publishing_point.queries import PointStates
from projections.session.store import SessionQueries
from projections.vault.master_keys import VaultState
from projections.webhook.queries import DeliveryQueries
from workers.adapters.ffmpeg import Ffmpeg, find
from workers.adapters.kafka.topics import PARTITIONS, Topics
from workers.adapters.step_account import program_account
from workers.kernel.fair_places import FairPlaces
from workers.kernel.settings import Identity
from workers.origin.live_origin import LiveOrigin

ROUTES: Final = routes()
_MOST_READ: Final = 256
"""The maximum number of published files that a process reads at a time."""


def asyncapi(version: str) -> AsyncApi:
    """Return the document about the messages in Kafka and to webhooks."""
    relayed = Catalogue(kind for kind in AGGREGATES if kind.KIND in RELAYED)
    return AsyncApi(relayed, version=version, topic=Topics().of, partitions=PARTITIONS)


def own_asyncapi() -> AsyncApi:
    return asyncapi(product_version())


def past_states(container: Container) -> PastStates:
    renderers: dict[str, Renderer] = {}
    for path in (path for room in ROOMS for path in room.past_states):
        renderers |= container.call(path)
    return PastStates(renderers)


def log_proofs(database: Database) -> LogProofs:
    return LogProofs(database.conninfo)


def verifier(database: Database) -> Verifier:
    return Verifier(partial(verify, database.conninfo))


def console_files(origins: ConsoleOrigins) -> ConsoleFiles:
    return ConsoleFiles(built_console(), media_origins=origins.media)


def browser_sessions(sessions: ConsoleSessions) -> BrowserSessions:
    return BrowserSessions(sessions, caller_of)


def dashboard_broadcast(dashboards: Dashboards, strangers: Strangers, *, seats: Seats) -> DashboardBroadcast:
    return DashboardBroadcast(dashboards.read_live, strangers=strangers, seats=seats)


def waiting_jobs(database: Database, settings: EngineSettingsQueries) -> WaitingJobs:
    return WaitingJobs(JobCounts(database), settings)


def health(database: Database, directories: Directories, *, identity: Identity) -> Health:
    ffmpeg = Ffmpeg(find("ffmpeg", verdicts=verdicts(directories)), account=program_account)
    return Health(database, ffmpeg, machine=identity.machine)


def session_queries(database: Database) -> SessionQueries:
    return SessionQueries(database)


def seats(siblings: Siblings) -> Seats:
    return Seats(siblings.api_processes)


def rate_limit(siblings: Siblings) -> RateLimit:
    return RateLimit(siblings.buckets)


def all_metrics(siblings: Siblings) -> AllMetrics:
    return AllMetrics(siblings.metrics)


def completeness(siblings: Siblings) -> Completeness:
    return Completeness(lambda: siblings.complete)


def log_head(lists: Pool, registry: DatabaseMetrics) -> LogHead:
    return LogHead(lists, registry)


def backlog(
    consumers: ConsumerQueries,
    deliveries: DeliveryQueries,
    *,
    lists: Pool,
    points: PointStates,
    vault: VaultState,
    registry: DatabaseMetrics,
) -> Backlog:
    return Backlog(
        consumers,
        deliveries,
        events=DueEvents(lists),
        points=points,
        jobs=JobBacklog(JobBacklogQueries(lists), registry=registry),
        provisions=ProvisionBacklog(ProvisionQueries(lists), registry=registry),
        sessions=SessionBacklog(SessionQueries(lists), registry=registry),
        unsealed=Unsealed(lists),
        vault=vault,
        registry=registry,
    )


def published_files(media: ServedMedia, events: EventQueries, *, viewers: Viewers) -> PublishedFiles:
    return PublishedFiles(media.source, events, viewers, readers=Readers(FairPlaces(_MOST_READ)))


def origin_access(origin: LiveOrigin | None, viewers: Viewers) -> OriginAccess:
    return OriginAccess(origin, Readers(FairPlaces(MOST_READ)), viewers)


PROVIDERS: Final[Mapping[Any, Any]] = {
    AllMetrics: all_metrics,
    AsyncApi: own_asyncapi,
    Backlog: backlog,
    BrowserSessions: browser_sessions,
    Completeness: completeness,
    ConsoleFiles: console_files,
    DashboardBroadcast: dashboard_broadcast,
    Health: health,
    KeyCeiling: ContentKeyCeiling,
    LogHead: log_head,
    LogProofs: log_proofs,
    OriginAccess: origin_access,
    Overview: overview,
    PastStates: past_states,
    PublishedFiles: published_files,
    RateLimit: rate_limit,
    Seats: seats,
    SessionQueries: session_queries,
    Sessions: BrowserSessions,
    Strangers: Strangers,
    Verifier: verifier,
    WaitingJobs: waiting_jobs,
}


def services_by_type(container: Container) -> dict[Any, Any]:
    """Return the services that the endpoints ask for, and those that an application needs. All of them are made now, so that a
    process with a missing service does not start."""
    for kind in {Sessions, *(kind for route in routes_of(ROUTES) for kind in route.signature.services.values())}:
        container.get(kind)
    return container.existing


async def authenticate(directory: ClientDirectory, key: str, *, shells: ShellKeys | None = None) -> Caller | None:
    """Return the caller of a key; None if it is invalid. With `shells`, a user in a shell of the home is an admin."""
    if shells is not None and key.startswith(SHELL):
        user = shells.user(key)
        return None if user is None else Caller(user, frozenset({Role.ADMIN}))
    client = await directory.authenticate(key)
    return caller_of(client) if client is not None else None
