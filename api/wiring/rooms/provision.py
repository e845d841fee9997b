"""Provisioning: the infrastructure of Events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.wiring.container import Environment, Providers, Services
from api.wiring.room import Room, WorkerRole
from domain.kernel.clock import Clock
from domain.kernel.ids import new_id
from domain.provision.aggregate import ProvisionInfo
from domain.provision.callbacks import ProvisionCallbacks
from domain.provision.handlers import ProvisionHandlers
from domain.provision.row import ProvisionRow
from domain.provision.values import Deployment
from domain.webhook.naming import CallbackNaming
from projections.event.queries import EventQueries
from projections.kernel.database.database import Database
from projections.log.executor import CommandExecutor
from projections.log.streams import Streams
from projections.provision.queries import ProvisionQueries
from projections.provision.view import PROVISION_VIEW
from projections.record.queries import RecordQueries
from projections.vault.vault import Vault, new_signing_secret
from workers.provision.callbacks import ServiceCallbacks

if TYPE_CHECKING:
    from fastapi import APIRouter

    from api.audit.past_states import Moment, Renderer
    from workers.adapters.provisioners.service import ServiceProvisioner
    from workers.ports.outbound import Outbound
    from workers.ports.provisioners import Provisioner
    from workers.wiring import SharedWorkers, Worker, WorkerContext

_AT_ONCE = 4


def _routes() -> Sequence[APIRouter]:
    from api.media.provision import routes

    return (routes.routes,)


def _services(services: Services) -> Providers:
    get = services.get
    return {
        ServiceCallbacks: lambda: _callbacks(get(Database), services.environment),
        ProvisionQueries: lambda: ProvisionQueries(get(Database)),
        ProvisionHandlers: lambda: handlers_of(
            get(CommandExecutor),
            get(RecordQueries),
            events=get(EventQueries),
            streams=get(Streams),
            vault=get(Vault),
            clock=services.environment.clock,
        ),
    }


def _callbacks(database: Database, environment: Environment) -> ServiceCallbacks:
    from workers.adapters.provisioners.service_file import ServiceFiles

    templates = environment.templates
    signing_key = ServiceFiles(templates, root=templates).signing_key if templates is not None else lambda _: b""
    return ServiceCallbacks(database, signing_key, clock=environment.clock)


def handlers_of(
    executor: CommandExecutor, records: RecordQueries, *, events: EventQueries, streams: Streams, vault: Vault, clock: Clock
) -> ProvisionHandlers:
    naming = CallbackNaming(vault, records, clock=clock, new_signing_secret=new_signing_secret)
    callbacks = ProvisionCallbacks(naming, vault)
    return ProvisionHandlers(executor, records, events=events, callbacks=callbacks, load=streams.load, clock=clock)


def provision_handlers(context: WorkerContext) -> ProvisionHandlers:
    """Return the use cases of provisioning for workers."""
    events = EventQueries(context.database)
    return handlers_of(
        context.executor, context.records, events=events, streams=context.streams, vault=context.vault, clock=context.clock
    )


def service_provisioner(outbound: Outbound, *, home: Path) -> ServiceProvisioner:
    from workers.adapters.provisioners.service import ServiceProvisioner
    from workers.adapters.provisioners.service_file import ServiceFiles

    return ServiceProvisioner(outbound, ServiceFiles(home / "templates", root=home / "provision"))


def provisioners(terraform: Path | None, service: ServiceProvisioner, *, home: Path) -> Mapping[Deployment, Provisioner]:
    """Return the provisioners of this machine."""
    from workers.adapters.provisioners.static import StaticProvisioner
    from workers.adapters.provisioners.templates import TemplateProvisioner
    from workers.adapters.provisioners.terraform import TerraformProvisioner

    modules = TerraformProvisioner(terraform, templates=home / "templates", root=home / "provision")
    return {Deployment.STATIC: StaticProvisioner(), Deployment.TEMPLATE: TemplateProvisioner(modules, service)}


def _past_states(services: Services) -> Mapping[str, Renderer]:
    from api.media.provision import routes as responses

    async def info(root: ProvisionInfo, moment: Moment) -> Any:
        return responses.ProvisionInfo.of_row(ProvisionRow.of(root))

    return {ProvisionInfo.KIND: info}


def _provisioning(context: WorkerContext, shared: SharedWorkers) -> Sequence[Worker]:
    from projections.consumers.leases import ShardLeases
    from workers.kernel.wakeups import WakeupHub
    from workers.provision.callbacks import CallbackListener
    from workers.provision.reconciler import CONSUMER, SHARDS, Reconciler

    hub = WakeupHub(context.signal(frozenset({ProvisionInfo.KIND}), on_air=True))
    handlers, service = provision_handlers(context), service_provisioner(context.outbound, home=context.home)
    reconciler = Reconciler(
        ProvisionQueries(context.database),
        handlers,
        provisioners=provisioners(context.terraform, service, home=context.home),
        logbook=context.logbook,
        metrics=context.metrics.provisions,
        leases=ShardLeases(context.database, CONSUMER, shards=SHARDS, member=new_id(), host=context.host, reads_log=False),
        waker=hub.waker(),
        at_once=_AT_ONCE,
    )
    return [hub, reconciler, CallbackListener(context.database, service.hurry), *_endings(context, handlers)]


def _endings(context: WorkerContext, handlers: ProvisionHandlers) -> Sequence[Worker]:
    """Return the workers for the rules of profiles that end resources when an Event enters a state."""
    from workers.kernel.wakeups import Waker
    from workers.provision.policy import CONSUMER, EndingOrders, ProvisioningOrders

    waker = Waker()
    handler = ProvisioningOrders(context.streams, mapper=context.mapper, wake=waker.wake)
    consumer = context.consumer(CONSUMER, handler, on_air=True)
    return [consumer, context.order_worker(CONSUMER, EndingOrders(handlers).carry_out, waker=waker)]


PROVISION = Room(
    name="provision",
    aggregates=(ProvisionInfo,),
    views=(PROVISION_VIEW,),
    routes=_routes,
    services=_services,
    past_states=_past_states,
    worker_roles=(WorkerRole("provisioning", _provisioning),),
)
