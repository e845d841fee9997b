"""The processes of the supervisor. `python -m api.cli.run.process` is their fork server, and each process is a fork of it. They end
with the supervisor, however it ends."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Final

import uvloop
from prometheus_client import CollectorRegistry

from api.cli.run.database import attach_database
from api.cli.run.limits import collect_seldom, raise_descriptor_limit, return_large_memory
from api.cli.run.process_channel import ChannelClosed, ProcessChannel
from api.cli.run.runner import EXPECTED_ERRORS, set_up_log
from api.cli.run.stop_signals import StopSignals
from api.operations.metrics import Snapshot, snapshot
from api.speke.rate import TokenBuckets
from api.wiring.settings import Settings
from domain.kernel.errors import Unavailable
from projections.client.changes import ClientChanges
from workers.kernel.confinement import conceal
from workers.kernel.fork_server import ProcessStart, next_start, set_title
from workers.kernel.parent import end_with

_PRELOADED: Final[Mapping[str, Sequence[str]]] = {
    "api": ("api.cli.run.serving", "api.wiring.product", "uvicorn.protocols.http.httptools_impl"),
    "workers": ("api.cli.run.workers",),
}
"""The modules that processes of each kind need."""
_SECONDS: Final = 2.0


class SupervisorLink:
    """The connection to the supervisor, and through it to the other processes."""

    def __init__(self, *, processes: int, api_processes: int, buckets: TokenBuckets) -> None:
        self.processes = processes
        self.api_processes = api_processes
        self.buckets = buckets
        self.registry = CollectorRegistry()
        self.retire = asyncio.Event()
        self.complete = False
        notices = {"retire": lambda _: self.retire.set(), "complete": self._set_complete}
        self._channel = ProcessChannel(answers={"metrics": self._own}, notices=notices)

    async def connect(self, end: socket.socket) -> None:
        await self._channel.connect(end)

    def ready(self, summary: Sequence[tuple[str, str]]) -> None:
        self._channel.tell("ready", summary)

    def _set_complete(self, _: None) -> None:
        self.complete = True

    async def close(self, *, failure: str = "") -> None:
        """Close the connection. The counts of this process stay in the totals."""
        if failure:
            self._channel.tell("failed", failure)
        self._channel.tell("metrics", snapshot(self.registry))
        await self._channel.close()

    async def metrics(self) -> Snapshot:
        try:
            totals: Snapshot = await self._channel.ask("metrics", seconds=_SECONDS)
        except (ChannelClosed, TimeoutError):
            raise Unavailable("the supervisor of this process does not answer") from None
        return totals

    async def _own(self, _: None) -> Snapshot:
        return snapshot(self.registry)


async def _run(start: ProcessStart, settings: Settings) -> int:
    channel, clients, rates, *sockets = start.descriptors
    order = start.order
    buckets = TokenBuckets(settings.speke_rate, descriptor=rates)
    link = SupervisorLink(processes=order["processes"], api_processes=order["api_processes"], buckets=buckets)
    changes = ClientChanges(clients, cell=order["cell"])
    with StopSignals() as signals:
        await link.connect(socket.socket(fileno=channel))
        failure = ""
        try:
            serve = partial(_api, sockets=[socket.socket(fileno=each) for each in sockets]) if order["kind"] == "api" else _workers
            await serve(order["roles"], settings, link=link, signals=signals, changes=changes)
        except EXPECTED_ERRORS as error:
            failure = str(error)
        except asyncio.CancelledError:
            if not signals.requested:
                raise
        finally:
            await link.close(failure=failure)
        return 1 if failure else 0


async def _api(
    roles: Sequence[str],
    settings: Settings,
    *,
    link: SupervisorLink,
    signals: StopSignals,
    changes: ClientChanges,
    sockets: list[socket.socket],
) -> None:
    from api.cli.run.serving import run_product
    from api.wiring.product import build

    async with attach_database(settings, make=True) as database:
        product = await build(
            settings, database.url, owner=database.owner, roles=_role_names(roles), siblings=link, changes=changes
        )
        link.registry = product.core.registry

        def ready() -> None:
            link.ready(product.summary())

        await run_product(product, sockets, signals=signals, seconds=settings.shutdown_seconds, listening=ready, retire=link.retire)


async def _workers(
    roles: Sequence[str], settings: Settings, *, link: SupervisorLink, signals: StopSignals, changes: ClientChanges
) -> None:
    from api.cli.run.workers import work

    def ready(registry: CollectorRegistry, names: Sequence[str]) -> None:
        link.registry = registry
        link.ready([("workers", ", ".join(names))])

    async with attach_database(settings, make=True) as database:
        await work(
            settings, database.url, owner=database.owner, names=_role_names(roles), signals=signals, ready=ready, retire=link.retire
        )


def _role_names(roles: Sequence[str]) -> tuple[str, ...]:
    from api.wiring.catalogue import WORKER_ROLES

    return tuple(WORKER_ROLES) if "all" in roles else tuple(roles)


def main(orders: int, supervisor: int, *, kinds: Sequence[str]) -> int:
    """Import what processes of these kinds need, and fork."""
    collect_seldom()  # before most imports
    return_large_memory()
    os.umask(0o077)
    conceal()
    end_with(supervisor)
    for module in (module for kind in kinds for module in _PRELOADED[kind]):
        import_module(module)
    start = next_start(socket.socket(fileno=orders))
    return 0 if start is None else _process(start)


def _process(start: ProcessStart) -> int:
    """Run a forked process. Settings, logs and event loop are created after the fork, so none of them is shared."""
    set_title(start.order["title"])
    raise_descriptor_limit()
    settings = Settings.from_process().model_copy(update=start.order["settings"])
    set_up_log(settings)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(start, settings))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), kinds=sys.argv[3:]))
