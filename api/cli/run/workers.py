"""`medialedger workers [NAME…]`: the workers without the API. Any number of processes may run, on any number of machines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry

from api.cli.run.database import attach_database, warn_of_rights
from api.cli.run.home import create_home
from api.cli.run.limits import tune_garbage_collector
from api.cli.run.metrics_port import metrics_port, metrics_summary
from api.cli.run.startup_text import print_status, working_text
from api.cli.run.stop_signals import StopSignals
from api.operations.metrics import Snapshot, of_process, snapshot
from api.wiring.assembly import services_of
from api.wiring.catalogue import WORKER_ROLES
from api.wiring.quiet import order_quiet
from api.wiring.settings import Settings
from api.wiring.startup import StartError
from api.wiring.tracing import tracer
from api.wiring.upgrade import Finisher
from api.wiring.workers import prepared_core, workers_of
from domain.kernel.ports import Invocation
from workers.adapters.free_space import FreeSpace
from workers.adapters.outbound_http import GuardedClient
from workers.kernel.quiet import QuietMode


async def run(settings: Settings, roles: Sequence[str]) -> int:
    """Run the workers until a stop signal. Resources are closed in reverse order, also after an error."""
    names = tuple(dict.fromkeys(roles)) or tuple(WORKER_ROLES)
    if settings.kafka_bootstrap_servers is None and all(WORKER_ROLES[name].needs_kafka for name in names):
        raise StartError("the relay needs a broker; set MEDIALEDGER_KAFKA_BOOTSTRAP_SERVERS")
    create_home(settings.home)
    if settings.worker_processes > 1:
        from api.cli.run.supervisor import supervise

        return await supervise(settings, database=attach_database, api=0, workers=settings.worker_processes, roles=names)
    own = CollectorRegistry()

    async def metrics() -> Snapshot:
        return of_process(snapshot(own), "workers 1")

    with StopSignals() as signals:
        try:
            async with metrics_port(settings, metrics) as port, attach_database(settings) as opened:

                def ready(registry: CollectorRegistry, names: Sequence[str]) -> None:
                    nonlocal own
                    own = registry
                    summary = [("workers", ", ".join(names)), *metrics_summary(settings, port)]
                    print_status(working_text(opened.label, summary=summary))

                warn_of_rights(opened)
                await work(settings, opened.url, owner=opened.owner, names=names, signals=signals, ready=ready)
        except asyncio.CancelledError:
            if not signals.requested:
                raise
        print_status("stopped by force" if signals.forced.is_set() else "stopped")
        return 1 if signals.forced.is_set() else 0


async def work(
    settings: Settings,
    database: str,
    *,
    owner: str | None,
    names: Sequence[str],
    signals: StopSignals,
    ready: Callable[[CollectorRegistry, Sequence[str]], None],
    retire: asyncio.Event | None = None,
) -> None:
    """Run the workers until a stop signal or until `retire` is set. A second signal does not wait for the work under way."""
    inner = await prepared_core(
        database,
        settings.master_key_file,
        owner=owner,
        pools=settings.database_limits,
        limits=settings.log_limits,
        tracer=tracer(settings.tracing),
    )
    container = services_of(inner, settings)
    outbound = container.get(GuardedClient)
    for kind in (QuietMode, GuardedClient):
        container.give(kind, container[kind])
    workers = workers_of(container, names)
    finisher, space = Finisher(inner.database, owner=owner), container.get(FreeSpace)
    stopped = retire or asyncio.Event()
    try:
        await inner.start()
        if settings.quiet:
            await order_quiet(inner, "workers were started with MEDIALEDGER_QUIET", invocation=Invocation.by("system"))
        await space.start()
        await workers.start()
        await finisher.start()
        tune_garbage_collector()
        signals.on_stop(stopped.set)
        ready(inner.registry, workers.names)
        await stopped.wait()
    finally:
        signals.on_stop(lambda: None)

        async def stop() -> None:
            await finisher.stop()
            await space.stop()
            await workers.stop()
            await outbound.close()
            await inner.stop()

        await signals.in_order(stop())
